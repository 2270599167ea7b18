// A limit on the depth of trees, in forests whose trees are not the paper's: those that learn feature weights,
// sample, forget or limit what is stored, and those that are searched as a graph. The paper's forest has none.
//
// Rows that arrive in order, as sorted ones or a geometric approach to a point, make a tree a chain: learning N
// of them costs N^2. So trees are looked at now and then. If one of the latest nodes is too deep, the nodes
// around it are learned again, from the node above them on and in a random order of the tree's own
// (forest/replacement.cpp): as many as a tree learns of n arrivals, n being the largest power of two that
// divides their number. So a node is learned again about once for each power of two, whatever the data are, and
// the whole tree at times. Depths in ordinary data are far below the limit: at most 14 in trees of 5,000 nodes
// that learn weights, 33 in those of 20,000 of an index, and 123 in one of 100,000 rows of covtype in their own
// order, where the limit is 200.
//
// A tree is looked at every `period` arrivals, an eighth to a quarter of all, so that large blocks stay whole;
// but every `depth_period` while its latest nodes are not in order of arrival, as some of them were learned
// again, or it has just been grown.
#pragma once

#include <algorithm>
#include <bit>

#include "base/types.hpp"

namespace boundary_forest {

class DepthLimit {
 public:
  static constexpr Arrival depth_period = 512;     // arrivals
  static constexpr Arrival longest_period = 4096;  // likewise
  static constexpr NodeId depth_stride = 16;       // of a tree's nodes, every 16th is looked at

  explicit DepthLimit(const Params& params)
      : is_limited_(params.has_learned_weights || params.max_samples < 1.0 || params.forgets() ||
                    params.max_stored > 0 || params.has_graph),
        max_samples_(params.max_samples) {}

  static Arrival period(Arrival seen) {
    return std::clamp(std::bit_floor(seen) / 4, depth_period, longest_period);
  }

  // Whether some trees may have to be looked at after so many arrivals; and whether all of them.
  bool is_due(Arrival seen) const { return is_limited_ && seen % depth_period == 0; }
  static bool is_due_for_all(Arrival seen) { return seen % period(seen) == 0; }

  // When some trees, or all of them, are looked at next after `seen` arrivals: no block goes on beyond.
  Arrival next(Arrival seen) const { return next_multiple(seen, depth_period); }
  Arrival next_for_all(Arrival seen) const { return next_multiple(seen, period(seen)); }

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

  Arrival next_multiple(Arrival seen, Arrival period) const {
    return is_limited_ ? (seen / period + 1) * period : ~Arrival{0};
  }

  bool is_limited_;
  double max_samples_;
};

}  // namespace boundary_forest
