// Trees that come and go. A tree only grows: any other change makes a new tree, of the next generation, in
// its place (tree_set.hpp).
//
// After the weights of features have changed, successors with the new ones are grown in steps, so that no
// arrival waits for all of them; with the last step they take over together. Where the number of stored
// examples is limited, the tree with the oldest example is rebuilt from the newer half of its own: so what
// is stored longest goes first, and an example goes when the last tree that has it is cut. Where depth is
// limited (depth_limit.hpp), a part of a tree that has become a chain is learned again in another order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "adapt/decisions.hpp"
#include "forest/draft.hpp"
#include "forest/grower.hpp"
#include "forest/rebuilding.hpp"

namespace boundary_forest {

// A tree to be grown from stored examples, by arrival number, in this order; the first is its root.
struct Regrowth {
  std::uint32_t place;
  std::vector<Arrival> order;
  bool answering = true;  // false: it grows next to the tree at its place, until succeed()
};

class Replacement {
 public:
  Replacement(const Setup& setup, const Decisions& decisions, const Grower& grower,
              Rebuilding& rebuilding, Draft& draft)
      : setup_(setup),
        decisions_(decisions),
        grower_(grower),
        rebuilding_(rebuilding),
        draft_(draft) {}

  // Grows trees in the places of others, and publishes once. If it throws, nothing has changed.
  void regrow(std::span<const Regrowth> trees, const Run& run);
  // The trees that grow at these places take over from those that answer there; publishes likewise.
  void succeed(std::span<const std::uint32_t> places);

  // The rest is for a call that has begun, and publishes nothing.
  //
  // A step after the weights have changed. Slots from `staged` on have examples that other engines store.
  void grow_successors(Arrival step, const Run& run, Slot staged);
  // The places whose trees get a successor in this step.
  std::vector<std::uint32_t> places_to_grow(Arrival step) const;

  // Rebuilds trees whose latest nodes are too deep, if it is time to look at them. Each of them follows from its
  // own past, so that this needs no other tree.
  void keep_shallow(const Run& run);
  // When that is next after the arrivals seen; `end` if not before.
  Arrival next_look(Arrival end) const;

  // A tree, by its number, and the arrival of its oldest example.
  struct OldestTree {
    std::size_t i;
    Arrival arrival;
  };
  // The first of those that have the oldest example, among trees with more than one; or none.
  std::optional<OldestTree> oldest_tree() const;
  // Rebuilds tree i from the newer half of its examples.
  void cut(std::size_t i, const Run& run);
  // Cuts trees as long as the limit of stored examples asks for it, or as they are above max_stored.
  void keep_within_limit(const Run& run);
  void keep_below_max_stored(const Run& run);

 private:
  bool cut_oldest(const Run& run);
  bool is_reordered(const BoundaryTree& tree) const;
  NodeId chain_top(const BoundaryTree& tree) const;

  const Setup& setup_;
  const Decisions& decisions_;
  const Grower& grower_;
  Rebuilding& rebuilding_;
  Draft& draft_;
};

}  // namespace boundary_forest
