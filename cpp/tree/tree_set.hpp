// The trees of a forest as its learner has them: added, replaced, succeeded by others, and then committed
// or rolled back with the version that lists them.
//
// Trees that answer come first, by place; then those that only grow, by place too, until they succeed the
// tree at their place. A replaced tree is kept until the next commit, so that a rollback can return to it,
// and after that until no call that may read it still runs.
//
// Invariant: rollback() needs no memory. It only moves trees between trees_ and replaced_, and trees_ had
// capacity for all trees of a version when that was committed; a vector never gives capacity back. So the
// only memory to be reserved in advance is that of replaced_: keep_replaced() does it, before anything is
// moved.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/memory.hpp"
#include "base/types.hpp"
#include "concurrency/thread_pool.hpp"
#include "store/example_store.hpp"
#include "tree/boundary_tree.hpp"

namespace boundary_forest {

// A tree as a published version has it.
struct TreeVersion {
  const BoundaryTree* tree = nullptr;
  NodeId n_nodes = 0;            // later ones are invisible
  std::uint32_t generation = 0;  // how many trees have stood in its place before
  bool answering = true;         // or only growing, until it succeeds the tree at its place
};

// A tree and what the learner knows of it.
struct LearnerTree {
  std::unique_ptr<BoundaryTree> tree;
  bool answering = true;
  NodeId n_counted = 0;  // nodes whose examples count it among their holders
  Counts cost;           // of the learning that is not yet published
};

class TreeSet {
 public:
  // The trees of one place, while a block is learned there.
  struct PlaceTrees {
    LearnerTree answering;
    LearnerTree growing = {};  // its successor, if it has a tree
    // Trees that were succeeded and are counted among their examples' holders: at most the two that were
    // there when the block began. Others leave no trace.
    std::array<LearnerTree, 2> outlived = {};
    std::size_t n_outlived = 0;

    void succeed();
  };

  // For n_places places from first_place on.
  TreeSet(std::uint32_t n_places, std::uint32_t first_place)
      : n_places_(n_places), first_place_(first_place) {}

  bool empty() const { return trees_.empty(); }
  std::size_t size() const { return trees_.size(); }
  // In a version's order. Trees may be trained, but not taken out.
  std::span<LearnerTree> all() { return trees_; }
  std::span<const LearnerTree> all() const { return trees_; }
  std::span<const LearnerTree> answering() const {
    return all().first(trees_.empty() ? 0 : n_places_);
  }

  // The number of the tree at this place; size() if there is none.
  std::size_t find(std::uint32_t place, bool answering) const;
  // Of a tree that is made at this place.
  std::uint32_t next_generation(std::uint32_t place) const;

  // Trees that answer are added by place, before any that only grow.
  void add(LearnerTree&& tree);
  // Puts a tree in the place of number i; it answers if that did.
  void replace(std::size_t i, LearnerTree&& tree);
  // Number i, which only grows, succeeds the tree at its place.
  void succeed(std::size_t i);
  // f(i, trees) for the trees of each place i, on up to n_threads threads; it may create a successor and
  // let it succeed, any number of times.
  template <class F>
  void for_each_place(std::size_t n_threads, F&& f);

  // The staged examples from `first` on that some tree kept settle in the store, and nodes follow; others
  // are dropped. New nodes hold their examples, and those of replaced trees no longer do, from publication
  // `next` on. Those at the slots `also` settle too: these become where.
  void settle_examples(Slot first, std::uint64_t next, ExampleStore& store,
                       std::span<Slot> also = {});

  // What a version lists: needs no memory if `out` has capacity for size().
  void list(std::vector<TreeVersion>& out) const;
  // The cost of learning since the last call.
  Counts take_cost();

  // What happened since the last commit becomes part of publication `number` + 1. Nothing fails in
  // commit() after reserve_to_commit(). Memory that no version from oldest_read on has is freed.
  void reserve_to_commit() { reserve_more(retired_, replaced_.size()); }
  void commit(std::uint64_t number, std::uint64_t oldest_read);
  // Returns to the trees of the last commit, those of publication `number`. Needs no memory.
  void rollback(std::span<const TreeVersion> committed, std::uint64_t number);

 private:
  struct RetiredTree {
    std::uint64_t number;  // of the last version that lists it
    std::unique_ptr<BoundaryTree> tree;
  };

  // Capacity for n more replaced trees, before they are moved there.
  void keep_replaced(std::size_t n) { reserve_more(replaced_, n); }
  void move_out(std::vector<PlaceTrees>& places);
  void move_back(std::vector<PlaceTrees>& places);
  LearnerTree& find(const BoundaryTree* tree, std::size_t from);

  const std::uint32_t n_places_;
  const std::uint32_t first_place_;
  std::vector<LearnerTree> trees_;
  std::vector<LearnerTree> replaced_;  // since the last commit
  std::vector<RetiredTree> retired_;
};

template <class F>
void TreeSet::for_each_place(std::size_t n_threads, F&& f) {
  std::vector<PlaceTrees> places(n_places_);
  move_out(places);
  try {
    parallel_for(places.size(), n_threads, [&](std::size_t i) { f(i, places[i]); });
  } catch (...) {
    move_back(places);
    throw;
  }
  move_back(places);
}

}  // namespace boundary_forest
