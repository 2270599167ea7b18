// Memory of chunks. Those of 2 MB and more, which are read here and there, ask the system for large pages:
// without, nearly every row that a search of a graph reads would also miss the table of pages. All are
// zero, and begin at a line of cache.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace boundary_forest {

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
