// What one thread needs while it searches: the beam, the slots it has met, and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "graph/beam.hpp"

namespace boundary_forest {

// The slots that a search has met: a bit each, so that they stay in the nearest cache. Those that were set
// are cleared one by one, as few are met of many.
class Visited {
 public:
  void reset(std::size_t n) {
    for (const Slot slot : met_) words_[slot / 64] = 0;
    met_.clear();
    if (words_.size() * 64 < n) words_.resize((n + n / 4) / 64 + 1, 0);
  }
  // Of the n slots slot_of(j) that are below `end`: those that are met for the first time.
  template <class SlotOf>
  std::span<const Slot> meet(std::size_t n, Slot end, SlotOf&& slot_of) {
    const std::size_t before = met_.size();
    met_.resize(before + n);
    Slot* const first = met_.data() + before;
    Slot* next = first;
    std::uint64_t* const words = words_.data();
    for (std::size_t j = 0; j < n; ++j) {
      const Slot slot = slot_of(j);
      if (slot >= end) continue;
      const std::uint64_t word = words[slot / 64];
      const std::uint64_t with = word | std::uint64_t{1} << (slot % 64);
      words[slot / 64] = with;
      *next = slot;
      next += word != with ? 1 : 0;  // no branch: about half of them are new
    }
    met_.resize(static_cast<std::size_t>(next - met_.data()));
    return {first, next};
  }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<Slot> met_;
};

// The memory of one thread that searches.
struct SearchScratch {
  Beam beam;
  Visited visited;
  std::vector<std::uint8_t> codes;  // of the query
  std::vector<const std::byte*> rows;
  std::vector<double> reduced;
};

}  // namespace boundary_forest
