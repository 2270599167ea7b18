#include "forest/restoring.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "base/rng.hpp"

namespace boundary_forest {
namespace {

std::uint64_t sum(const std::vector<NodeId>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

// A state that nothing is believed of before it was checked.
class Restoring {
 public:
  Restoring(const ForestState& state, const SavedRows& rows, const Setup& setup,
            const Decisions& decisions)
      : state_(state), rows_(rows), setup_(setup), decisions_(decisions) {}

  void check(const IdColumn& ids) const;
  // These are checked, too. Settings are those that log_weights lists; none if weights are not learned.
  Adaptation adaptation() const;
  std::vector<std::shared_ptr<const TreeSettings>> settings() const;

 private:
  void check_labels(std::span<const double> labels, std::uint32_t n_classes) const;
  void check_examples() const;
  void check_classes() const;
  void check_trees() const;
  void restore_reservoir(Reservoir& reservoir) const;

  const ForestState& state_;
  const SavedRows& rows_;
  const Setup& setup_;
  const Decisions& decisions_;
};

void Restoring::check(const IdColumn& ids) const {
  const Examples& examples = state_.examples;
  const std::size_t n = examples.arrivals.size();
  require(n < nothing, "arrivals has too many examples");
  require(rows_.bytes == n * setup_.row_bytes(), "positions has the wrong size");
  require(examples.labels.size() == n * setup_.params.label_length, "labels has the wrong size");
  require(examples.ids.size() == (setup_.params.ids == IdKind::none ? 0 : n) &&
              (n == 0 || examples.ids.kind() == setup_.params.ids),
          "ids does not have an id for every example");
  ids.check_new(examples.ids);
  require(state_.seen <= most_arrivals, "seen is too large");
  check_examples();
  const std::size_t n_held = setup_.params.n_held();
  require(state_.tree_sizes.size() == n_held + state_.tree_places.size(),
          "the number of trees is wrong");
  require(
      state_.tree_generations.empty() || state_.tree_generations.size() == state_.tree_sizes.size(),
      "tree_generations does not match the trees");
  const bool planted = state_.tree_sizes[0] > 0;
  const bool may_have_gaps = setup_.params.ids != IdKind::none;  // some may have been forgotten
  require(planted || (state_.seen < setup_.params.n_T && (n == state_.seen || may_have_gaps)),
          "trees are missing");
  check_trees();
}

Adaptation Restoring::adaptation() const {
  Adaptation adaptation = decisions_.first(setup_.row_bytes());  // as a new forest has it
  require(state_.vote_errors.size() == adaptation.votes.errors.size(),
          "vote_errors does not match the parameters");
  for (const double error : state_.vote_errors)
    require(error >= 0.0, "vote_errors has an invalid number");
  adaptation.votes.errors = state_.vote_errors;
  require(state_.tree_losses.size() == adaptation.votes.losses.size(),
          "tree_losses does not match the parameters");
  for (const double loss : state_.tree_losses)
    require(loss >= 0.0 && (!setup_.votes() || loss <= 1.0), "tree_losses has an invalid number");
  adaptation.votes.losses = state_.tree_losses;
  require(adaptation.votes.errors.empty() ? state_.vote_rule == adaptation.votes.rule
                                          : state_.vote_rule < vote_rules(setup_.params).size(),
          "vote_power does not match the parameters");
  adaptation.votes.rule = static_cast<std::uint8_t>(state_.vote_rule);
  check_classes();
  adaptation.votes.class_weights = state_.class_weights;
  adaptation.votes.class_counts = state_.class_counts;
  const bool streams = setup_.params.mixes_streams();
  if (streams)
    adaptation.stream = stream_mixture_of(state_.mixture, setup_.params, state_.seen,
                                          state_.n_classes, state_.replays);
  else
    adaptation.mixture = mixture_of(state_.mixture, setup_.params, state_.seen, state_.n_classes);
  const ClassOrder& classes = streams ? adaptation.stream.classes : adaptation.mixture.classes;
  for (const Examples* some : {&state_.examples, &state_.window})
    for (std::size_t i = 0;
         (streams || setup_.params.mixes()) && setup_.votes() && i < some->labels.size(); ++i)
      require(classes.find(static_cast<std::uint32_t>(some->labels[i])) != nothing,
              "class_order lacks the class of an example");
  Window& window = adaptation.window;
  const std::vector<Arrival>& arrivals = state_.window.arrivals;
  const Arrival first =
      state_.seen - (window.is_kept() ? std::min<Arrival>(state_.seen, Window::capacity) : 0);
  const std::size_t n = arrivals.size();
  require(state_.window.labels.size() == n * setup_.params.label_length &&
              state_.window.positions.size() == n * setup_.row_bytes() &&
              state_.window.ids.size() == (setup_.params.ids == IdKind::none ? 0 : n) &&
              (n == 0 || setup_.params.ids == IdKind::none ||
               state_.window.ids.kind() == setup_.params.ids),
          "the window's arrays do not fit one another");
  for (std::size_t i = 0; i < n; ++i)
    require(arrivals[i] < state_.seen && arrivals[i] >= (i == 0 ? first : arrivals[i - 1] + 1),
            "the window does not contain the last arrivals");
  check_labels(state_.window.labels, state_.n_classes);
  window.begin_at(first);
  for (std::size_t i = 0; window.end() < state_.seen && window.is_kept();) {
    if (i == n || arrivals[i] > window.end()) {
      window.skip();
      continue;
    }
    window.add(state_.window.positions.data() + i * setup_.row_bytes(),
               state_.window.labels.data() + i * setup_.params.label_length, state_.window.ids, i);
    ++i;
  }
  restore_reservoir(adaptation.reservoir);
  return adaptation;
}

// Nobody holds its members yet.
void Restoring::restore_reservoir(Reservoir& reservoir) const {
  const std::vector<Arrival>& stored = state_.examples.arrivals;
  require(state_.reservoir.size() == std::min<Arrival>(state_.seen, reservoir.capacity()),
          "reservoir_arrivals has the wrong size");
  require(reservoir.is_kept() || !state_.replays, "replays does not match the parameters");
  std::vector<Reservoir::Member> members;
  for (std::size_t i = 0; i < state_.reservoir.size(); ++i) {
    const Arrival a = state_.reservoir[i];
    require(a < state_.seen && (i == 0 || state_.reservoir[i - 1] < a),
            "reservoir_arrivals is not ascending");
    const auto at = std::lower_bound(stored.begin(), stored.end(), a);
    const bool is_stored = at != stored.end() && *at == a;
    members.push_back({hash64(setup_.params.seed, a), a,
                       is_stored ? static_cast<Slot>(at - stored.begin()) : nothing});
  }
  std::sort(members.begin(), members.end());
  reservoir.restore(std::move(members), state_.replays);
}

std::vector<std::shared_ptr<const TreeSettings>> Restoring::settings() const {
  const bool planted = state_.tree_sizes[0] > 0;
  const std::size_t D = setup_.params.n_features;
  const std::size_t n = state_.log_weights.size() / D;
  if (!setup_.params.has_learned_weights) {
    require(state_.log_weights.empty() && state_.tree_weights.empty(),
            "weights were learned, but feature_weights is not 'learned'");
    return {};
  }
  require(n > 0 && n * D == state_.log_weights.size() && n <= state_.tree_sizes.size() + 1,
          "log_weights does not match the features");
  require(state_.tree_weights.size() == (planted ? state_.tree_sizes.size() : 0),
          "tree_weights does not match the trees");
  for (const std::uint32_t which : state_.tree_weights)
    require(which < n, "tree_weights: a tree has weights that do not exist");
  for (const LogWeight log : state_.log_weights)
    require(log >= -most_log_weight && log <= most_log_weight, "log_weights is out of range");
  std::vector<std::shared_ptr<const TreeSettings>> settings;
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = state_.log_weights.begin() + static_cast<std::ptrdiff_t>(i * D);
    const LogWeights logs(begin, begin + static_cast<std::ptrdiff_t>(D));
    const auto same = std::find_if(settings.begin(), settings.end(), [&](const auto& other) {
      return is_plain(logs) ? other->log_weights.empty() : other->log_weights == logs;
    });
    settings.push_back(same != settings.end()
                           ? *same
                           : decisions_.settings_with(is_plain(logs) ? LogWeights{} : logs));
  }
  return settings;
}

void Restoring::check_labels(std::span<const double> labels, std::uint32_t n_classes) const {
  for (const double value : labels)
    require(std::isfinite(value), "labels has a value that is not finite");
  for (std::size_t i = 0; setup_.votes() && i < labels.size(); ++i)
    require(labels[i] >= 0 && labels[i] < n_classes && labels[i] == std::floor(labels[i]),
            "labels has a class that does not exist");
}

void Restoring::check_examples() const {
  const Examples& examples = state_.examples;
  for (std::size_t i = 0; i < examples.arrivals.size(); ++i) {
    require(i == 0 || examples.arrivals[i - 1] < examples.arrivals[i], "arrivals is not ascending");
    require(examples.arrivals[i] < state_.seen, "arrivals exceeds the number of examples seen");
  }
  check_labels(examples.labels, state_.n_classes);
  // Classes may have no example left, or none yet: how many there are is for the caller to check.
  require(setup_.votes() || state_.n_classes == 0,
          "n_classes is not 0, but labels are not classes");
  const double n_spread = setup_.votes() ? 0.0 : static_cast<double>(state_.seen);
  require(!state_.spread.empty() && state_.spread[0] == n_spread,
          "spread does not match the number of examples seen");
}

// Every stored example was counted once.
void Restoring::check_classes() const {
  for (const double weight : state_.class_weights)
    require(setup_.votes() && weight >= ClassWeights::least && weight <= ClassWeights::largest,
            "class_weights has an invalid number");
  require(state_.class_counts.size() == (setup_.params.counts_classes() ? state_.n_classes : 0),
          "class_counts does not match the classes");
  double sum = 0.0;
  for (const double count : state_.class_counts) {
    require(count >= 0.0 && count == std::floor(count), "class_counts has an invalid number");
    sum += count;
  }
  require(sum <= static_cast<double>(state_.seen), "class_counts exceeds the examples seen");
  std::vector<double> left = state_.class_counts;
  for (std::size_t i = 0; !left.empty() && i < state_.examples.labels.size(); ++i)
    require((left[static_cast<std::size_t>(state_.examples.labels[i])] -= 1.0) >= 0.0,
            "class_counts is below the number of stored examples");
}

// Nodes come after their parents, so that no path can lead back.
void Restoring::check_trees() const {
  const std::uint64_t n_nodes = sum(state_.tree_sizes);
  require(state_.node_examples.size() == n_nodes && state_.node_parents.size() == n_nodes,
          "tree_sizes does not add up to the nodes of node_examples and node_parents");
  const bool planted = state_.tree_sizes[0] > 0;
  const bool may_repeat = setup_.params.has_reservoir();  // what was replayed
  for (std::size_t i = 0; i < state_.tree_places.size(); ++i)
    require(state_.tree_places[i] - setup_.params.first_tree < setup_.params.n_held() &&
                (i == 0 || state_.tree_places[i - 1] < state_.tree_places[i]),
            "tree_places: a growing tree has no tree to replace");
  std::vector<std::uint32_t> last_tree(state_.examples.arrivals.size(), 0);  // that has the example
  std::vector<std::uint32_t> n_children;
  std::uint32_t t = 0;
  std::size_t begin = 0;
  for (const NodeId size : state_.tree_sizes) {
    ++t;
    require((size > 0) == planted, "tree_sizes: some trees are empty and others not");
    const std::uint32_t* const slots = state_.node_examples.data() + begin;
    const NodeId* const parents = state_.node_parents.data() + begin;
    n_children.assign(size, 0);
    for (NodeId v = 0; v < size; ++v) {
      require(slots[v] < last_tree.size(),
              "node_examples: a tree has an example that is not stored");
      require(last_tree[slots[v]] != t || may_repeat, "node_examples: a tree has an example twice");
      last_tree[slots[v]] = t;
      require(v == 0 ? parents[v] == nothing : parents[v] < v,
              "node_parents: a node comes before its parent");
      require(v == 0 || ++n_children[parents[v]] <= setup_.params.k,
              "node_parents: a node has more children than max_children");
    }
    begin += size;
  }
  for (const Arrival a : state_.reservoir) {
    const std::vector<Arrival>& arrivals = state_.examples.arrivals;
    const auto at = std::lower_bound(arrivals.begin(), arrivals.end(), a);
    if (at != arrivals.end() && *at == a) last_tree[at - arrivals.begin()] = t;
  }
  for (const std::uint32_t tree : last_tree)
    require(!planted || tree != 0, "node_examples: an example is in no tree");
  for (const NodeId size : state_.tree_sizes)
    require(!setup_.params.has_graph || !planted || size == last_tree.size(),
            "tree_sizes: a tree of a graph lacks an example");
}

}  // namespace

void restore(const ForestState& state, const SavedRows& rows, const Setup& setup,
             const Decisions& decisions, const Grower& grower, Draft& draft) {
  const LearningLock lock = draft.begin();
  if (draft.progress().seen > 0) throw std::logic_error("only an empty forest can be restored");
  const Restoring restoring(state, rows, setup, decisions);
  restoring.check(draft.store().ids());
  Adaptation adaptation = restoring.adaptation();
  const std::vector<std::shared_ptr<const TreeSettings>> settings = restoring.settings();
  if (!settings.empty()) adaptation.settings = settings.back();
  Spread spread(setup.params.label_length);
  spread.restore(state.spread);
  const bool planted = state.tree_sizes[0] > 0;
  const std::size_t n_held = setup.params.n_held();
  draft.commit([&] {  // which fails if there is no memory left; all else was checked
    for (std::size_t t = 0, begin = 0; planted && t < state.tree_sizes.size();
         begin += state.tree_sizes[t++]) {
      const bool answering = t < n_held;
      const std::uint32_t place = answering
                                      ? setup.params.first_tree + static_cast<std::uint32_t>(t)
                                      : state.tree_places[t - n_held];
      LearnerTree tree =
          grower.make_tree(place, state.tree_generations.empty() ? 0 : state.tree_generations[t],
                           settings.empty() ? setup.settings : settings[state.tree_weights[t]]);
      tree.answering = answering;
      tree.tree->restore(std::span(state.node_examples).subspan(begin, state.tree_sizes[t]),
                         std::span(state.node_parents).subspan(begin, state.tree_sizes[t]));
      draft.trees().add(std::move(tree));
    }
    const Examples& examples = state.examples;
    ExampleStore& store = draft.store();
    store.restore(examples.arrivals.size(), rows, examples.labels.data(), examples.arrivals.data(),
                  examples.ids);
    draft.close_block(store.size(), /*lazily=*/rows.in_file);
    for (Slot slot = 0; !planted && slot < store.size(); ++slot) store.hold(slot);
    for (const Reservoir::Member& member : adaptation.reservoir.members())
      if (member.slot != nothing) store.hold(member.slot);
    draft.progress() = {state.seen, state.n_classes, std::move(spread), std::move(adaptation)};
    if (!rows.in_file) draft.sketch(store.size(), 1);  // else not before they are needed
  });
}

}  // namespace boundary_forest
