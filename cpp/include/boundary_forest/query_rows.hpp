// A block of positions to descend with: queries from outside, or staged examples.
//
// A query is compared in the store's element type where that holds all its values exactly, else in
// float64: never rounded, and a row gets the same answer in whatever type it arrives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "boundary_forest/example_store.hpp"
#include "boundary_forest/metric.hpp"
#include "boundary_forest/rng.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

// Rows as a caller hands them over: n rows of n_features elements, contiguous.
struct RowsView {
  const std::byte* data;
  std::size_t n;
  ElementType type;

  RowsView slice(std::size_t begin, std::size_t count, std::size_t n_features) const {
    return {data + begin * n_features * size_of(type), count, type};
  }
};

class QueryRows {
 public:
  using Memory = std::pmr::memory_resource;

  // Queries from outside; `rows` must outlive this.
  QueryRows(const RowsView& rows, const ExampleStore& store, Memory* memory = heap());

  // Staged examples of the store.
  QueryRows(const ExampleStore& store, Slot first, std::size_t n, Memory* memory = heap());

  std::size_t size() const { return positions_.size(); }
  std::size_t n_features() const { return n_features_; }
  const Position& position(std::size_t i) const { return positions_[i]; }

  // The row's fingerprint, computed when first asked for: only ties need it. Threads may compute it
  // twice, to the same value.
  std::uint64_t fingerprint(std::size_t i) const {
    std::uint64_t hash = fingerprints_[i].load(std::memory_order_relaxed);
    if (hash == 0) {
      hash = with_element_type(positions_[i].type, [&](auto zero) {
        return row_fingerprint(reinterpret_cast<const decltype(zero)*>(positions_[i].data),
                               n_features_);
      });
      fingerprints_[i].store(hash, std::memory_order_relaxed);
    }
    return hash;
  }

 private:
  static Memory* heap() { return std::pmr::get_default_resource(); }

  std::size_t n_features_;
  std::pmr::vector<Position> positions_;
  std::pmr::vector<std::byte> converted_;
  mutable std::pmr::vector<std::atomic<std::uint64_t>> fingerprints_;  // 0: not yet computed
};

}  // namespace boundary_forest
