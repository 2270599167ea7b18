// The last arrivals, whether or not a tree kept them: what weights are learned from. (The stored
// examples alone are a biased sample, those near boundaries.)
//
// A window is a value: copies share their chunks, and adding to one leaves the others as they were,
// as rows are only ever appended behind those that a copy knows. So a version has its own, and taking
// a block back means taking the version's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "boundary_forest/types.hpp"

namespace boundary_forest {

class Window {
 public:
  static constexpr std::size_t capacity = 4000;  // arrivals

  Window() = default;
  // Of rows of `row_bytes` bytes with labels of `label_length` numbers.
  Window(std::size_t row_bytes, std::size_t label_length)
      : row_bytes_(row_bytes), label_length_(label_length) {}

  bool is_kept() const { return row_bytes_ > 0; }

  // The arrivals in it are begin() to end().
  Arrival begin() const { return end_ - std::min<Arrival>(end_ - first_, capacity); }
  Arrival end() const { return end_; }

  const std::byte* row(Arrival a) const {
    return chunk(a).rows.data() + a % per_chunk * row_bytes_;
  }
  const double* label(Arrival a) const {
    return chunk(a).labels.data() + a % per_chunk * label_length_;
  }

  // An empty window begins with arrival number `first`.
  void begin_at(Arrival first) { first_ = end_ = first; }

  void add(const std::byte* row, const double* label) {
    if (chunks_.empty() || end_ % per_chunk == 0) {
      while (!chunks_.empty() && (first_chunk_ + 1) * per_chunk <= begin()) {
        chunks_.erase(chunks_.begin());
        ++first_chunk_;
      }
      if (chunks_.empty()) first_chunk_ = end_ / per_chunk;
      chunks_.push_back(std::make_shared<Chunk>());
      chunks_.back()->rows.resize(per_chunk * row_bytes_);
      chunks_.back()->labels.resize(per_chunk * label_length_);
    }
    Chunk& last = *chunks_.back();
    std::memcpy(last.rows.data() + end_ % per_chunk * row_bytes_, row, row_bytes_);
    std::copy_n(label, label_length_, last.labels.data() + end_ % per_chunk * label_length_);
    ++end_;
  }

  std::size_t bytes() const {
    return chunks_.size() * per_chunk * (row_bytes_ + label_length_ * sizeof(double));
  }

 private:
  static constexpr std::size_t per_chunk = 256;  // arrivals

  struct Chunk {
    std::vector<std::byte> rows;
    std::vector<double> labels;
  };

  const Chunk& chunk(Arrival a) const { return *chunks_[a / per_chunk - first_chunk_]; }

  std::size_t row_bytes_ = 0;
  std::size_t label_length_ = 0;
  Arrival first_ = 0;  // earlier ones are not known
  Arrival end_ = 0;
  std::uint64_t first_chunk_ = 0;  // arrivals of chunk c are c * per_chunk on
  std::vector<std::shared_ptr<Chunk>> chunks_;
};

}  // namespace boundary_forest
