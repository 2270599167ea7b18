// The distances of one query to stored rows, as far as they are remembered.
//
// Trees of one forest hold the same examples: of all that 50 trees compare a row of MNIST with, half are
// distinct. So the distances of a row that is queried alone are kept for the call, by slot, in a table in
// which a later one replaces an earlier one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace boundary_forest {

class DistanceCache {
 public:
  // Of another query: nothing is known.
  void begin() {
    if (entries_.empty()) entries_.resize(size);
    if (++query_ == 0) {
      std::fill(entries_.begin(), entries_.end(), CachedDistance{});
      query_ = 1;
    }
  }
  bool find(Slot slot, double& reduced) const {
    const CachedDistance& entry = entries_[place(slot)];
    if (entry.slot != slot || entry.query != query_) return false;
    reduced = entry.reduced;
    return true;
  }
  void put(Slot slot, double reduced) { entries_[place(slot)] = {query_, slot, reduced}; }

 private:
  static constexpr std::size_t size = 8192;  // 128 KB, which stay in the second cache

  struct CachedDistance {
    std::uint32_t query = 0;
    Slot slot = nothing;
    double reduced = 0.0;
  };

  static std::size_t place(Slot slot) { return slot % size; }

  std::vector<CachedDistance> entries_;
  std::uint32_t query_ = 0;  // which one: those before need not be cleared
};

}  // namespace boundary_forest
