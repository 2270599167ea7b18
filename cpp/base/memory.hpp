// How memory is obtained: reserved in advance, on the stack, or in large pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace boundary_forest {

// Reserves capacity so that `n` elements can be added without an allocation; capacity at least doubles.
// A change in several steps reserves before the first of them, so that it cannot fail half-way.
template <class T>
void reserve_more(std::vector<T>& in, std::size_t n) {
  if (in.capacity() - in.size() < n)
    in.reserve(std::max({2 * in.capacity(), in.size() + n, std::size_t{8}}));
}

// Memory for one call: on the stack while it is little, as for one row, and from the heap beyond that.
class StackMemory : public std::pmr::monotonic_buffer_resource {
 public:
  StackMemory() : std::pmr::monotonic_buffer_resource(buffer_, sizeof buffer_) {}

 private:
  std::byte buffer_[8192];
};

// Chunks of 2 MB and more are read at random, so they ask the system for large pages: without these,
// nearly every row that a graph search reads would also miss the page table. Every chunk is zeroed and
// begins at a cache line.
constexpr std::size_t large_page = std::size_t{2} << 20;
constexpr std::size_t cache_line = 64;

constexpr std::size_t chunk_alignment(std::size_t bytes) {
  return bytes >= large_page ? large_page : cache_line;
}

template <class T>
T* allocate_chunk(std::size_t n) {
  if constexpr (!std::is_trivially_destructible_v<T>) return new T[n]();
  const std::size_t bytes = n * sizeof(T);
  void* memory = ::operator new(bytes, std::align_val_t{chunk_alignment(bytes)});
#ifdef __linux__
  if (bytes >= large_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  T* chunk = static_cast<T*>(memory);
  std::uninitialized_value_construct_n(chunk, n);
  return chunk;
}

template <class T>
void free_chunk(T* chunk, std::size_t bytes) {
  if constexpr (!std::is_trivially_destructible_v<T>)
    delete[] chunk;
  else
    ::operator delete(chunk, std::align_val_t{chunk_alignment(bytes)});
}

template <class T>
struct ChunkDeleter {
  std::size_t bytes = 0;
  void operator()(T* chunk) const { free_chunk(chunk, bytes); }
};

template <class T>
using OwnedChunk = std::unique_ptr<T, ChunkDeleter<T>>;

}  // namespace boundary_forest
