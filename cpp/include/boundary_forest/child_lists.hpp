// The children of a tree's nodes: short arrays of node ids, contiguous so that a descent reads them
// in one go, and grown by moving to a larger array.
//
// A list is [count, id, id, ...] in order of creation. Its capacity follows from its count, so it
// is not stored: lists grow through 1, 2, 3, 5, 7, 11, 15, 23, 31, 47, 63 children (then by half),
// never beyond k. With 12 bytes of Node that is at most 20 bytes per node (promise 5). Invariants:
// a list only gains ids, and one that is outgrown stays as it was until recycle() says that nobody
// reads it any more; so a reader sees every child that had been published to it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "boundary_forest/chunked_array.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

class ChildLists {
 public:
  using Word = std::atomic<std::uint32_t>;
  using Ref = std::uint32_t;  // `nothing` is the empty list

  struct View {
    const Word* ids;
    std::uint32_t count;
    NodeId operator[](std::uint32_t i) const { return ids[i].load(std::memory_order_relaxed); }
  };

  explicit ChildLists(std::uint32_t k) : k_(k), pool_(chunk_log2), large_(4) {
    free_.fill(nothing);
  }

  View view(Ref list) const {
    if (list == nothing) return {nullptr, 0};
    const Word* words = locate(list);
    return {words + 1, words[0].load(std::memory_order_acquire)};
  }

  // The list with `child` added: the same list, or a larger one if it was full. The caller keeps
  // the outgrown one until it may be recycled.
  Ref append(Ref list, NodeId child) {
    if (list == nothing) {
      const Ref first = allocate(1);
      locate(first)[1].store(child, std::memory_order_relaxed);
      locate(first)[0].store(1, std::memory_order_release);
      return first;
    }
    Word* words = locate(list);
    const std::uint32_t count = words[0].load(std::memory_order_relaxed);
    if (count < capacity_for(count)) {
      words[1 + count].store(child, std::memory_order_relaxed);
      words[0].store(count + 1, std::memory_order_release);
      return list;
    }
    const Ref larger = allocate(capacity_for(count + 1));
    Word* to = locate(larger);
    for (std::uint32_t i = 1; i <= count; ++i)
      to[i].store(words[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    to[1 + count].store(child, std::memory_order_relaxed);
    to[0].store(count + 1, std::memory_order_release);
    return larger;
  }

  // Undoes the last append to this list; never called on one that append() has just moved.
  void remove_last(Ref list) {
    Word* words = locate(list);
    words[0].store(words[0].load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  // Gives the list's memory back. Only for lists that no reader can hold.
  void recycle(Ref list) {
    if (list == nothing) return;
    if (is_large(list)) {
      large_bytes_ -= (1 + capacity_of_large(list)) * sizeof(Word);
      large_[list & ~large_bit].reset();
      free_large_.push_back(list);
    } else {
      const std::uint32_t count = locate(list)[0].load(std::memory_order_relaxed);
      add_free(class_of(1 + capacity_for(count)), list);
    }
  }

  // May be asked by any thread.
  std::size_t bytes() const { return pool_.bytes() + large_.bytes() + large_bytes_; }

 private:
  static constexpr unsigned chunk_log2 = 10;
  static constexpr std::uint32_t large_bit = 0x80000000U;
  static constexpr std::array<std::uint32_t, 11> class_words = {2,  3,  4,  6,  8, 12,
                                                                16, 24, 32, 48, 64};

  static bool is_large(Ref list) { return (list & large_bit) != 0; }

  Word* locate(Ref list) const {
    return is_large(list) ? large_[list & ~large_bit].get() : pool_.at(list);
  }

  // How many children the list that holds `count` of them has room for.
  std::uint32_t capacity_for(std::uint32_t count) const {
    for (const std::uint32_t words : class_words)
      if (count < words) return std::min(words - 1, k_);
    std::uint64_t capacity = class_words.back();
    while (capacity < count) capacity += capacity / 2;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(capacity, k_));
  }

  std::uint32_t capacity_of_large(Ref list) const {
    return capacity_for(locate(list)[0].load(std::memory_order_relaxed));
  }

  static std::size_t class_of(std::uint32_t words) {
    return static_cast<std::size_t>(
        std::lower_bound(class_words.begin(), class_words.end(), words) - class_words.begin());
  }

  // Free lists of one capacity are chained through their second word.
  void add_free(std::size_t size_class, Ref list) {
    locate(list)[1].store(free_[size_class], std::memory_order_relaxed);
    free_[size_class] = list;
  }

  Ref allocate(std::uint32_t capacity) {
    const std::uint32_t words = 1 + capacity;
    if (words > class_words.back()) return allocate_large(words);
    Ref& free = free_[class_of(words)];
    if (free != nothing) {
      const Ref list = free;
      free = locate(list)[1].load(std::memory_order_relaxed);
      return list;
    }
    if (end_ + words > pool_.capacity()) start_chunk();
    const Ref list = end_;
    end_ += words;
    return list;
  }

  // The rest of a chunk that is too short for the next list becomes shorter lists.
  void start_chunk() {
    for (std::size_t c = class_words.size(); c-- > 0;) {
      const std::uint32_t words = std::min(class_words[c], full_words());
      while (class_of(words) == c && end_ + words <= pool_.capacity()) {
        add_free(c, end_);
        end_ += words;
      }
    }
    end_ = static_cast<Ref>(pool_.capacity());
    pool_.grow_to(pool_.capacity() + 1);
  }

  std::uint32_t full_words() const { return k_ == unlimited ? unlimited : k_ + 1; }

  Ref allocate_large(std::uint32_t words) {
    if (free_large_.empty()) {
      large_.grow_to(n_large_ + std::size_t{1});
      free_large_.push_back(n_large_++ | large_bit);
    }
    const Ref list = free_large_.back();
    large_[list & ~large_bit] = std::make_unique<Word[]>(words);
    free_large_.pop_back();
    large_bytes_ += words * sizeof(Word);
    return list;
  }

  std::uint32_t k_;
  ChunkedArray<Word> pool_;
  Ref end_ = 0;                               // first unused word of the pool
  std::array<Ref, class_words.size()> free_;  // the first free list of each capacity
  ChunkedArray<std::unique_ptr<Word[]>> large_;
  std::vector<Ref> free_large_;
  std::uint32_t n_large_ = 0;
  std::atomic<std::size_t> large_bytes_{0};
};

}  // namespace boundary_forest
