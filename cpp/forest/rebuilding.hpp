// Trees that are rebuilt without some of their nodes: what stood below these is learned again, and the rest
// stays as it was.
//
// The new tree is of the same generation as the old one, so that ties are settled as before and rows take the
// paths that they took.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forest/draft.hpp"
#include "forest/grower.hpp"

namespace boundary_forest {

// What is left of a tree: the nodes that stay, and the examples that are to be learned again.
struct Remainder {
  std::size_t i;  // number of the tree
  std::vector<Slot> examples;
  std::vector<NodeId> parents;
  std::vector<Slot> dropped;  // by each node that does not stay
  std::vector<Slot> again;
  NodeId start = 0;  // where these descend from

  // Without the examples that are forgotten, by slot. Others that stood below them are learned again in order
  // of arrival; in a forest that is searched as a graph, in an order of the tree's own, as trees that differ
  // make the better graph.
  Remainder(std::size_t i, const BoundaryTree& tree, std::span<const char> forgotten);
  // With all that stands at `top` and below learned again, from the node above on, in an order of the tree's own.
  Remainder(std::size_t i, const BoundaryTree& tree, NodeId top);

 private:
  template <class FateOf>
  void split(const BoundaryTree& tree, FateOf&& fate_of);
  void put_in_order(const BoundaryTree& tree, bool by_hash);
};

class Rebuilding {
 public:
  Rebuilding(const Setup& setup, const Grower& grower, Draft& draft)
      : setup_(setup), grower_(grower), draft_(draft) {}

  // Puts trees of which this remains in the places of the old ones; publishes nothing.
  void rebuild(std::span<const Remainder> remainders, const Run& run);

 private:
  const Setup& setup_;
  const Grower& grower_;
  Draft& draft_;
};

}  // namespace boundary_forest
