// How the trees answered the last row that was asked alone. A learner that is shown this very row next,
// as by one who tests and then trains row by row, need not descend again: it would take the same way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "boundary_forest/nearest.hpp"

namespace boundary_forest {

class LastAsked {
 public:
  // Where a tree's descent ended.
  struct End {
    NodeId node;
    std::uint32_t compared;  // comparisons on the way
    Leaf at;
  };

  // Room for a row of so many bytes and for so many trees, so that asking needs no memory.
  void make_room(std::size_t row_bytes, std::size_t n_trees) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    row_.reserve(row_bytes);
    ends_.reserve(n_trees);
  }

  // What the trees of version `number` answered to a row. Nobody waits: if another thread is here, as
  // it may have been for ever in the child of a fork, the row is not remembered.
  void remember(std::uint64_t number, std::span<const std::byte> row, std::span<const End> ends) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    ends_.clear();  // what is here is of one row, also if memory runs out below
    row_.assign(row.begin(), row.end());
    number_ = number;
    ends_.assign(ends.begin(), ends.end());
  }

  // That, if the row and the version are these; nothing otherwise.
  std::vector<End> recall(std::uint64_t number, std::span<const std::byte> row) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || number != number_ || !std::ranges::equal(row, row_)) return {};
    return ends_;
  }

 private:
  std::mutex mutex_;
  std::uint64_t number_ = 0;
  std::vector<std::byte> row_;
  std::vector<End> ends_;
};

}  // namespace boundary_forest
