// A hard limit on the number of stored examples (max_stored).
//
// How many are stored is looked at every `step` arrivals: trees are cut (forest/replacement.cpp) when the last
// eighth begins to fill, one at a time, and more of them where the next step might not have room.
#pragma once

#include <algorithm>

#include "base/types.hpp"

namespace boundary_forest {

class StorageLimit {
 public:
  explicit StorageLimit(const Params& params)
      : most_(params.max_stored),
        step_(std::max<Arrival>(most_ / 128, 1)),
        early_(most_ - std::min(most_, std::max(most_ / 8, step_))) {}

  // Whether a tree is to be cut when so many are stored after so many arrivals, of which n_cut were.
  bool is_reached(Arrival seen, Arrival stored, std::size_t n_cut) const {
    if (most_ == 0 || seen % step_ != 0) return false;
    return stored + step_ > most_ || (n_cut == 0 && stored > early_);
  }

  // A block that begins after `seen` arrivals must not go on beyond so many, as every arrival may come
  // to be stored.
  Arrival block_end(Arrival seen, Arrival stored) const {
    if (most_ == 0) return ~Arrival{0};
    const Arrival certain = seen + (stored < early_ ? early_ - stored : 0);
    return (certain / step_ + 1) * step_;
  }

 private:
  Arrival most_;  // 0: no limit
  Arrival step_;
  // Up to so many, no tree is cut: the last eighth is free, or at least the room for one step (below 8
  // stored examples, an eighth is none).
  Arrival early_;
};

}  // namespace boundary_forest
