// A block of positions to descend with: queries from outside, or examples of the store.
//
// A query is compared in the store's element type where that holds all its values exactly, else in
// float64 (or float32, if rows are short for it and it holds them): never rounded, and a row gets the
// same answer in whatever type it arrives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "store/example_store.hpp"

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

  // Examples of the store, staged ones too: n from slot `first` on, or those of the given slots,
  // which must outlive this.
  QueryRows(const ExampleStore& store, Slot first, std::size_t n, Memory* memory = heap());
  QueryRows(const ExampleStore& store, std::span<const Slot> slots, Memory* memory = heap());

  // The slot of example i.
  Slot slot(std::size_t i) const {
    return slots_.empty() ? first_ + static_cast<Slot>(i) : slots_[i];
  }

  std::size_t size() const { return positions_.size(); }
  std::size_t n_features() const { return n_features_; }
  const Position& position(std::size_t i) const { return positions_[i]; }

  // The row's fingerprint, computed when first needed: only ties need it. Threads may compute it
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
  Slot first_ = nothing;
  std::span<const Slot> slots_;
  std::pmr::vector<Position> positions_;
  std::pmr::vector<std::byte> converted_;
  mutable std::pmr::vector<std::atomic<std::uint64_t>> fingerprints_;  // 0: not yet computed
};

// One row of a block on its way through a tree, as the tree stood at some moment.
struct Query {
  const QueryRows& rows;
  std::size_t i;       // the row
  std::uint64_t seen;  // examples that had arrived
  NodeId n_nodes;      // of the tree: later ones are invisible

  const Position& y() const { return rows.position(i); }
};

}  // namespace boundary_forest
