// A prefilter for each of the metrics that the trees of a forest were grown with, for one block of rows:
// nearly always a single one. None where rows go through the plain algorithm, one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "distance/prefilter.hpp"
#include "tree/block_descent.hpp"

namespace boundary_forest {

class BlockPrefilters {
 public:
  // tree_of(entry) is the tree of an entry of `trees`. `rows` must outlive this. `sketches`: see
  // Metric::prefilter(). `more`: the metric of trees that may yet come, or null.
  template <class Trees, class TreeOf>
  BlockPrefilters(const QueryRows& rows, bool plain, const Trees& trees, TreeOf&& tree_of,
                  std::shared_ptr<const RowSketches> sketches, std::size_t n_threads,
                  const Metric* more = nullptr) {
    const bool are_many = rows.size() >= BlockDescent::worth_it;
    if (plain || rows.size() == 0 || (!are_many && sketches == nullptr)) return;
    const auto add = [&](const Metric& d) {
      const bool pays = are_many || d.has_sketches_for_few();
      if (pays && find(d) == nullptr)
        prefilters_.emplace_back(&d, d.prefilter(rows, sketches, n_threads));
    };
    for (const auto& entry : trees) add(tree_of(entry)->d());
    if (more != nullptr) add(*more);
    if (prefilters_.empty()) return;
    all_rows_.resize(rows.size());
    std::iota(all_rows_.begin(), all_rows_.end(), 0);
  }

  // The tree's, or null.
  const Prefilter* of(const BoundaryTree& tree) const { return find(tree.d()); }

  std::span<const std::uint32_t> all_rows() const { return all_rows_; }

 private:
  const Prefilter* find(const Metric& d) const {
    for (const auto& [metric, prefilter] : prefilters_)
      if (metric == &d) return prefilter.get();
    return nullptr;
  }

  std::vector<std::pair<const Metric*, std::unique_ptr<Prefilter>>> prefilters_;
  std::vector<std::uint32_t> all_rows_;
};

}  // namespace boundary_forest
