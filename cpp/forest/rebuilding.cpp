#include "forest/rebuilding.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/rng.hpp"
#include "concurrency/thread_pool.hpp"

namespace boundary_forest {
namespace {

enum class Fate { stays, learned_again, forgotten };

}  // namespace

Remainder::Remainder(std::size_t i, const BoundaryTree& tree, std::span<const char> forgotten)
    : i(i) {
  split(tree, [&](NodeId v) { return forgotten[tree.example(v)] ? Fate::forgotten : Fate::stays; });
  put_in_order(tree, tree.params().has_graph);
}

Remainder::Remainder(std::size_t i, const BoundaryTree& tree, NodeId top) : i(i) {
  split(tree, [&](NodeId v) { return v == top ? Fate::learned_again : Fate::stays; });
  put_in_order(tree, /*by_hash=*/true);
  if (top != 0)
    start = tree.parents_from(top)[0];  // which has its number still, as all before `top` do
}

// A node stays if its parent does.
template <class FateOf>
void Remainder::split(const BoundaryTree& tree, FateOf&& fate_of) {
  std::vector<NodeId> numbers(tree.size(), nothing);  // of the nodes that stay
  const std::vector<NodeId> above = tree.parents(tree.size());
  for (NodeId v = 0; v < tree.size(); ++v) {
    const NodeId parent = above[v];
    const Fate fate = fate_of(v);
    if (fate == Fate::stays && (parent == nothing || numbers[parent] != nothing)) {
      numbers[v] = static_cast<NodeId>(examples.size());
      examples.push_back(tree.example(v));
      parents.push_back(parent == nothing ? nothing : numbers[parent]);
      continue;
    }
    dropped.push_back(tree.example(v));
    if (fate != Fate::forgotten) again.push_back(tree.example(v));
  }
}

void Remainder::put_in_order(const BoundaryTree& tree, bool by_hash) {
  std::vector<std::tuple<std::uint64_t, Arrival, Slot>> keyed;
  keyed.reserve(again.size());
  for (const Slot slot : again) {
    const Arrival a = tree.store().arrival(slot);
    const std::uint64_t hash =
        by_hash ? hash64(tree.params().seed, tree.place(), tree.generation(), a) : 0;
    keyed.emplace_back(hash, a, slot);
  }
  // Nodes were made in order of arrival, but for the first and where trees were rebuilt.
  if (!std::is_sorted(keyed.begin(), keyed.end())) std::sort(keyed.begin(), keyed.end());
  keyed.erase(std::unique(keyed.begin(), keyed.end()), keyed.end());  // some were replayed
  again.clear();
  for (const auto& [hash, arrival, slot] : keyed) again.push_back(slot);
}

// Rows that several trees learn again are prepared once.
void Rebuilding::rebuild(std::span<const Remainder> remainders, const Run& run) {
  const ExampleStore& store = draft_.store();
  TreeSet& trees = draft_.trees();
  std::vector<LearnerTree> rebuilt;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> row_of(store.size(), nothing);
  for (const Remainder& remainder : remainders) {
    const BoundaryTree& old = *trees.all()[remainder.i].tree;
    rebuilt.push_back(grower_.make_tree(old.place(), old.generation(), old.settings()));
    for (const Slot slot : remainder.again)
      if (row_of[slot] == nothing) {
        row_of[slot] = static_cast<std::uint32_t>(slots.size());
        slots.push_back(slot);
      }
  }
  parallel_for(rebuilt.size(), setup_.n_learning_threads(run), [&](std::size_t i) {
    if (!remainders[i].examples.empty())
      rebuilt[i].tree->restore(remainders[i].examples, remainders[i].parents);
    rebuilt[i].n_counted = rebuilt[i].tree->size();  // by the old tree; it is handed over
  });
  grower_.grow(rebuilt, QueryRows(store, slots), draft_.epsilon(), run, [&](std::size_t i) {
    std::vector<std::uint32_t> order;
    for (const Slot slot : remainders[i].again) order.push_back(row_of[slot]);
    return Grower::Shown{std::move(order), remainders[i].start};
  });
  for (std::size_t i = 0; i < rebuilt.size(); ++i) {
    trees.all()[remainders[i].i].n_counted = 0;
    trees.replace(remainders[i].i, std::move(rebuilt[i]));
  }
  draft_.close_block(store.size());
  // Not before what was learned again is held anew.
  for (const Remainder& remainder : remainders)
    for (const Slot slot : remainder.dropped) draft_.store().let_go(slot, draft_.next());
}

}  // namespace boundary_forest
