// Queries in blocks: what querying.cpp and retrieving.cpp share.
#pragma once

#include <algorithm>

#include "base/memory.hpp"
#include "forest/boundary_forest.hpp"

namespace boundary_forest {

template <class F>
void BoundaryForest::for_each_query_block(const RowsView& rows, const Run& run, F&& f) {
  const std::size_t block_rows = query_block_rows();
  for (std::size_t begin = 0; begin < rows.n; begin += block_rows) {
    if (begin > 0) run.between_blocks();
    const std::size_t n = std::min(block_rows, rows.n - begin);
    StackMemory memory;
    const QueryRows queries(rows.slice(begin, n, params_.n_features), store_, &memory);
    f(begin, queries);
  }
}

}  // namespace boundary_forest
