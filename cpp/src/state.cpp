// What a forest is: counts, and its whole state taken out and put back.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "boundary_forest/boundary_forest.hpp"

namespace boundary_forest {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument("not the state of this forest: " + std::string(what));
}

std::uint64_t sum(const std::vector<NodeId>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

}  // namespace

Stats BoundaryForest::stats() {
  const Reading reading(publication_);
  const Prefix& prefix = reading.prefix;
  Stats stats{prefix.seen,
              prefix.stored,
              prefix.nodes,
              publication_.learn_counts(),
              publication_.query_counts(),
              store_.position_bytes(),
              store_.example_bytes(),
              0};
  if (prefix.planted())
    for (const auto& tree : trees_) stats.tree_bytes += tree->bytes();
  return stats;
}

std::uint64_t BoundaryForest::seen() {
  const Reading reading(publication_);
  return reading.prefix.seen;
}

double BoundaryForest::label_deviation() {
  const Reading reading(publication_);
  return reading.prefix.spread.deviation();
}

Examples BoundaryForest::examples(std::span<const Slot> slots) {
  const Reading reading(publication_);
  for (const Slot slot : slots)
    if (slot >= reading.prefix.stored)
      throw std::invalid_argument("there is no stored example " + std::to_string(slot));
  return examples_at(slots);
}

Examples BoundaryForest::examples_at(std::span<const Slot> slots) const {
  const std::size_t row_bytes = params_.n_features * size_of(params_.element_type);
  Examples out{std::vector<std::byte>(slots.size() * row_bytes),
               std::vector<double>(slots.size() * params_.label_length),
               std::vector<Arrival>(slots.size())};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::copy_n(store_.row(slots[i]), row_bytes, out.positions.data() + i * row_bytes);
    std::copy_n(store_.label(slots[i]), params_.label_length,
                out.labels.data() + i * params_.label_length);
    out.arrivals[i] = store_.arrival(slots[i]);
  }
  return out;
}

std::span<const std::byte> BoundaryForest::rows_from(Slot first) {
  const Reading reading(publication_);
  if (first >= reading.prefix.stored)
    throw std::invalid_argument("there is no stored example " + std::to_string(first));
  return store_.rows_from(first, reading.prefix.stored);
}

BoundaryForest::State BoundaryForest::state(bool with_positions) {
  const Reading reading(publication_);
  const Prefix& prefix = reading.prefix;
  State state;
  state.seen = prefix.seen;
  state.n_classes = prefix.n_classes;
  state.spread = prefix.spread.sums();
  state.learn = publication_.learn_counts();
  state.query = publication_.query_counts();
  state.tree_sizes = prefix.nodes;
  const std::size_t n_nodes = sum(prefix.nodes);
  state.node_examples.reserve(n_nodes);
  state.node_parents.reserve(n_nodes);
  for (std::size_t t = 0; t < prefix.nodes.size(); ++t)
    for (NodeId v = 0; v < prefix.nodes[t]; ++v) {
      state.node_examples.push_back(trees_[t]->example(v));
      state.node_parents.push_back(trees_[t]->parent(v));
    }
  Examples& examples = state.examples;
  examples.labels.reserve(prefix.stored * params_.label_length);
  examples.arrivals.reserve(prefix.stored);
  for (Slot slot = 0; slot < prefix.stored; ++slot) {
    const double* label = store_.label(slot);
    examples.labels.insert(examples.labels.end(), label, label + params_.label_length);
    examples.arrivals.push_back(store_.arrival(slot));
  }
  const std::size_t row_bytes = params_.n_features * size_of(params_.element_type);
  if (with_positions) examples.positions.reserve(prefix.stored * row_bytes);
  for (Slot slot = 0; with_positions && slot < prefix.stored;) {
    const std::span<const std::byte> rows = store_.rows_from(slot, prefix.stored);
    examples.positions.insert(examples.positions.end(), rows.begin(), rows.end());
    slot += static_cast<Slot>(rows.size() / row_bytes);
  }
  return state;
}

void BoundaryForest::restore(const State& state) {
  const std::vector<std::byte>& positions = state.examples.positions;
  restore(state, {.data = positions.data(), .bytes = positions.size()});
}

void BoundaryForest::restore(const State& state, const SavedRows& rows) {
  const std::lock_guard learning(learning_);
  if (progress_.seen > 0) throw std::logic_error("only an empty forest can be restored");
  const Examples& examples = state.examples;
  const std::size_t n = examples.arrivals.size();
  require(n < nothing, "arrivals has too many examples");
  require(rows.bytes == n * params_.n_features * size_of(params_.element_type),
          "positions has another size");
  require(examples.labels.size() == n * params_.label_length, "labels has another size");
  require(state.seen <= (std::uint64_t{1} << 53), "seen is too large");
  check_examples(state);
  require(state.tree_sizes.size() == params_.n_T, "there are more or fewer trees");
  const bool planted = state.tree_sizes[0] > 0;
  require(planted || (n == state.seen && n < params_.n_T), "trees are missing");
  check_trees(state);
  Spread spread(params_.label_length);
  spread.restore(state.spread);
  try {
    if (planted) make_trees();
    for (std::size_t t = 0, begin = 0; t < trees_.size(); begin += state.tree_sizes[t++])
      trees_[t]->restore(std::span(state.node_examples).subspan(begin, state.tree_sizes[t]),
                         std::span(state.node_parents).subspan(begin, state.tree_sizes[t]));
    store_.restore(n, rows, examples.labels.data(), examples.arrivals.data());
  } catch (...) {  // there is no memory left; all else was checked
    rollback();
    throw;
  }
  progress_ = {state.seen, state.n_classes, spread};
  publish();
  publication_.count_learning(state.learn);
  publication_.count_queries(state.query);
}

void BoundaryForest::check_examples(const State& state) const {
  const Examples& examples = state.examples;
  for (std::size_t i = 0; i < examples.arrivals.size(); ++i) {
    require(i == 0 || examples.arrivals[i - 1] < examples.arrivals[i], "arrivals does not ascend");
    require(examples.arrivals[i] < state.seen, "arrivals exceeds the number of examples seen");
  }
  for (const double value : examples.labels)
    require(std::isfinite(value), "labels has a value that is not finite");
  // The first example of a class is kept by every tree, so no class is without one.
  std::uint32_t n_classes = 0;
  const bool vote = params_.estimator == Estimator::shepard_vote;
  for (std::size_t i = 0; vote && i < examples.labels.size(); ++i) {
    const double code = examples.labels[i];
    require(code >= 0 && code < state.n_classes && code == std::floor(code),
            "labels has a class that does not exist");
    n_classes = std::max(n_classes, static_cast<std::uint32_t>(code) + 1);
  }
  require(n_classes == state.n_classes, "n_classes is not the number of classes in labels");
  const double n_spread = vote ? 0.0 : static_cast<double>(state.seen);
  require(!state.spread.empty() && state.spread[0] == n_spread,
          "spread does not fit the number of examples seen");
}

// Nodes come after their parents, so that no path can lead back.
void BoundaryForest::check_trees(const State& state) const {
  const std::uint64_t n_nodes = sum(state.tree_sizes);
  require(state.node_examples.size() == n_nodes && state.node_parents.size() == n_nodes,
          "tree_sizes does not add up to the nodes of node_examples and node_parents");
  const bool planted = state.tree_sizes[0] > 0;
  std::vector<std::uint32_t> last_tree(state.examples.arrivals.size(), 0);  // that has the example
  std::vector<std::uint32_t> n_children;
  std::uint32_t t = 0;
  std::size_t begin = 0;
  for (const NodeId size : state.tree_sizes) {
    ++t;
    require((size > 0) == planted, "tree_sizes: some trees are empty and others not");
    const Slot* const slots = state.node_examples.data() + begin;
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
}

}  // namespace boundary_forest
