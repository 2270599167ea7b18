// An array that grows by chunks and never moves an element.
//
// Invariants: a reader may use any element that was published to it while the writer appends more;
// one writer at a time. Outgrown directories (8 bytes a chunk) are kept until the end, so that no
// reader ever holds a freed one; chunks are freed only by shrink_to, beyond what anyone may read.
// The first chunks may be memory of others, which is read and never written.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace boundary_forest {

template <class T>
class ChunkedArray {
 public:
  // `width` consecutive values make one element; 2^chunk_log2 elements make a chunk.
  explicit ChunkedArray(unsigned chunk_log2, std::size_t width = 1)
      : chunk_log2_(chunk_log2), width_(width) {}

  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;

  ~ChunkedArray() {
    for (std::size_t c = n_foreign_; c < n_chunks_; ++c) delete[] directory_.load()[c];
  }

  T* at(std::size_t i) const {
    const std::size_t within = i & ((std::size_t{1} << chunk_log2_) - 1);
    return directory_.load(std::memory_order_acquire)[i >> chunk_log2_] + within * width_;
  }
  T& operator[](std::size_t i) const { return *at(i); }

  std::size_t width() const { return width_; }
  std::size_t chunk_elements() const { return std::size_t{1} << chunk_log2_; }
  std::size_t capacity() const { return n_chunks_ << chunk_log2_; }

  // An empty array takes `elements` that lie in memory of others as its first. They must stay there
  // as long as it lives; none is touched now.
  void adopt(T* foreign, std::size_t elements) {
    const std::size_t wanted = (elements + chunk_elements() - 1) >> chunk_log2_;
    if (wanted > directory_length_) grow_directory(wanted);
    for (; n_chunks_ < wanted; ++n_chunks_)
      directory_.load(std::memory_order_relaxed)[n_chunks_] =
          foreign + (n_chunks_ << chunk_log2_) * width_;
    n_foreign_ = n_chunks_;
    n_adopted_ = elements;
  }

  // Whether element i is this array's own, and may be written.
  bool is_own(std::size_t i) const { return i >= n_adopted_; }

  void grow_to(std::size_t elements) {
    if constexpr (std::is_copy_assignable_v<T>)
      if (n_foreign_ > 0 && elements > n_adopted_) own_partial_chunk();
    const std::size_t wanted = (elements + chunk_elements() - 1) >> chunk_log2_;
    if (wanted > directory_length_) grow_directory(wanted);
    T** const directory = directory_.load(std::memory_order_relaxed);
    for (; n_chunks_ < wanted; ++n_chunks_) {
      directory[n_chunks_] = new T[chunk_elements() * width_]();
      bytes_ += chunk_bytes();
    }
  }

  // Frees what lies beyond `elements`, but for one chunk, so that a length that goes up and down at
  // a chunk's edge does not allocate each time. Never less than was adopted.
  void shrink_to(std::size_t elements) {
    const std::size_t wanted =
        std::max(((elements + chunk_elements() - 1) >> chunk_log2_) + 1, n_foreign_);
    T** const directory = directory_.load(std::memory_order_relaxed);
    for (; n_chunks_ > wanted; bytes_ -= chunk_bytes()) delete[] directory[--n_chunks_];
  }

  // May be asked by any thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t first_directory = 16;

  std::size_t chunk_bytes() const { return chunk_elements() * width_ * sizeof(T); }

  // If the last adopted chunk is not full, a copy takes its place before more is written behind it.
  // Readers may hold the directory, so that is replaced, not edited.
  void own_partial_chunk() {
    const std::size_t last = n_foreign_ - 1;
    const std::size_t used = n_adopted_ - (last << chunk_log2_);
    if (used == chunk_elements() || last + 1 != n_chunks_) return;
    std::unique_ptr<T[]> own(new T[chunk_elements() * width_]());
    std::copy_n(directory_.load(std::memory_order_relaxed)[last], used * width_, own.get());
    auto directory = std::make_unique<T*[]>(directory_length_);
    std::copy_n(directory_.load(std::memory_order_relaxed), n_chunks_, directory.get());
    directories_.push_back(std::move(directory));
    directories_.back()[last] = own.release();
    directory_.store(directories_.back().get(), std::memory_order_release);
    n_foreign_ = last;
    n_adopted_ = last << chunk_log2_;
    bytes_ += chunk_bytes() + directory_length_ * sizeof(T*);
  }

  void grow_directory(std::size_t wanted) {
    std::size_t length = directory_length_ == 0 ? first_directory : directory_length_;
    while (length < wanted) length *= 2;
    auto larger = std::make_unique<T*[]>(length);
    for (std::size_t c = 0; c < n_chunks_; ++c) larger[c] = directory_.load()[c];
    directories_.push_back(std::move(larger));
    directory_.store(directories_.back().get(), std::memory_order_release);
    directory_length_ = length;
    bytes_ += length * sizeof(T*);
  }

  unsigned chunk_log2_;
  std::size_t width_;
  std::size_t n_chunks_ = 0;
  std::size_t n_foreign_ = 0;  // chunks of others
  std::size_t n_adopted_ = 0;  // elements in them
  std::size_t directory_length_ = 0;
  std::atomic<T**> directory_{nullptr};
  std::atomic<std::size_t> bytes_{0};
  std::vector<std::unique_ptr<T*[]>> directories_;  // the current one last
};

}  // namespace boundary_forest
