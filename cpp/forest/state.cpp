// What a forest is: counts, and its whole state taken out and put back.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "forest/boundary_forest.hpp"
#include "forest/search_plan.hpp"

namespace boundary_forest {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument("inconsistent state: " + std::string(what));
}

std::uint64_t sum(const std::vector<NodeId>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

}  // namespace

Stats BoundaryForest::stats() {
  const Reading reading(publication_);
  const Version& version = reading.version;
  Stats stats{version.seen,
              version.stored,
              {},
              publication_.learn_counts(),
              publication_.query_counts(),
              store_.position_bytes(),
              store_.example_bytes(),
              store_.id_bytes(),
              0,
              version.adaptation.window.bytes(),
              links_.bytes(),
              version.codes ? version.codes->bytes() : 0,
              {}};
  if (!version.planted) stats.nodes.assign(params_.n_held(), 0);
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    if (answering) stats.nodes.push_back(n_nodes);
    stats.tree_bytes += tree->bytes();
  }
  if (params_.forgets() && version.planted) stats.turnover = turnover(version);
  return stats;
}

Stats::Turnover BoundaryForest::turnover(const Version& version) const {
  Stats::Turnover out;
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    if (!answering) continue;
    Arrival oldest = version.seen;
    for (NodeId v = 0; v < n_nodes; ++v)
      oldest = std::min(oldest, store_.arrival(tree->example(v)));
    out.generations.push_back(generation);
    out.ages.push_back(version.seen - oldest);
  }
  out.losses = version.adaptation.votes.losses;
  out.rule = version.adaptation.votes.rule;
  return out;
}

double BoundaryForest::label_deviation() {
  return Reading(publication_).version.spread.deviation();
}

void BoundaryForest::check_ids(const Ids& ids, bool may_be_known) {
  const LearningLock learning = begin_learning();
  store_.ids().check_new(ids, may_be_known);
}

Examples BoundaryForest::examples_at(std::span<const Slot> slots, bool with_positions) const {
  const std::size_t row_bytes = store_.row_bytes();
  Examples out{std::vector<std::byte>(with_positions ? slots.size() * row_bytes : 0),
               std::vector<double>(slots.size() * params_.label_length),
               std::vector<Arrival>(slots.size()), store_.ids().blank(slots.size())};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (with_positions)
      std::copy_n(store_.row(slots[i]), row_bytes, out.positions.data() + i * row_bytes);
    std::copy_n(store_.label(slots[i]), params_.label_length,
                out.labels.data() + i * params_.label_length);
    out.arrivals[i] = store_.arrival(slots[i]);
    store_.ids().get(slots[i], out.ids, i);
  }
  return out;
}

// The slots of all examples of a version, by arrival.
std::vector<Slot> BoundaryForest::living(const Version& version, bool with_forgotten) const {
  std::vector<Slot> slots;
  slots.reserve(version.stored);
  for (Slot slot = 0; slot < version.slots; ++slot)
    if (store_.is_in(version, slot) && (with_forgotten || !store_.is_forgotten(version, slot)))
      slots.push_back(slot);
  const auto earlier = [&](Slot a, Slot b) { return store_.arrival(a) < store_.arrival(b); };
  if (!std::is_sorted(slots.begin(), slots.end(), earlier))
    std::sort(slots.begin(), slots.end(), earlier);
  return slots;
}

BoundaryForest::State BoundaryForest::state(bool with_positions) {
  return Snapshot(*this).state(with_positions);
}

BoundaryForest::State BoundaryForest::state_of(const Version& version, std::span<const Slot> living,
                                               bool with_positions) {
  State state;
  state.seen = version.seen;
  state.n_classes = version.n_classes;
  state.spread = version.spread.sums();
  state.learn = publication_.learn_counts();
  state.query = publication_.query_counts();
  std::vector<std::uint32_t> numbers(version.slots);  // of each slot's example among the living
  for (std::size_t i = 0; i < living.size(); ++i)
    numbers[living[i]] = static_cast<std::uint32_t>(i);
  if (!version.planted) state.tree_sizes.assign(params_.n_held(), 0);
  bool all_first = true;
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    state.tree_sizes.push_back(n_nodes);
    state.tree_generations.push_back(generation);
    if (!answering) state.tree_places.push_back(tree->place());
    all_first = all_first && generation == 0;
  }
  if (all_first) state.tree_generations.clear();
  const std::size_t n_all = sum(state.tree_sizes);
  state.node_examples.reserve(n_all);
  state.node_parents.reserve(n_all);
  for (const auto& [tree, n_nodes, generation, answering] : version.trees)
    for (NodeId v = 0; v < n_nodes; ++v) {
      state.node_examples.push_back(numbers[tree->example(v)]);
      state.node_parents.push_back(tree->parent(v));
    }
  state.examples = examples_at(living, with_positions);
  put_adaptation(version, state);
  return state;
}

void BoundaryForest::put_adaptation(const Version& version, State& state) const {
  const Adaptation& adaptation = version.adaptation;
  state.vote_rule = adaptation.votes.rule;
  state.tree_losses = adaptation.votes.losses;
  state.vote_errors = adaptation.votes.errors;
  const Window& window = adaptation.window;
  if (!window.is_kept()) return;
  state.window.arrivals = window.last(Window::capacity);
  state.window.ids = store_.ids().blank(state.window.arrivals.size());
  for (std::size_t i = 0; i < state.window.arrivals.size(); ++i) {
    const Arrival a = state.window.arrivals[i];
    window.get_id(a, state.window.ids, i);
    state.window.positions.insert(state.window.positions.end(), window.row(a),
                                  window.row(a) + store_.row_bytes());
    state.window.labels.insert(state.window.labels.end(), window.label(a),
                               window.label(a) + params_.label_length);
  }
  std::vector<const TreeSettings*> distinct;
  for (const TreeVersion& version_of_tree : version.trees) {
    const TreeSettings* settings = version_of_tree.tree->settings().get();
    auto at = std::find(distinct.begin(), distinct.end(), settings);
    if (at == distinct.end()) at = distinct.insert(at, settings);
    state.tree_weights.push_back(static_cast<std::uint32_t>(at - distinct.begin()));
  }
  distinct.push_back(adaptation.settings.get());
  for (const TreeSettings* settings : distinct) {
    LogWeights logs = settings->log_weights;
    logs.resize(params_.n_features);  // zeros are the plain metric
    state.log_weights.insert(state.log_weights.end(), logs.begin(), logs.end());
  }
}

Examples Snapshot::examples(std::size_t begin, std::size_t end, bool with_positions) const {
  if (begin > end || end > living_.size())
    throw std::invalid_argument("there are " + std::to_string(living_.size()) + " examples");
  return forest_.examples_at(std::span(living_).subspan(begin, end - begin), with_positions);
}

Neighbors Snapshot::neighbors(const RowsView& rows, std::size_t n, const Search& search,
                              const Run& run) const {
  Counts cost;
  Neighbors found = forest_.neighbors(rows, n, forest_.plan(search, reading_.version), run, cost);
  forest_.publication_.count_queries(cost);
  return found;
}

std::unique_ptr<BoundaryForest> BoundaryForest::widened(std::size_t n_features,
                                                        std::unique_ptr<Metric> d) {
  if (n_features < params_.n_features)
    throw std::invalid_argument("a forest cannot become narrower");
  State state = this->state();
  const auto widen = [](auto& values, std::size_t before, std::size_t after) {
    std::remove_reference_t<decltype(values)> wider(values.size() / before * after);
    for (std::size_t i = 0; i * before < values.size(); ++i)
      std::copy_n(values.data() + i * before, before, wider.data() + i * after);
    values = std::move(wider);
  };
  const std::size_t after = n_features * size_of(params_.element_type);
  widen(state.examples.positions, store_.row_bytes(), after);
  widen(state.window.positions, store_.row_bytes(), after);
  const LogWeights narrow = state.log_weights;
  widen(state.log_weights, params_.n_features, n_features);
  for (std::size_t i = 0; i * params_.n_features < narrow.size(); ++i)
    std::fill_n(
        state.log_weights.data() + i * n_features + params_.n_features,
        n_features - params_.n_features,
        least_log_weight(std::span(narrow).subspan(i * params_.n_features, params_.n_features)));
  Params params = params_;
  params.n_features = n_features;
  auto wider = std::make_unique<BoundaryForest>(params, std::move(d));
  wider->restore(state);
  return wider;
}

void BoundaryForest::restore(const State& state) {
  const std::vector<std::byte>& positions = state.examples.positions;
  restore(state, {.data = positions.data(), .bytes = positions.size()});
}

void BoundaryForest::restore(const State& state, const SavedRows& rows) {
  const LearningLock learning = begin_learning();
  if (progress_.seen > 0) throw std::logic_error("only an empty forest can be restored");
  const Examples& examples = state.examples;
  const std::size_t n = examples.arrivals.size();
  require(n < nothing, "arrivals has too many examples");
  require(rows.bytes == n * store_.row_bytes(), "positions has the wrong size");
  require(examples.labels.size() == n * params_.label_length, "labels has the wrong size");
  require(examples.ids.size() == (params_.ids == IdKind::none ? 0 : n) &&
              (n == 0 || examples.ids.kind() == params_.ids),
          "ids does not have an id for every example");
  store_.ids().check_new(examples.ids);
  require(state.seen <= most_arrivals, "seen is too large");
  check_examples(state);
  const std::size_t n_held = params_.n_held();
  require(state.tree_sizes.size() == n_held + state.tree_places.size(),
          "the number of trees is wrong");
  require(
      state.tree_generations.empty() || state.tree_generations.size() == state.tree_sizes.size(),
      "tree_generations does not match the trees");
  const bool planted = state.tree_sizes[0] > 0;
  const bool may_have_gaps = params_.ids != IdKind::none;  // some may have been forgotten
  require(planted || (state.seen < params_.n_T && (n == state.seen || may_have_gaps)),
          "trees are missing");
  check_trees(state);
  Adaptation adaptation = restored_adaptation(state);
  const std::vector<std::shared_ptr<const TreeSettings>> settings = restored_settings(state);
  if (!settings.empty()) adaptation.settings = settings.back();
  Spread spread(params_.label_length);
  spread.restore(state.spread);
  try {
    for (std::size_t t = 0, begin = 0; planted && t < state.tree_sizes.size();
         begin += state.tree_sizes[t++]) {
      const bool answering = t < n_held;
      const std::uint32_t place = answering ? params_.first_tree + static_cast<std::uint32_t>(t)
                                            : state.tree_places[t - n_held];
      trees_.push_back(make_tree(place,
                                 state.tree_generations.empty() ? 0 : state.tree_generations[t],
                                 settings.empty() ? settings_ : settings[state.tree_weights[t]]));
      trees_.back().answering = answering;
      trees_.back().tree->restore(
          std::span(state.node_examples).subspan(begin, state.tree_sizes[t]),
          std::span(state.node_parents).subspan(begin, state.tree_sizes[t]));
    }
    store_.restore(n, rows, examples.labels.data(), examples.arrivals.data(), examples.ids);
    search_is_late_ = rows.in_file && params_.has_graph && planted && has_search_radius();
    close_block(store_.size());
    for (Slot slot = 0; !planted && slot < n; ++slot) store_.hold(slot);
    progress_ = {state.seen,      state.n_classes,        std::move(spread), std::move(adaptation),
                 progress_.codes, progress_.search_radius};
    publish();
  } catch (...) {  // there is no memory left; all else was checked
    rollback();
    throw;
  }
  publication_.count_learning(state.learn);
  publication_.count_queries(state.query);
}

Adaptation BoundaryForest::restored_adaptation(const State& state) const {
  Adaptation adaptation = progress_.adaptation;  // as a new forest has it
  require(state.vote_errors.size() == adaptation.votes.errors.size(),
          "vote_errors does not match the parameters");
  for (const double error : state.vote_errors)
    require(error >= 0.0, "vote_errors has an invalid number");
  adaptation.votes.errors = state.vote_errors;
  require(state.tree_losses.size() == adaptation.votes.losses.size(),
          "tree_losses does not match the parameters");
  for (const double loss : state.tree_losses)
    require(loss >= 0.0 && (!votes() || loss <= 1.0), "tree_losses has an invalid number");
  adaptation.votes.losses = state.tree_losses;
  require(adaptation.votes.errors.empty() ? state.vote_rule == adaptation.votes.rule
                                          : state.vote_rule < vote_rules(params_).size(),
          "vote_power does not match the parameters");
  adaptation.votes.rule = static_cast<std::uint8_t>(state.vote_rule);
  Window& window = adaptation.window;
  const std::vector<Arrival>& arrivals = state.window.arrivals;
  const Arrival first =
      state.seen - (window.is_kept() ? std::min<Arrival>(state.seen, Window::capacity) : 0);
  const std::size_t n = arrivals.size();
  require(state.window.labels.size() == n * params_.label_length &&
              state.window.positions.size() == n * store_.row_bytes() &&
              state.window.ids.size() == (params_.ids == IdKind::none ? 0 : n) &&
              (n == 0 || params_.ids == IdKind::none || state.window.ids.kind() == params_.ids),
          "the window's arrays do not fit one another");
  for (std::size_t i = 0; i < n; ++i)
    require(arrivals[i] < state.seen && arrivals[i] >= (i == 0 ? first : arrivals[i - 1] + 1),
            "the window does not contain the last arrivals");
  check_labels(state.window.labels, state.n_classes);
  window.begin_at(first);
  for (std::size_t i = 0; window.end() < state.seen && window.is_kept();) {
    if (i == n || arrivals[i] > window.end()) {
      window.skip();
      continue;
    }
    window.add(state.window.positions.data() + i * store_.row_bytes(),
               state.window.labels.data() + i * params_.label_length, state.window.ids, i);
    ++i;
  }
  return adaptation;
}

// Those that log_weights lists; none if weights are not learned.
std::vector<std::shared_ptr<const TreeSettings>> BoundaryForest::restored_settings(
    const State& state) const {
  const bool planted = state.tree_sizes[0] > 0;
  const std::size_t D = params_.n_features;
  const std::size_t n = state.log_weights.size() / D;
  if (!params_.has_learned_weights) {
    require(state.log_weights.empty() && state.tree_weights.empty(),
            "weights were learned, but feature_weights is not 'learned'");
    return {};
  }
  require(n > 0 && n * D == state.log_weights.size() && n <= state.tree_sizes.size() + 1,
          "log_weights does not match the features");
  require(state.tree_weights.size() == (planted ? state.tree_sizes.size() : 0),
          "tree_weights does not match the trees");
  for (const std::uint32_t which : state.tree_weights)
    require(which < n, "tree_weights: a tree has weights that do not exist");
  for (const LogWeight log : state.log_weights)
    require(log >= -most_log_weight && log <= most_log_weight, "log_weights is out of range");
  std::vector<std::shared_ptr<const TreeSettings>> settings;
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = state.log_weights.begin() + static_cast<std::ptrdiff_t>(i * D);
    const LogWeights logs(begin, begin + static_cast<std::ptrdiff_t>(D));
    const auto same = std::find_if(settings.begin(), settings.end(), [&](const auto& other) {
      return is_plain(logs) ? other->log_weights.empty() : other->log_weights == logs;
    });
    settings.push_back(
        same != settings.end() ? *same : settings_with(is_plain(logs) ? LogWeights{} : logs));
  }
  return settings;
}

void BoundaryForest::check_labels(std::span<const double> labels, std::uint32_t n_classes) const {
  for (const double value : labels)
    require(std::isfinite(value), "labels has a value that is not finite");
  for (std::size_t i = 0; votes() && i < labels.size(); ++i)
    require(labels[i] >= 0 && labels[i] < n_classes && labels[i] == std::floor(labels[i]),
            "labels has a class that does not exist");
}

void BoundaryForest::check_examples(const State& state) const {
  const Examples& examples = state.examples;
  for (std::size_t i = 0; i < examples.arrivals.size(); ++i) {
    require(i == 0 || examples.arrivals[i - 1] < examples.arrivals[i], "arrivals is not ascending");
    require(examples.arrivals[i] < state.seen, "arrivals exceeds the number of examples seen");
  }
  check_labels(examples.labels, state.n_classes);
  // Classes may have no example left, or none yet: how many there are is for the caller to check.
  require(votes() || state.n_classes == 0, "n_classes is not 0, but labels are not classes");
  const double n_spread = votes() ? 0.0 : static_cast<double>(state.seen);
  require(!state.spread.empty() && state.spread[0] == n_spread,
          "spread does not match the number of examples seen");
}

// Nodes come after their parents, so that no path can lead back.
void BoundaryForest::check_trees(const State& state) const {
  const std::uint64_t n_nodes = sum(state.tree_sizes);
  require(state.node_examples.size() == n_nodes && state.node_parents.size() == n_nodes,
          "tree_sizes does not add up to the nodes of node_examples and node_parents");
  const bool planted = state.tree_sizes[0] > 0;
  for (std::size_t i = 0; i < state.tree_places.size(); ++i)
    require(state.tree_places[i] - params_.first_tree < params_.n_held() &&
                (i == 0 || state.tree_places[i - 1] < state.tree_places[i]),
            "tree_places: a growing tree has no tree to replace");
  std::vector<std::uint32_t> last_tree(state.examples.arrivals.size(), 0);  // that has the example
  std::vector<std::uint32_t> n_children;
  std::uint32_t t = 0;
  std::size_t begin = 0;
  for (const NodeId size : state.tree_sizes) {
    ++t;
    require((size > 0) == planted, "tree_sizes: some trees are empty and others not");
    const std::uint32_t* const slots = state.node_examples.data() + begin;
    const NodeId* const parents = state.node_parents.data() + begin;
    n_children.assign(size, 0);
    for (NodeId v = 0; v < size; ++v) {
      require(slots[v] < last_tree.size(),
              "node_examples: a tree has an example that is not stored");
      require(last_tree[slots[v]] != t, "node_examples: a tree has an example twice");
      last_tree[slots[v]] = t;
      require(v == 0 ? parents[v] == nothing : parents[v] < v,
              "node_parents: a node comes before its parent");
      require(v == 0 || ++n_children[parents[v]] <= params_.k,
              "node_parents: a node has more children than max_children");
    }
    begin += size;
  }
  for (const std::uint32_t tree : last_tree)
    require(!planted || tree != 0, "node_examples: an example is in no tree");
  for (const NodeId size : state.tree_sizes)
    require(!params_.has_graph || !planted || size == last_tree.size(),
            "tree_sizes: a tree of a graph lacks an example");
}

}  // namespace boundary_forest
