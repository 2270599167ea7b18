// An array that grows by chunks and never moves an element that is being read.
//
// The first chunk may begin small and double until it is a chunk like the others, so that many small
// arrays cost little; larger ones never double.
//
// Invariants: a reader may use any element that was published to it while the writer appends more;
// one writer at a time. What is outgrown (a smaller first chunk, a shorter directory) is kept until
// the writer knows that no reader can hold it: settle() and recycle_before(), by publication number
// as everything else. Chunks are freed only by shrink_to, beyond what anyone may read. The first
// chunks may be memory of others, which is read and never written.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory.hpp"

namespace boundary_forest {

// How an element gets into a larger chunk: by copying, because readers may still use the old one.
template <class T>
void copy_element(const T& from, T& to) {
  to = from;
}
template <class T>
void copy_element(const std::atomic<T>& from, std::atomic<T>& to) {
  to.store(from.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

template <class T>
class ChunkedArray {
 public:
  // `width` consecutive values make one element; 2^chunk_log2 elements make a chunk, but the first
  // one begins with 2^first_log2.
  ChunkedArray(unsigned chunk_log2, std::size_t width, unsigned first_log2)
      : chunk_log2_(chunk_log2), width_(width), first_elements_(std::size_t{1} << first_log2) {}
  explicit ChunkedArray(unsigned chunk_log2, std::size_t width = 1)
      : ChunkedArray(chunk_log2, width, chunk_log2) {}

  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;

  ~ChunkedArray() {
    for (std::size_t c = n_foreign_; c < n_chunks_; ++c) free_chunk(chunk(c), bytes_of(c));
  }

  T* at(std::size_t i) const {
    const std::size_t within = i & ((std::size_t{1} << chunk_log2_) - 1);
    const Chunk* const directory = directory_.load(std::memory_order_acquire);
    return directory[i >> chunk_log2_].load(std::memory_order_acquire) + within * width_;
  }
  T& operator[](std::size_t i) const { return *at(i); }

  // Where elements are, for a loop over many: it knows what was there when it was made.
  class Places {
   public:
    // A chunk may be replaced by a larger copy while the loop runs, whose content must be seen then:
    // ThreadSanitizer found searches that did not wait for it.
    T* at(std::size_t i) const {
      return directory_[i >> log2_].load(std::memory_order_acquire) + (i & mask_) * width_;
    }

   private:
    friend ChunkedArray;
    explicit Places(const ChunkedArray& array)
        : directory_(array.directory_.load(std::memory_order_acquire)),
          log2_(array.chunk_log2_),
          mask_((std::size_t{1} << array.chunk_log2_) - 1),
          width_(array.width_) {}

    const std::atomic<T*>* directory_;
    unsigned log2_;
    std::size_t mask_;
    std::size_t width_;
  };
  Places places() const { return Places(*this); }

  std::size_t width() const { return width_; }
  std::size_t chunk_elements() const { return std::size_t{1} << chunk_log2_; }
  std::size_t capacity() const {
    return n_chunks_ == 1 && n_foreign_ == 0 ? first_elements_ : n_chunks_ << chunk_log2_;
  }

  // An empty array takes `elements` that lie in memory of others as its first. They must stay there
  // as long as it lives; none is touched now.
  void adopt(T* foreign, std::size_t elements) {
    const std::size_t wanted = (elements + chunk_elements() - 1) >> chunk_log2_;
    if (wanted > directory_length_) grow_directory(wanted);
    for (; n_chunks_ < wanted; ++n_chunks_)
      set_chunk(n_chunks_, foreign + (n_chunks_ << chunk_log2_) * width_);
    first_elements_ = chunk_elements();
    n_foreign_ = n_chunks_;
    n_adopted_ = elements;
  }

  // Whether element i is this array's own, and may be written.
  bool is_own(std::size_t i) const { return i >= n_adopted_; }

  void grow_to(std::size_t elements) {
    if (n_foreign_ > 0 && elements > n_adopted_) own_partial_chunk();
    const std::size_t wanted = (elements + chunk_elements() - 1) >> chunk_log2_;
    if (wanted > directory_length_) grow_directory(wanted);
    if (n_foreign_ == 0 && n_chunks_ > 0 && elements > first_elements_) grow_first(elements);
    for (; n_chunks_ < wanted; ++n_chunks_) {
      if (n_chunks_ == 0)
        while (first_elements_ < elements && first_elements_ < chunk_elements())
          first_elements_ *= 2;
      set_chunk(n_chunks_, allocate_chunk<T>(elements_of(n_chunks_) * width_));
      bytes_ += bytes_of(n_chunks_);
    }
  }

  // Frees what lies beyond `elements`, but for one chunk, so that a length that goes up and down at
  // a chunk's edge does not allocate each time. Never less than was adopted.
  void shrink_to(std::size_t elements) {
    const std::size_t wanted =
        std::max(((elements + chunk_elements() - 1) >> chunk_log2_) + 1, n_foreign_);
    for (; n_chunks_ > wanted; bytes_ -= bytes_of(n_chunks_)) {
      --n_chunks_;
      free_chunk(chunk(n_chunks_), bytes_of(n_chunks_));
    }
  }

  // What was outgrown since the last call may be read in versions up to `number`, and is freed once
  // none of them is read any more.
  void settle(std::uint64_t number) {
    for (; n_settled_ < outgrown_.size(); ++n_settled_) outgrown_[n_settled_].number = number;
  }
  void recycle_before(std::uint64_t oldest_read) {
    std::size_t n = 0;
    for (; n < n_settled_ && outgrown_[n].number < oldest_read; ++n) bytes_ -= outgrown_[n].bytes;
    outgrown_.erase(outgrown_.begin(), outgrown_.begin() + static_cast<std::ptrdiff_t>(n));
    n_settled_ -= n;
  }

  // May be called by any thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Chunk = std::atomic<T*>;
  static constexpr std::size_t first_directory = 2;

  T* chunk(std::size_t c) const {
    return directory_.load(std::memory_order_relaxed)[c].load(std::memory_order_relaxed);
  }
  void set_chunk(std::size_t c, T* to) {
    directory_.load(std::memory_order_relaxed)[c].store(to, std::memory_order_release);
  }
  std::size_t elements_of(std::size_t c) const {
    return c == 0 ? first_elements_ : chunk_elements();
  }
  std::size_t bytes_of(std::size_t c) const { return elements_of(c) * width_ * sizeof(T); }

  // A larger copy takes the place of the first chunk.
  void grow_first(std::size_t elements) {
    if (first_elements_ == chunk_elements()) return;
    const std::size_t before = first_elements_;
    std::size_t after = before;
    while (after < elements && after < chunk_elements()) after *= 2;
    replace(0, before, after);
    first_elements_ = after;
  }

  // If the last adopted chunk is not full, a copy takes its place before more is written behind it.
  void own_partial_chunk() {
    const std::size_t last = n_foreign_ - 1;
    const std::size_t used = n_adopted_ - (last << chunk_log2_);
    if (used == chunk_elements() || last + 1 != n_chunks_) return;
    OwnedChunk<T> own = copied(chunk(last), used, chunk_elements());
    n_foreign_ = last;
    n_adopted_ = last << chunk_log2_;
    set_chunk(last, own.release());  // what it replaces is not kept to be freed
    bytes_ += chunk_elements() * width_ * sizeof(T);
  }

  OwnedChunk<T> copied(const T* from, std::size_t used, std::size_t elements) const {
    OwnedChunk<T> to(allocate_chunk<T>(elements * width_), {elements * width_ * sizeof(T)});
    for (std::size_t i = 0; i < used * width_; ++i) copy_element(from[i], to.get()[i]);
    return to;
  }

  void replace(std::size_t c, std::size_t used, std::size_t elements) {
    OwnedChunk<T> larger = copied(chunk(c), used, elements);
    reserve_more(outgrown_, 1);
    const std::size_t bytes = used * width_ * sizeof(T);
    outgrown_.push_back({0, bytes, OwnedChunk<T>(chunk(c), {bytes}), nullptr});
    set_chunk(c, larger.release());
    bytes_ += elements * width_ * sizeof(T);
  }

  void grow_directory(std::size_t wanted) {
    std::size_t length = directory_length_ == 0 ? first_directory : directory_length_;
    while (length < wanted) length *= 2;
    auto larger = std::make_unique<Chunk[]>(length);
    reserve_more(outgrown_, 1);
    for (std::size_t c = 0; c < n_chunks_; ++c)
      larger[c].store(chunk(c), std::memory_order_relaxed);
    if (current_)
      outgrown_.push_back({0, directory_length_ * sizeof(Chunk), nullptr, std::move(current_)});
    current_ = std::move(larger);
    directory_.store(current_.get(), std::memory_order_release);
    directory_length_ = length;
    bytes_ += length * sizeof(Chunk);
  }

  struct OutgrownTable {
    std::uint64_t number;
    std::size_t bytes;
    OwnedChunk<T> chunk;
    std::unique_ptr<Chunk[]> directory;
  };

  unsigned chunk_log2_;
  std::size_t width_;
  std::size_t first_elements_;  // of the first chunk
  std::size_t n_chunks_ = 0;
  std::size_t n_foreign_ = 0;  // chunks of others
  std::size_t n_adopted_ = 0;  // elements in them
  std::size_t directory_length_ = 0;
  std::unique_ptr<Chunk[]> current_;
  std::atomic<Chunk*> directory_{nullptr};
  std::atomic<std::size_t> bytes_{0};
  std::vector<OutgrownTable> outgrown_;
  std::size_t n_settled_ = 0;  // of them
};

}  // namespace boundary_forest
