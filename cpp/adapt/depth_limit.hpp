// A limit on the depth of trees, in forests that learn feature weights or are searched as a graph. The paper's
// forest has none.
//
// Rows that arrive in order, as sorted ones or a geometric approach to a point, make a tree a chain: learning N
// of them costs N^2. So trees are looked at every `depth_period` arrivals. If one of the latest nodes is too deep,
// the nodes around it are learned again, in a random order of the tree's own (forest/replacement.cpp): as many
// as a tree learns of n arrivals, n being the largest power of two that divides their number. So a node is
// learned again about once for each power of two, whatever the data are, and the whole tree at times. Depths in ordinary data are far
// below the limit: at most 14 in trees of 5,000 nodes that learn weights, 33 in those of 20,000 of an index,
// and 123 in one of 100,000 rows of covtype in their own order, where the limit is 200.
#pragma once

#include <bit>

#include "base/types.hpp"

namespace boundary_forest {

class DepthLimit {
 public:
  static constexpr Arrival depth_period = 512;  // arrivals
  static constexpr NodeId depth_stride = 16;    // of a tree's nodes, every 16th is looked at

  explicit DepthLimit(const Params& params)
      : is_limited_(params.has_learned_weights), max_samples_(params.max_samples) {}

  bool is_due(Arrival seen) const { return is_limited_ && seen % depth_period == 0; }

  // A block that begins after `seen` arrivals must not go on beyond so many.
  Arrival block_end(Arrival seen) const {
    return is_limited_ ? (seen / depth_period + 1) * depth_period : ~Arrival{0};
  }

  // The greatest depth of a node, that of the root being 0, in a tree of so many nodes.
  static NodeId most(NodeId n_nodes) {
    return least_limit + depth_per_doubling * static_cast<NodeId>(std::bit_width(n_nodes));
  }
  // The most nodes of a tree that are learned again after so many arrivals.
  Arrival most_regrown(Arrival seen) const {
    return static_cast<Arrival>(static_cast<double>(seen & (~seen + 1)) * max_samples_);
  }

 private:
  static constexpr NodeId least_limit = 64;
  static constexpr NodeId depth_per_doubling = 8;

  bool is_limited_;
  double max_samples_;
};

}  // namespace boundary_forest
