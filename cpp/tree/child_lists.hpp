// The children of a tree's nodes: short arrays of node ids, contiguous so that a descent reads them
// in one go, and grown by moving to a larger array.
//
// An only child needs no list: it is in the reference itself. A list is [count, id, id, ...] in order
// of creation, in 4 to 64 words, in steps of 4 and from 32 words on of 8; its capacity follows from its
// count, so it is not stored. (Longer lists, for a large k, are allocated one by one and grow by a
// quarter.) That is at most 8 bytes a child, which with 9 bytes of a node makes 17 (promise 5).
// Memory is a buddy system: free places have 4, 8, 16, 32 or 64 words, a place's two halves are places,
// and neighbours that are both free join again. A list takes the beginning of a place; what is left of it
// stays free. Without joining, lists that grow at the same pace leave all their shorter selves behind: 23
// bytes a node were seen on clusters that fill side by side.
//
// Invariants: a list only gains ids, and one that is outgrown stays as it was until recycle() says
// that nobody reads it any more; so a reader sees every child that had been published to it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/chunked_array.hpp"
#include "base/types.hpp"

namespace boundary_forest {

class ChildLists {
 public:
  using Word = std::atomic<std::uint32_t>;
  // `nothing` is the empty list. The two highest bits tell a place in the pool (0x) from a long list
  // (10) and an only child (11).
  using Ref = std::uint32_t;
  static constexpr NodeId most_nodes = 0x3FFFFFFFU;  // so that an only child fits

  // An outgrown list, and the number of the last publication that may have it.
  struct Retired {
    std::uint64_t number;
    Ref list;
  };

  struct View {
    const Word* ids;  // null for an only child
    NodeId only_child;
    std::uint32_t count;

    NodeId operator[](std::uint32_t i) const {
      return ids == nullptr ? only_child : ids[i].load(std::memory_order_relaxed);
    }
  };

  // Chunks of 2^chunk_log2 words, of which there are many: small ones for each of many trees.
  explicit ChildLists(std::uint32_t k, unsigned chunk_log2 = 9)
      : k_(k), pool_(chunk_log2, 1, first_chunk_log2), large_(4) {
    free_.fill(nothing);
  }

  ~ChildLists() {
    for (std::uint32_t i = 0; i < n_large_; ++i) delete[] large_[i];
  }
  ChildLists(const ChildLists&) = delete;
  ChildLists& operator=(const ChildLists&) = delete;

  View view(Ref list) const {
    if (list == nothing) return {nullptr, nothing, 0};
    if (is_only_child(list)) return {nullptr, list & most_nodes, 1};
    const Word* words = locate(list);
    return {words + 1, nothing, words[0].load(std::memory_order_acquire)};
  }

  void prefetch(Ref list) const {
    if (!is_only_child(list)) __builtin_prefetch(locate(list));
  }

  // The list with `child` added: the same list, or another one if it was full. The caller keeps the
  // outgrown one until it may be recycled.
  Ref append(Ref list, NodeId child) {
    if (list == nothing) return child | only_child_bits;
    const View before = view(list);
    if (!is_only_child(list) && before.count < capacity_for(before.count)) {
      Word* words = locate(list);
      words[1 + before.count].store(child, std::memory_order_relaxed);
      words[0].store(before.count + 1, std::memory_order_release);
      return list;
    }
    const Ref larger = allocate(capacity_for(before.count + 1));
    Word* words = locate(larger);
    for (std::uint32_t i = 0; i < before.count; ++i)
      words[1 + i].store(before[i], std::memory_order_relaxed);
    words[1 + before.count].store(child, std::memory_order_relaxed);
    words[0].store(before.count + 1, std::memory_order_release);
    return larger;
  }

  // A list of these children, at least one, which is what appending them one by one would lead to.
  Ref make(const NodeId* children, std::uint32_t count) {
    if (count == 1) return *children | only_child_bits;
    const Ref list = allocate(capacity_for(count));
    Word* words = locate(list);
    for (std::uint32_t i = 0; i < count; ++i)
      words[1 + i].store(children[i], std::memory_order_relaxed);
    words[0].store(count, std::memory_order_release);
    return list;
  }

  // Undoes the last append to this list; never called on one that append() has just moved.
  void remove_last(Ref list) {
    Word* words = locate(list);
    words[0].store(words[0].load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  static bool has_memory(Ref list) { return !is_only_child(list); }

  // Gives the list's memory back, if it has any. Only for lists that no reader can hold.
  void recycle(Ref list) {
    if (!has_memory(list)) return;
    const std::uint32_t count = locate(list)[0].load(std::memory_order_relaxed);
    if (is_large(list)) {
      large_bytes_ -= (1 + capacity_for(count)) * sizeof(Word);
      delete[] std::exchange(large_[list & ~large_bit], nullptr);
      free_large_.push_back(list);
    } else {
      free_words(list, list + words_for(count));
    }
  }

  // See ChunkedArray.
  void settle(std::uint64_t number) {
    pool_.settle(number);
    large_.settle(number);
  }
  void recycle_before(std::uint64_t oldest_read) {
    pool_.recycle_before(oldest_read);
    large_.recycle_before(oldest_read);
  }

  // May be called by any thread.
  std::size_t bytes() const { return pool_.bytes() + large_.bytes() + large_bytes_; }

 private:
  static constexpr unsigned n_classes = 5;         // class c has 4 << c words
  static constexpr unsigned first_chunk_log2 = 6;  // one list of the largest class
  static constexpr std::uint32_t large_bit = 0x80000000U;
  static constexpr std::uint32_t only_child_bits = 0xC0000000U;

  static constexpr std::uint32_t words_of(unsigned size_class) { return 4U << size_class; }
  static constexpr std::uint32_t longest = (4U << (n_classes - 1)) - 1;  // children, in the pool
  static bool is_large(Ref list) { return (list & only_child_bits) == large_bit; }
  // So is `nothing`, which is no child either way.
  static bool is_only_child(Ref list) { return (list & only_child_bits) == only_child_bits; }

  Word* locate(Ref list) const {
    return is_large(list) ? large_[list & ~large_bit] : pool_.at(list);
  }

  // The least class of places that hold so many words.
  static unsigned class_of(std::uint32_t words) {
    return words <= 4 ? 0 : static_cast<unsigned>(std::bit_width(words - 1)) - 2;
  }

  // The words of the list in the pool that holds `count` children.
  static std::uint32_t words_for(std::uint32_t count) {
    const std::uint32_t step = count < 32 ? 4 : 8;
    return (count + step) / step * step;
  }

  // How many children the list that holds `count` of them has room for.
  std::uint32_t capacity_for(std::uint32_t count) const {
    if (count <= longest) return std::min(words_for(count) - 1, k_);
    std::uint64_t capacity = longest + 1;
    while (capacity < count) capacity += capacity / 4;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(capacity, k_));
  }

  Ref allocate(std::uint32_t capacity) {
    if (capacity > longest) return allocate_large(1 + capacity);
    const std::uint32_t words = words_for(capacity);
    const unsigned wanted = class_of(words);
    unsigned found = wanted;
    while (found < n_classes && free_[found] == nothing) ++found;
    if (found == n_classes) {
      add_chunk();
      found = n_classes - 1;
    }
    const Ref list = free_[found];
    remove_free(list, found);
    while (found > wanted) {
      --found;
      add_free(list + words_of(found), found);
    }
    free_words(list + words, list + words_of(wanted));
    return list;
  }

  // As the largest places that there can be. (What follows a list in its place cannot join it: ids and counts
  // have no mark.)
  void free_words(Ref begin, Ref end) {
    while (begin < end) {
      unsigned size_class = n_classes - 1;
      while (begin % words_of(size_class) != 0 || begin + words_of(size_class) > end) --size_class;
      const Ref next = begin + words_of(size_class);
      join_free(begin, size_class);
      begin = next;
    }
  }

  void add_chunk() {
    const std::size_t begin = pool_.capacity();
    if (begin + pool_.chunk_elements() > 4 * std::size_t{no_four})
      throw std::length_error("a tree's child lists are full, at more than 130 million nodes");
    pool_.grow_to(begin + 1);
    for (std::size_t at = begin; at < pool_.capacity(); at += words_of(n_classes - 1))
      add_free(static_cast<Ref>(at), n_classes - 1);
  }

  // Free lists of a class are chained both ways. Their first word has a mark that no count has, the
  // class and the one before (in fours of words); their second word the next.
  static constexpr std::uint32_t free_mark = 0x80000000U;
  static constexpr std::uint32_t no_four = 0x0FFFFFFFU;

  static std::uint32_t header(unsigned size_class, Ref before) {
    return free_mark | (size_class << 28) | (before == nothing ? no_four : before / 4);
  }

  bool is_free(Ref list, unsigned size_class) const {
    const std::uint32_t first = pool_[list].load(std::memory_order_relaxed);
    return (first & ~no_four) == (header(size_class, nothing) & ~no_four);
  }

  void add_free(Ref list, unsigned size_class) {
    Word* words = pool_.at(list);
    words[0].store(header(size_class, nothing), std::memory_order_relaxed);
    words[1].store(free_[size_class], std::memory_order_relaxed);
    if (free_[size_class] != nothing)
      pool_[free_[size_class]].store(header(size_class, list), std::memory_order_relaxed);
    free_[size_class] = list;
  }

  void remove_free(Ref list, unsigned size_class) {
    Word* words = pool_.at(list);
    const std::uint32_t four = words[0].load(std::memory_order_relaxed) & no_four;
    const Ref before = four == no_four ? nothing : four * 4;
    const Ref after = words[1].load(std::memory_order_relaxed);
    if (before == nothing)
      free_[size_class] = after;
    else
      pool_.at(before)[1].store(after, std::memory_order_relaxed);
    if (after != nothing) pool_[after].store(header(size_class, before), std::memory_order_relaxed);
    words[0].store(0, std::memory_order_relaxed);
  }

  // The buddy of a list is at its address with one bit flipped, and always begins some list: this
  // one's equal, or a shorter one.
  void join_free(Ref list, unsigned size_class) {
    for (; size_class + 1 < n_classes; ++size_class) {
      const Ref buddy = list ^ words_of(size_class);
      if (!is_free(buddy, size_class)) break;
      remove_free(buddy, size_class);
      list = std::min(list, buddy);
    }
    add_free(list, size_class);
  }

  Ref allocate_large(std::uint32_t words) {
    if (free_large_.empty()) {
      large_.grow_to(n_large_ + std::size_t{1});
      reserve_more(free_large_,
                   n_large_ + std::size_t{1});  // for all of them, so recycling needs none
      free_large_.push_back(n_large_++ | large_bit);
    }
    const Ref list = free_large_.back();
    large_[list & ~large_bit] = new Word[words]();
    free_large_.pop_back();
    large_bytes_ += words * sizeof(Word);
    return list;
  }

  std::uint32_t k_;
  ChunkedArray<Word> pool_;
  std::array<Ref, n_classes> free_;  // the first free list of each class
  ChunkedArray<Word*> large_;        // owned
  std::vector<Ref> free_large_;
  std::uint32_t n_large_ = 0;
  std::atomic<std::size_t> large_bytes_{0};
};

}  // namespace boundary_forest
