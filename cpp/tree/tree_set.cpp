#include "tree/tree_set.hpp"

#include <algorithm>

namespace boundary_forest {

void TreeSet::PlaceTrees::succeed() {
  LearnerTree old = std::exchange(answering, std::exchange(growing, {}));
  answering.answering = true;
  answering.cost += std::exchange(old.cost, Counts{});
  if (old.n_counted > 0) outlived[n_outlived++] = std::move(old);
}

std::size_t TreeSet::find(std::uint32_t place, bool answering) const {
  const auto at = std::find_if(trees_.begin(), trees_.end(), [&](const LearnerTree& one) {
    return one.tree->place() == place && one.answering == answering;
  });
  return static_cast<std::size_t>(at - trees_.begin());
}

std::uint32_t TreeSet::next_generation(std::uint32_t place) const {
  std::uint32_t generation = 0;
  for (const LearnerTree& one : trees_)
    if (one.tree->place() == place) generation = std::max(generation, one.tree->generation() + 1);
  return generation;
}

void TreeSet::add(LearnerTree&& tree) {
  if (tree.answering) return trees_.push_back(std::move(tree));
  const auto is_behind = [&](const LearnerTree& other) {
    return !other.answering && other.tree->place() > tree.tree->place();
  };
  trees_.insert(std::find_if(trees_.begin(), trees_.end(), is_behind), std::move(tree));
}

void TreeSet::replace(std::size_t i, LearnerTree&& tree) {
  keep_replaced(1);
  tree.answering = trees_[i].answering;
  tree.cost += std::exchange(trees_[i].cost, Counts{});
  std::swap(trees_[i], tree);
  replaced_.push_back(std::move(tree));
}

void TreeSet::succeed(std::size_t i) {
  keep_replaced(1);
  LearnerTree successor = std::move(trees_[i]);
  trees_.erase(trees_.begin() + static_cast<std::ptrdiff_t>(i));
  replace(successor.tree->place() - first_place_, std::move(successor));
}

void TreeSet::move_out(std::vector<PlaceTrees>& places) {
  keep_replaced(2 * n_places_);
  trees_.reserve(2 * n_places_);  // each place may come to have a successor
  for (std::size_t i = 0; i < trees_.size(); ++i)
    if (i < n_places_)
      places[i].answering = std::move(trees_[i]);
    else
      places[trees_[i].tree->place() - first_place_].growing = std::move(trees_[i]);
}

void TreeSet::move_back(std::vector<PlaceTrees>& places) {
  trees_.clear();
  for (PlaceTrees& place : places) {
    trees_.push_back(std::move(place.answering));
    for (LearnerTree& old : place.outlived)
      if (old.tree) replaced_.push_back(std::move(old));
  }
  for (PlaceTrees& place : places)
    if (place.growing.tree) trees_.push_back(std::move(place.growing));
}

void TreeSet::settle_examples(Slot first, std::uint64_t next, ExampleStore& store,
                              std::span<Slot> also) {
  StackMemory memory;
  std::pmr::vector<char> kept(store.size() - first, 0, &memory);
  const auto for_each_new_node = [&](auto&& f) {
    for (const LearnerTree& one : trees_)
      for (NodeId v = one.n_counted; v < one.tree->size(); ++v) f(*one.tree, v);
  };
  for_each_new_node([&](const BoundaryTree& tree, NodeId v) {
    if (tree.example(v) >= first) kept[tree.example(v) - first] = 1;
  });
  for (const Slot slot : also) kept[slot - first] = 1;
  std::pmr::vector<Slot> where(kept.size(), nothing, &memory);
  store.settle(first, kept, where);
  for (Slot& slot : also) slot = where[slot - first];
  for_each_new_node([&](BoundaryTree& tree, NodeId v) {
    if (tree.example(v) >= first) tree.set_example(v, where[tree.example(v) - first]);
    store.hold(tree.example(v));
  });
  for (LearnerTree& one : trees_) one.n_counted = one.tree->size();
  for (LearnerTree& old : replaced_)
    while (old.n_counted > 0) store.let_go(old.tree->example(--old.n_counted), next);
}

void TreeSet::list(std::vector<TreeVersion>& out) const {
  out.clear();
  for (const LearnerTree& one : trees_)
    out.push_back({one.tree.get(), one.tree->size(), one.tree->generation(), one.answering});
}

Counts TreeSet::take_cost() {
  Counts cost;
  for (LearnerTree& one : trees_) cost += std::exchange(one.cost, Counts{});
  return cost;
}

void TreeSet::commit(std::uint64_t number, std::uint64_t oldest_read) {
  for (LearnerTree& old : replaced_) retired_.push_back({number, std::move(old.tree)});
  replaced_.clear();
  for (const LearnerTree& one : trees_) {
    one.tree->settle(number);
    one.tree->recycle_before(oldest_read);
  }
  std::erase_if(retired_, [&](const RetiredTree& old) { return old.number < oldest_read; });
}

void TreeSet::rollback(std::span<const TreeVersion> committed, std::uint64_t number) {
  // Within the capacity that it had when they were committed.
  trees_.resize(std::max(trees_.size(), committed.size()));
  for (std::size_t i = 0; i < committed.size(); ++i) {
    const auto& [tree, n_nodes, generation, answering] = committed[i];
    std::swap(trees_[i], find(tree, i));
    trees_[i].tree->rollback(n_nodes, number);
    trees_[i].answering = answering;
    trees_[i].n_counted = n_nodes;
    trees_[i].cost = {};
  }
  trees_.resize(committed.size());
  replaced_.clear();
}

// Among the trees from number `from` on and the replaced ones, of which it must be one.
LearnerTree& TreeSet::find(const BoundaryTree* tree, std::size_t from) {
  const auto is_it = [&](const LearnerTree& one) { return one.tree.get() == tree; };
  const auto at =
      std::find_if(trees_.begin() + static_cast<std::ptrdiff_t>(from), trees_.end(), is_it);
  return at != trees_.end() ? *at : *std::find_if(replaced_.begin(), replaced_.end(), is_it);
}

}  // namespace boundary_forest
