// How the trees answered the last row that was queried alone. A learner that gets this very row next,
// as by one who tests and then trains row by row, need not descend again: it would take the same way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "tree/nearest.hpp"

namespace boundary_forest {

// Where a tree's descent ended.
struct DescentEnd {
  NodeId node;
  std::uint32_t compared;  // comparisons on the way
  Leaf at;
};

class QueryCache {
 public:
  // Room for a row of so many bytes and for so many trees, so that asking needs no memory.
  void reserve(std::size_t row_bytes, std::size_t n_trees) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    row_.reserve(row_bytes);
    descents_.reserve(n_trees);
  }

  // What the trees of version `number` answered to a row. Nobody waits: if another thread is here, as
  // it may stay for good in the child of a fork, the row is not remembered.
  void remember(std::uint64_t number, std::span<const std::byte> row,
                std::span<const DescentEnd> descents) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    descents_.clear();  // what is here is of one row, also if memory runs out below
    row_.assign(row.begin(), row.end());
    number_ = number;
    descents_.assign(descents.begin(), descents.end());
  }

  // That, if the row and the version are these; nothing otherwise.
  std::vector<DescentEnd> recall(std::uint64_t number, std::span<const std::byte> row) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || number != number_ || !std::ranges::equal(row, row_)) return {};
    return descents_;
  }

 private:
  std::mutex mutex_;
  std::uint64_t number_ = 0;
  std::vector<std::byte> row_;
  std::vector<DescentEnd> descents_;
};

}  // namespace boundary_forest
