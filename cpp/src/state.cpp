// What a forest is: counts, and its whole state taken out and put back.
#include <algorithm>
#include <numeric>

#include "boundary_forest/boundary_forest.hpp"

namespace boundary_forest {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) throw std::invalid_argument("not the state of this forest: " + what);
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

BoundaryForest::State BoundaryForest::state() {
  const Reading reading(publication_);
  const Prefix& prefix = reading.prefix;
  State state;
  state.seen = prefix.seen;
  state.n_classes = prefix.n_classes;
  state.spread = prefix.spread.sums();
  state.learn = publication_.learn_counts();
  state.query = publication_.query_counts();
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    TreeState& tree = state.trees.emplace_back();
    for (NodeId v = 0; v < prefix.nodes[t]; ++v) {
      tree.examples.push_back(trees_[t]->example(v));
      tree.parents.push_back(trees_[t]->parent(v));
    }
  }
  std::vector<Slot> all(prefix.stored);
  std::iota(all.begin(), all.end(), Slot{0});
  state.examples = examples_at(all);
  return state;
}

void BoundaryForest::restore(const State& state) {
  const std::lock_guard learning(learning_);
  if (progress_.seen > 0) throw std::logic_error("only an empty forest can be restored");
  const Examples& examples = state.examples;
  const std::size_t n = examples.arrivals.size();
  const std::size_t row_bytes = params_.n_features * size_of(params_.element_type);
  require(examples.positions.size() == n * row_bytes, "positions has another size");
  require(examples.labels.size() == n * params_.label_length, "labels has another size");
  require(n < nothing, "there are too many examples");
  for (std::size_t i = 0; i < n; ++i) {
    require(i == 0 || examples.arrivals[i - 1] < examples.arrivals[i], "arrivals does not ascend");
    require(examples.arrivals[i] < state.seen, "arrivals exceeds the number of examples seen");
    if (params_.estimator == Estimator::shepard_vote) {
      const double code = examples.labels[i];
      require(code >= 0 && code < state.n_classes && code == std::floor(code),
              "labels has a class that does not exist");
    }
  }
  require(state.trees.size() == params_.n_T, "there are more or fewer trees");
  const bool planted = !state.trees[0].examples.empty();
  require(planted || (n == state.seen && n < params_.n_T), "trees are missing");
  try {
    for (std::size_t i = 0; i < n; ++i)
      store_.stage(examples.positions.data() + i * row_bytes,
                   examples.labels.data() + i * params_.label_length, 1, examples.arrivals[i]);
    std::vector<char> held(n, 0);
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      const auto& [slots, parents] = state.trees[t];
      require(slots.size() == parents.size(), "a tree's examples and parents differ in length");
      require(slots.empty() != planted, "some trees are empty and others not");
      std::vector<char> in_tree(n, 0);
      for (std::size_t v = 0; v < slots.size(); ++v) {
        require(slots[v] < n, "a tree has an example that is not stored");
        require(!in_tree[slots[v]], "a tree has an example twice");
        require(v == 0 ? parents[v] == nothing : parents[v] < v, "a node comes before its parent");
        require(v == 0 || trees_[t]->n_children(parents[v]) < params_.k,
                "a node has more children than max_children");
        in_tree[slots[v]] = held[slots[v]] = 1;
        trees_[t]->add_node(slots[v], parents[v]);
      }
    }
    require(!planted || std::all_of(held.begin(), held.end(), [](char h) { return h != 0; }),
            "an example is in no tree");
    progress_.seen = state.seen;
    progress_.n_classes = state.n_classes;
    progress_.spread.restore(state.spread);
  } catch (...) {
    rollback();
    throw;
  }
  tree_costs_[0] = state.learn;
  publish();
  publication_.count_queries(state.query);
}

}  // namespace boundary_forest
