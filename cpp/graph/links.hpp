// The links of a forest that is searched as a graph: the union of all trees' edges.
//
// An example is linked to its parents at birth, each once, and then to its children in order of
// arrival; every link stands in both lists. Lists are append-only, as children's are, and have the
// same memory (child_lists.hpp). As every tree has every example, slots are given in order of
// arrival: so a version sees the links to slots below its own, and those beyond come last.
//
// Invariants: one writer; what a reader may hold of an outgrown list is recycled by publication
// number. Links are added when a block ends, in order of arrival: neither threads nor the cuts of a
// stream can matter. They follow from the trees, so that no file has them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/chunked_array.hpp"
#include "base/types.hpp"
#include "tree/child_lists.hpp"

namespace boundary_forest {

class Links {
 public:
  // Chunks of 2 MB.
  Links() : heads_(19, 1, 4), lists_(unlimited, 19) {}

  // The learner's view: slots that have links.
  Slot size() const { return size_; }

  ChildLists::View of(Slot slot) const {
    return lists_.view(heads_[slot].load(std::memory_order_acquire));
  }
  // Asks memory for where the links are, and then, once that is there, for the links.
  void prefetch_head(Slot slot) const { __builtin_prefetch(heads_.at(slot)); }
  void prefetch(Slot slot) const { lists_.prefetch(heads_[slot].load(std::memory_order_acquire)); }

  // There are heads for all slots up to n, still without links.
  void make_heads(Slot n);
  // The next slots get their links: parents[i * n_trees + t] is the parent of the i-th of them in tree
  // t, or `nothing` for a root. All of them must have heads; some parents may come later.
  void add(std::span<const Slot> parents, std::size_t n_trees);

  // What happened since the last publication is settled, or taken back; see BoundaryTree.
  void settle(std::uint64_t number);
  void recycle_before(std::uint64_t oldest_read);
  void rollback(std::uint64_t number);

  // May be called by any thread.
  std::size_t bytes() const { return heads_.bytes() + lists_.bytes(); }

 private:
  void add_first(std::span<const Slot> parents, std::size_t n_trees);
  void reserve_to_change();
  void make(Slot slot, std::span<const Slot> links);
  void append(Slot slot, Slot link);
  void retire(std::uint64_t number, ChildLists::Ref list);

  ChunkedArray<std::atomic<ChildLists::Ref>> heads_;
  ChildLists lists_;
  Slot n_heads_ = 0;
  Slot size_ = 0;

  // Since the last publication: which list gained a link, and what it was before.
  struct Appended {
    Slot slot;
    ChildLists::Ref before;
    bool moved;  // to a larger one
  };
  Slot settled_size_ = 0;
  std::vector<Appended> appended_;
  std::vector<ChildLists::Retired> retired_;  // by publication number, ascending
};

}  // namespace boundary_forest
