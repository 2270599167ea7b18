// Sketches of the stored rows: a few bytes each, from which a bound on distances follows. They only ever tell
// which rows cannot be the closest (code_prefilter.hpp), so they are not part of a forest's state.
//
// What a sketch says is up to the coder, which is fixed for the life of this object; a new coder comes with a new
// object, and readers keep the one of their version. A slot's sketch is written and wiped when its row is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/chunked_array.hpp"
#include "base/types.hpp"
#include "concurrency/thread_pool.hpp"

namespace boundary_forest {

// Distances between codes are in steps; two rows are at least as far apart as their codes, less the errors of both.
struct alignas(cache_line) Sketch {
  static constexpr std::size_t n_codes = 120;
  std::uint8_t codes[n_codes];
  std::int32_t term;  // the sum of code * (code - 256)
  float error;        // in steps; infinite where a row cannot be coded
};
static_assert(sizeof(Sketch) == 128);

class RowCoder {
 public:
  virtual ~RowCoder() = default;
  // sketches[i] becomes that of rows[i].
  virtual void encode(const Position* rows, std::size_t n, Sketch* const* sketches) const = 0;
  virtual double step() const = 0;
  virtual std::size_t bytes() const = 0;
};

class RowSketches {
 public:
  explicit RowSketches(std::shared_ptr<const RowCoder> coder) : coder_(std::move(coder)) {}

  const RowCoder& coder() const { return *coder_; }
  const Sketch& operator[](Slot slot) const { return sketches_[slot]; }
  ChunkedArray<Sketch>::Places places() const { return sketches_.places(); }
  void prefetch(Slot slot) const {
    const Sketch* sketch = sketches_.at(slot);
    __builtin_prefetch(sketch);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(sketch) + cache_line);
  }

  // Those of the slots from `size()` up to n; row(slot) is a slot's position.
  template <class RowOf>
  void extend(Slot n, std::size_t n_threads, RowOf&& row) {
    if (n <= size_) return;
    sketches_.grow_to(n);
    const Slot first = size_;
    parallel_for((n - first + at_once - 1) / at_once, n_threads, [&](std::size_t task) {
      const Slot begin = first + static_cast<Slot>(task) * at_once;
      const Slot count = std::min(n - begin, at_once);
      Position rows[at_once];
      Sketch* out[at_once];
      for (Slot i = 0; i < count; ++i) {
        rows[i] = row(begin + i);
        out[i] = sketches_.at(begin + i);
      }
      coder_->encode(rows, count, out);
    });
    size_ = n;
  }

  Slot size() const { return size_; }
  void truncate(Slot n) { size_ = std::min(size_, n); }
  void shrink_to(Slot n) { sketches_.shrink_to(n); }
  void move(Slot from, Slot to) { sketches_[to] = sketches_[from]; }
  void wipe(Slot slot) {
    if (slot < size_) sketches_[slot] = {};
  }

  // See ChunkedArray.
  void settle(std::uint64_t number) { sketches_.settle(number); }
  void recycle_before(std::uint64_t oldest_read) { sketches_.recycle_before(oldest_read); }

  // May be called by any thread.
  std::size_t bytes() const { return sketches_.bytes() + coder_->bytes(); }

 private:
  static constexpr Slot at_once = 32;

  std::shared_ptr<const RowCoder> coder_;
  Slot size_ = 0;
  ChunkedArray<Sketch> sketches_{9, 1, 3};  // chunks of 64 KB
};

}  // namespace boundary_forest
