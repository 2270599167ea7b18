// Positions and labels of the stored examples: one copy for all trees, append-only, never moved
// once published (promise 5).
//
// A block of new examples is staged behind the published ones, so that trees refer to any example
// by its slot alone; when the block ends, those that no tree kept are dropped and the others close
// up, in order of arrival.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "boundary_forest/chunked_array.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

// The rows of a saved forest. With an owner they stay where they are, are never written, and none is
// touched before it is asked for; else they are copied.
struct SavedRows {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner = {};
  bool in_file = false;  // mapped, so that they do not count as memory
};

class ExampleStore {
 public:
  ExampleStore(ElementType type, std::size_t n_features, std::size_t label_length)
      : type_(type),
        n_features_(n_features),
        label_length_(label_length),
        rows_(rows_log2(n_features * size_of(type)), n_features * size_of(type)),
        labels_(8, label_length),
        arrivals_(8) {}

  ElementType element_type() const { return type_; }
  std::size_t n_features() const { return n_features_; }
  std::size_t label_length() const { return label_length_; }

  const std::byte* row(Slot slot) const { return rows_.at(slot); }
  // Short enough that a group of them fits into the second cache beside what is in use.
  bool has_short_rows() const { return rows_.width() <= 1024; }
  void prefetch(Slot slot) const {
    const std::byte* row = this->row(slot);
    for (std::size_t at = 0; at < rows_.width(); at += 64) __builtin_prefetch(row + at, 0, 2);
  }
  const double* label(Slot slot) const { return labels_.at(slot); }
  Arrival arrival(Slot slot) const { return arrivals_[slot]; }

  Slot size() const { return size_; }  // the writer's view; readers go by their prefix

  // Copies n examples behind the last one; returns the slot of the first.
  Slot stage(const std::byte* rows, const double* labels, std::size_t n, Arrival first_arrival) {
    if (n >= nothing - size_) throw std::length_error("a forest stores at most 2^32 - 2 examples");
    rows_.grow_to(size_ + n);
    labels_.grow_to(size_ + n);
    arrivals_.grow_to(size_ + n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t slot = size_ + i;
      std::memcpy(rows_.at(slot), rows + i * rows_.width(), rows_.width());
      if (label_length_ > 0)
        std::memcpy(labels_.at(slot), labels + i * label_length_, label_length_ * sizeof(double));
      arrivals_[slot] = first_arrival + i;
    }
    const Slot first = size_;
    size_ += static_cast<Slot>(n);
    return first;
  }

  // Puts n saved examples into a store that is empty.
  void restore(std::size_t n, const SavedRows& rows, const double* labels,
               const Arrival* arrivals) {
    labels_.grow_to(n);
    arrivals_.grow_to(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(labels + i * label_length_, label_length_, labels_.at(i));
      arrivals_[i] = arrivals[i];
    }
    if (rows.owner) {
      rows_.adopt(const_cast<std::byte*>(rows.data), n);
      owner_ = rows.owner;
      owned_bytes_ = rows.in_file ? 0 : rows.bytes;
    } else {
      rows_.grow_to(n);
      for (std::size_t i = 0; i < n; i += rows_.chunk_elements())
        std::memcpy(rows_.at(i), rows.data + i * rows_.width(),
                    std::min(n - i, rows_.chunk_elements()) * rows_.width());
    }
    size_ = static_cast<Slot>(n);
  }

  // The rows from slot `first` on that lie side by side, up to slot `end`.
  std::span<const std::byte> rows_from(Slot first, Slot end) const {
    const std::size_t chunk_end = (first / rows_.chunk_elements() + 1) * rows_.chunk_elements();
    return {row(first), (std::min<std::size_t>(chunk_end, end) - first) * rows_.width()};
  }

  // Drops the staged examples from `first` on that are not marked; where[i] becomes the slot of
  // example first + i, or `nothing`.
  void keep_marked(Slot first, std::span<const char> marked, std::span<Slot> where) {
    Slot to = first;
    for (std::size_t i = 0; i < marked.size(); ++i) {
      where[i] = nothing;
      if (!marked[i]) continue;
      const std::size_t from = first + i;
      if (from != to) {
        std::memcpy(rows_.at(to), rows_.at(from), rows_.width());
        std::copy_n(labels_.at(from), label_length_, labels_.at(to));
        arrivals_[to] = arrivals_[from];
      }
      where[i] = to++;
    }
    size_ = to;
  }

  // Forgets the examples from `size` on; only for ones that were never published.
  void truncate(Slot size) { size_ = size; }

  // Gives back the memory that staging needed.
  void shrink() {
    rows_.shrink_to(size_);
    labels_.shrink_to(size_);
    arrivals_.shrink_to(size_);
  }

  std::size_t position_bytes() const { return rows_.bytes() + owned_bytes_; }
  std::size_t example_bytes() const { return labels_.bytes() + arrivals_.bytes(); }

 private:
  // Chunks of about 64 KB.
  static unsigned rows_log2(std::size_t row_bytes) {
    unsigned log2 = 0;
    while (log2 < 12 && (row_bytes << (log2 + 1)) <= 65536) ++log2;
    return log2;
  }

  ElementType type_;
  std::size_t n_features_;
  std::size_t label_length_;
  std::shared_ptr<const void> owner_;  // of rows that lie elsewhere
  std::size_t owned_bytes_ = 0;        // of such rows, unless they are in a file
  ChunkedArray<std::byte> rows_;
  ChunkedArray<double> labels_;  // label_length values an example
  ChunkedArray<Arrival> arrivals_;
  Slot size_ = 0;
};

}  // namespace boundary_forest
