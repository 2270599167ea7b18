// The last arrivals, whether or not a tree kept them: what weights are learned from. (The stored
// examples alone are a biased sample, those near boundaries.)
//
// A window is a value: copies share their chunks, and changing one leaves the others as they were. Rows
// are only ever appended behind those that a copy knows, by one of the copies; and what is erased is
// erased in a chunk of the copy's own. So a version has its own, and taking a block back means taking
// the version's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/types.hpp"
#include "store/ids.hpp"

namespace boundary_forest {

class Window {
 public:
  static constexpr std::size_t capacity = 4000;  // arrivals

  Window() = default;
  // Of rows of `row_bytes` bytes with labels of `label_length` numbers.
  Window(std::size_t row_bytes, std::size_t label_length, IdKind ids = IdKind::none)
      : row_bytes_(row_bytes), label_length_(label_length), ids_(ids) {}

  bool is_kept() const { return row_bytes_ > 0; }

  // The arrivals in it are begin() to end(), but for those that were erased.
  Arrival begin() const { return end_ - std::min<Arrival>(end_ - first_, capacity); }
  Arrival end() const { return end_; }
  bool has(Arrival a) const {
    return a >= begin() && a < end_ && !std::binary_search(erased_.begin(), erased_.end(), a);
  }
  // The last n of them, or all that there are.
  std::vector<Arrival> last(std::size_t n) const {
    std::vector<Arrival> arrivals;
    for (Arrival a = end_ - std::min<Arrival>(end_ - begin(), n); a < end_; ++a)
      if (has(a)) arrivals.push_back(a);
    return arrivals;
  }

  // visit(arrival, row) for those from `first` on, in order.
  template <class Visit>
  void for_each_from(Arrival first, Visit&& visit) const {
    Arrival a = std::max(first, begin());
    auto erased = std::lower_bound(erased_.begin(), erased_.end(), a);
    while (a < end_) {
      const Arrival end = std::min(end_, (a / per_chunk + 1) * per_chunk);
      for (const std::byte* at = row(a); a < end; ++a, at += row_bytes_)
        if (erased != erased_.end() && *erased == a)
          ++erased;
        else
          visit(a, at);
    }
  }

  const std::byte* row(Arrival a) const {
    return chunk(a).rows.data() + a % per_chunk * row_bytes_;
  }
  const double* label(Arrival a) const {
    return chunk(a).labels.data() + a % per_chunk * label_length_;
  }
  void get_id(Arrival a, Ids& out, std::size_t i) const {
    const Ids& ids = chunk(a).ids;
    if (ids_ == IdKind::integer) out.integers[i] = ids.integers[a % per_chunk];
    if (ids_ == IdKind::text) out.texts[i] = ids.texts[a % per_chunk];
  }

  // An empty window begins with arrival number `first`.
  void begin_at(Arrival first) { first_ = end_ = first; }

  // The id is the i-th of `ids`, if there are any.
  void add(const std::byte* row, const double* label, const Ids& ids = {}, std::size_t i = 0) {
    Chunk& last = chunk_to_write();
    std::memcpy(last.rows.data() + end_ % per_chunk * row_bytes_, row, row_bytes_);
    std::copy_n(label, label_length_, last.labels.data() + end_ % per_chunk * label_length_);
    if (ids_ == IdKind::integer) last.ids.integers[end_ % per_chunk] = ids.integers[i];
    if (ids_ == IdKind::text) last.ids.texts[end_ % per_chunk] = ids.texts[i];
    ++end_;
  }
  // An arrival that was erased before.
  void skip() {
    chunk_to_write();
    erased_.push_back(end_++);
  }

  // Leaves nothing of it here; other copies that have it are not changed.
  void erase(Arrival a) {
    std::shared_ptr<Chunk>& at = chunks_[a / per_chunk - first_chunk_];
    at = std::make_shared<Chunk>(*at);
    std::fill_n(at->rows.data() + a % per_chunk * row_bytes_, row_bytes_, std::byte{0});
    std::fill_n(at->labels.data() + a % per_chunk * label_length_, label_length_, 0.0);
    if (ids_ == IdKind::integer) at->ids.integers[a % per_chunk] = 0;
    if (ids_ == IdKind::text) at->ids.texts[a % per_chunk] = {};
    erased_.insert(std::lower_bound(erased_.begin(), erased_.end(), a), a);
  }

  std::size_t bytes() const {
    const std::size_t id_bytes = ids_ == IdKind::none      ? 0
                                 : ids_ == IdKind::integer ? sizeof(std::int64_t)
                                                           : sizeof(std::string);
    return chunks_.size() * per_chunk * (row_bytes_ + label_length_ * sizeof(double) + id_bytes);
  }

 private:
  static constexpr std::size_t per_chunk = 256;  // arrivals

  struct Chunk {
    std::vector<std::byte> rows;
    std::vector<double> labels;
    Ids ids;
  };

  const Chunk& chunk(Arrival a) const { return *chunks_[a / per_chunk - first_chunk_]; }

  Chunk& chunk_to_write() {
    if (!chunks_.empty() && end_ % per_chunk != 0) return *chunks_.back();
    while (!chunks_.empty() && (first_chunk_ + 1) * per_chunk <= begin()) {
      chunks_.erase(chunks_.begin());
      ++first_chunk_;
    }
    erased_.erase(erased_.begin(), std::lower_bound(erased_.begin(), erased_.end(), begin()));
    if (chunks_.empty()) first_chunk_ = end_ / per_chunk;
    auto chunk = std::make_shared<Chunk>();
    chunk->rows.resize(per_chunk * row_bytes_);
    chunk->labels.resize(per_chunk * label_length_);
    if (ids_ == IdKind::integer) chunk->ids.integers.resize(per_chunk);
    if (ids_ == IdKind::text) chunk->ids.texts.resize(per_chunk);
    chunks_.push_back(std::move(chunk));
    return *chunks_.back();
  }

  std::size_t row_bytes_ = 0;
  std::size_t label_length_ = 0;
  IdKind ids_ = IdKind::none;
  Arrival first_ = 0;  // earlier ones are not known
  Arrival end_ = 0;
  std::uint64_t first_chunk_ = 0;  // arrivals of chunk c are c * per_chunk on
  std::vector<std::shared_ptr<Chunk>> chunks_;
  std::vector<Arrival> erased_;  // ascending
};

}  // namespace boundary_forest
