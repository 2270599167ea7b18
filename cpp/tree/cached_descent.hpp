// One row through many trees: a distance that one tree has needed is not computed again for the next.
//
// The distances are the very numbers that would be computed, so that the descent is BTQuery's (promise 1); it
// counts the same comparisons, and fewer evaluations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "distance/distance_cache.hpp"
#include "tree/boundary_tree.hpp"

namespace boundary_forest {

// BTQuery that looks distances up before it computes them. The cache is of one query, and is emptied where
// a tree has another metric than the one before it.
class CachedDescent {
 public:
  // Rows of fewer bytes are compared about as fast as they are looked up.
  static constexpr std::size_t worth_it = 512;

  explicit CachedDescent(DistanceCache& known) : known_(known) { known_.begin(); }

  std::pair<NodeId, Leaf> operator()(const BoundaryTree& tree, const Query& query, Counts& counts) {
    if (d_ != nullptr && d_ != &tree.d()) known_.begin();
    d_ = &tree.d();
    NodeId v = 0;
    Leaf at_v{tree.example(0), 0.0};
    measure(tree, query, &at_v, 1, counts);
    counts.comparisons += 1;
    for (bool moves = true; moves;) {
      const ChildLists::View children = tree.children(v, query.n_nodes);
      Nearest v_min(tree.tie_hash(), tree.store(), query);
      if (children.count < tree.params().k) v_min.consider(v, at_v);
      Leaf leaves[Metric::group];
      for (std::uint32_t begin = 0; begin < children.count; begin += Metric::group) {
        const std::uint32_t n = std::min(Metric::group, children.count - begin);
        for (std::uint32_t j = 0; j < n; ++j) leaves[j].example = tree.example(children[begin + j]);
        measure(tree, query, leaves, n, counts);
        for (std::uint32_t j = 0; j < n; ++j) v_min.consider(children[begin + j], leaves[j]);
      }
      counts.comparisons += children.count;
      moves = v_min.node() != v;
      v = v_min.node();
      at_v = v_min.at();
    }
    return {v, at_v};
  }

 private:
  void measure(const BoundaryTree& tree, const Query& query, Leaf* leaves, std::uint32_t n,
               Counts& counts) {
    std::uint32_t unknown[Metric::group];
    const std::byte* rows[Metric::group];
    double reduced[Metric::group];
    std::uint32_t n_unknown = 0;
    for (std::uint32_t j = 0; j < n; ++j) {
      if (known_.find(leaves[j].example, leaves[j].reduced)) continue;
      rows[n_unknown] = tree.store().row(leaves[j].example);
      unknown[n_unknown++] = j;
    }
    if (n_unknown > 0) tree.d().distances(query.y(), rows, n_unknown, reduced);
    for (std::uint32_t j = 0; j < n_unknown; ++j) {
      leaves[unknown[j]].reduced = reduced[j];
      known_.put(leaves[unknown[j]].example, reduced[j]);
    }
    counts.evaluations += n_unknown;
  }

  DistanceCache& known_;
  const Metric* d_ = nullptr;
};

}  // namespace boundary_forest
