// Trees that are grown from stored examples, all at once.
//
// Such a tree is a function of the order in which it is shown the examples, its settings, the seed and its
// generation: its root is the first example, its threshold the one that holds for the next arrival, its
// ties are drawn by hash64(seed, place, generation).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "distance/prefilter.hpp"
#include "forest/setup.hpp"
#include "store/example_store.hpp"
#include "store/query_rows.hpp"
#include "tree/tree_set.hpp"

namespace boundary_forest {

// The examples that are stored as the learner sees it, and those that are staged from `staged` on.
std::vector<std::pair<Arrival, Slot>> stored_by_arrival(const ExampleStore& store,
                                                        Slot staged = nothing);
// Their slots; std::invalid_argument if one is not stored.
std::vector<Slot> slots_of(const ExampleStore& store, std::span<const Arrival> arrivals);

class Grower {
 public:
  Grower(const Setup& setup, ExampleStore& store) : setup_(setup), store_(store) {}

  // Rows that a tree is shown after `seen` others before run.between_blocks() is called, or before a
  // block is published. Large blocks share more work; but what a tree gains within a block must be
  // looked at again, so they are kept small compared with what has been learned.
  static std::size_t block_rows(std::uint64_t seen);

  LearnerTree make_tree(std::uint32_t place, std::uint32_t generation,
                        std::shared_ptr<const TreeSettings> settings) const;

  // What a tree is shown: examples by number, and where their descents begin.
  struct Shown {
    std::vector<std::uint32_t> order;
    NodeId start = 0;
  };

  // Tree i learns what shown(i) gives, in that order; if it is empty, the first becomes its root. Trees are
  // spread over threads.
  void grow(std::span<LearnerTree> trees, const QueryRows& examples, double epsilon, const Run& run,
            const std::function<Shown(std::size_t i)>& shown) const;

  // The order in which a tree is shown some of the slots, given by number: by hash64(seed, place,
  // generation, arrival).
  std::vector<std::uint32_t> own_order(const BoundaryTree& tree, std::span<const Slot> slots,
                                       std::span<const std::uint32_t> shown) const;

 private:
  void grow_tree(LearnerTree& tree, const QueryRows& examples, const Shown& shown, double epsilon,
                 const Prefilter* prefilter, const Run& run) const;

  const Setup& setup_;
  ExampleStore& store_;
};

}  // namespace boundary_forest
