// How a tree grows, settles and takes back; the algorithm itself is in boundary_tree.hpp.
#include "tree/boundary_tree.hpp"

#include <algorithm>
#include <numeric>

namespace boundary_forest {

void BoundaryTree::add_node(Slot example, NodeId parent) {
  if (size_ == ChildLists::most_nodes)
    throw std::length_error("a tree holds at most 2^30 - 1 nodes");
  heads_.grow_to(size_ + std::size_t{1});
  depths_.grow_to(size_ + std::size_t{1});
  reserve_more(new_parents_, 1);
  examples_.append(size_, example);
  heads_[size_].store(nothing, std::memory_order_relaxed);
  depths_[size_] = depth_below(parent);
  if (parent != nothing) {
    // So that nothing can fail once the list has moved, neither here nor where it is settled or
    // taken back.
    reserve_more(outgrown_, 1);
    reserve_more(retired_, outgrown_.size() + 1);
    auto& children = heads_[parent];
    const ChildLists::Ref before = children.load(std::memory_order_relaxed);
    const ChildLists::Ref after = lists_.append(before, size_);
    if (after != before) {
      outgrown_.push_back({size_, before});
      children.store(after, std::memory_order_release);
    }
  }
  new_parents_.push_back(parent);
  ++size_;
}

std::uint8_t BoundaryTree::depth_below(NodeId parent) const {
  if (parent == nothing) return 0;
  return static_cast<std::uint8_t>(std::min<NodeId>(depths_[parent] + NodeId{1}, greatest_depth));
}

std::vector<NodeId> BoundaryTree::parents(NodeId n_nodes) const {
  std::vector<NodeId> parents(n_nodes, nothing);
  for (NodeId v = 0; v < n_nodes; ++v) {
    const ChildLists::View children = this->children(v, n_nodes);
    for (std::uint32_t i = 0; i < children.count; ++i) parents[children[i]] = v;
  }
  return parents;
}

std::vector<NodeId> BoundaryTree::parents_from(NodeId first) const {
  if (first >= n_settled_) return {new_parents_.begin() + (first - n_settled_), new_parents_.end()};
  std::vector<NodeId> parents = this->parents(size_);
  parents.erase(parents.begin(), parents.begin() + first);
  return parents;
}

void BoundaryTree::restore(std::span<const Slot> examples, std::span<const NodeId> parents) {
  if (examples.size() > ChildLists::most_nodes)
    throw std::length_error("a tree holds at most 2^30 - 1 nodes");
  const auto n = static_cast<NodeId>(examples.size());
  heads_.grow_to(n);
  depths_.grow_to(n);
  // The children of all nodes side by side, those of node v from ends[v] back to ends[v - 1].
  std::vector<std::uint32_t> ends(n, 0);
  for (NodeId v = 1; v < n; ++v) ++ends[parents[v]];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<NodeId> children(n);
  std::vector<std::uint32_t> at(ends);
  for (NodeId v = n; v-- > 1;) children[--at[parents[v]]] = v;
  for (NodeId v = 0; v < n; ++v) {
    const std::uint32_t count = ends[v] - at[v];
    examples_.append(v, examples[v]);
    depths_[v] = depth_below(v == 0 ? nothing : parents[v]);
    heads_[v].store(count == 0 ? nothing : lists_.make(&children[at[v]], count),
                    std::memory_order_relaxed);
  }
  size_ = n_settled_ = n;
}

void BoundaryTree::settle(std::uint64_t number) {
  for (const Outgrown& outgrown : outgrown_) retire(number, outgrown.list);
  outgrown_.clear();
  // What single rows need stays, so that they allocate nothing.
  if (new_parents_.size() > 64)
    std::vector<NodeId>().swap(new_parents_);
  else
    new_parents_.clear();
  n_settled_ = size_;
  examples_.settle(number);
  heads_.settle(number);
  depths_.settle(number);
  lists_.settle(number);
}

void BoundaryTree::retire(std::uint64_t number, ChildLists::Ref list) {
  if (lists_.has_memory(list)) retired_.push_back({number, list});
}

void BoundaryTree::recycle_before(std::uint64_t oldest_read) {
  auto retired = retired_.begin();
  for (; retired != retired_.end() && retired->number < oldest_read; ++retired)
    lists_.recycle(retired->list);
  retired_.erase(retired_.begin(), retired);
  examples_.recycle_before(oldest_read);
  heads_.recycle_before(oldest_read);
  depths_.recycle_before(oldest_read);
  lists_.recycle_before(oldest_read);
}

void BoundaryTree::rollback(NodeId n_nodes, std::uint64_t number) {
  examples_.truncate(n_nodes);
  while (size_ > n_nodes) {
    --size_;
    const NodeId parent = new_parents_.back();
    new_parents_.pop_back();
    if (parent == nothing) continue;
    auto& children = heads_[parent];
    const ChildLists::Ref list = children.load(std::memory_order_relaxed);
    if (!outgrown_.empty() && outgrown_.back().by == size_) {
      children.store(outgrown_.back().list, std::memory_order_release);
      outgrown_.pop_back();
      retire(number, list);  // a reader may have picked it up
    } else {
      lists_.remove_last(list);
    }
  }
}

std::size_t BoundaryTree::bytes() const {
  return sizeof(*this) + examples_.bytes() + heads_.bytes() + depths_.bytes() + lists_.bytes();
}

}  // namespace boundary_forest
