// How links grow, settle and are taken back.
#include "graph/links.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace boundary_forest {

void Links::make_heads(Slot n) {
  if (n > ChildLists::most_nodes) throw std::length_error("a graph has at most 2^30 - 1 examples");
  heads_.grow_to(n);
  for (; n_heads_ < n; ++n_heads_) heads_[n_heads_].store(nothing, std::memory_order_relaxed);
}

void Links::add(std::span<const Slot> parents, std::size_t n_trees) {
  const std::size_t n = parents.size() / n_trees;
  if (settled_size_ == 0 && size_ == 0 && n == n_heads_) return add_first(parents, n_trees);
  const Slot first = size_;
  size_ += static_cast<Slot>(n);
  std::vector<Slot> distinct;
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = first + static_cast<Slot>(i);
    distinct.clear();
    // Among examples that are planted together, or learned offline, one may be the other's parent in
    // one tree and its child in another: then the link is there.
    const ChildLists::View before = of(slot);
    for (std::uint32_t j = 0; j < before.count; ++j) distinct.push_back(before[j]);
    for (const Slot parent : parents.subspan(i * n_trees, n_trees))
      if (parent != nothing &&
          std::find(distinct.begin(), distinct.end(), parent) == distinct.end())
        distinct.push_back(parent);
    // A list that is new is made as long as it will be.
    if (before.count == 0 && !distinct.empty()) make(slot, distinct);
    for (std::size_t j = before.count; j < distinct.size(); ++j) {
      if (before.count > 0) append(slot, distinct[j]);
      append(distinct[j], slot);
    }
  }
}

// All slots that there are, as when a forest is restored: lists are made as long as they will be. To
// append the links one by one would lead to the same lists, and leave their shorter selves behind.
void Links::add_first(std::span<const Slot> parents, std::size_t n_trees) {
  const std::size_t n = parents.size() / n_trees;
  std::vector<std::uint32_t> n_parents(n, 0);
  std::vector<std::size_t> ends(n, 0);  // where each slot's links end
  std::vector<Slot> distinct(parents.size());
  for (std::size_t i = 0; i < n; ++i) {
    Slot* const own = distinct.data() + i * n_trees;
    for (const Slot parent : parents.subspan(i * n_trees, n_trees)) {
      if (parent == nothing || std::find(own, own + n_parents[i], parent) != own + n_parents[i])
        continue;
      const Slot* const others = distinct.data() + parent * n_trees;
      if (parent < i &&
          std::find(others, others + n_parents[parent], i) != others + n_parents[parent])
        continue;
      own[n_parents[i]++] = parent;
      ++ends[parent];
    }
    ends[i] += n_parents[i];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Slot> links(n == 0 ? 0 : ends.back());
  std::vector<std::size_t> at(n, 0);
  for (std::size_t i = 1; i < n; ++i) at[i] = ends[i - 1];
  for (std::size_t i = 0; i < n; ++i)
    for (std::uint32_t j = 0; j < n_parents[i]; ++j) {
      const Slot parent = distinct[i * n_trees + j];
      links[at[i]++] = parent;
      links[at[parent]++] = static_cast<Slot>(i);
    }
  reserve_more(retired_, n);
  for (std::size_t i = 0, begin = 0; i < n; begin = ends[i++])
    if (ends[i] > begin)
      heads_[i].store(lists_.make(&links[begin], static_cast<std::uint32_t>(ends[i] - begin)),
                      std::memory_order_release);
  size_ = static_cast<Slot>(n);
}

// So that nothing can fail once a list has moved, neither there nor where it is settled or taken back.
void Links::reserve_to_change() {
  reserve_more(appended_, 1);
  reserve_more(retired_, appended_.size() + 1);
}

void Links::make(Slot slot, std::span<const Slot> links) {
  reserve_to_change();
  const ChildLists::Ref after = lists_.make(links.data(), static_cast<std::uint32_t>(links.size()));
  appended_.push_back({slot, heads_[slot].load(std::memory_order_relaxed), true});
  heads_[slot].store(after, std::memory_order_release);
}

void Links::append(Slot slot, Slot link) {
  reserve_to_change();
  const ChildLists::Ref before = heads_[slot].load(std::memory_order_relaxed);
  const ChildLists::Ref after = lists_.append(before, link);
  appended_.push_back({slot, before, after != before});
  if (after != before) heads_[slot].store(after, std::memory_order_release);
}

void Links::retire(std::uint64_t number, ChildLists::Ref list) {
  if (lists_.has_memory(list)) retired_.push_back({number, list});
}

void Links::settle(std::uint64_t number) {
  for (const Appended& appended : appended_)
    if (appended.moved) retire(number, appended.before);
  appended_.clear();
  settled_size_ = size_;
  heads_.settle(number);
  lists_.settle(number);
}

void Links::recycle_before(std::uint64_t oldest_read) {
  auto retired = retired_.begin();
  for (; retired != retired_.end() && retired->number < oldest_read; ++retired)
    lists_.recycle(retired->list);
  retired_.erase(retired_.begin(), retired);
  heads_.recycle_before(oldest_read);
  lists_.recycle_before(oldest_read);
}

void Links::rollback(std::uint64_t number) {
  if (settled_size_ == 0) {
    for (Slot slot = 0; slot < n_heads_; ++slot)
      retire(number, heads_[slot].exchange(nothing, std::memory_order_relaxed));
    appended_.clear();
  }
  for (; !appended_.empty(); appended_.pop_back()) {
    const auto& [slot, before, moved] = appended_.back();
    const ChildLists::Ref list = heads_[slot].load(std::memory_order_relaxed);
    if (moved) {
      heads_[slot].store(before, std::memory_order_release);
      retire(number, list);  // a reader may have picked it up
    } else {
      lists_.remove_last(list);
    }
  }
  size_ = settled_size_;
  n_heads_ = settled_size_;
}

}  // namespace boundary_forest
