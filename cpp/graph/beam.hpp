// What a search of a graph keeps: the closest examples found so far, in order of (distance, slot), and
// which of them it has gone on from. Of those that may be returned it keeps `least` at any rate, and up to
// `most` of those that are at most `factor` times as far as the n-th nearest. Others (forgotten, or not
// allowed) stand between them, to be passed through, and what lies beyond is dropped. So the outcome does not
// depend on the order in which examples are offered. The search ends when every kept entry was expanded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/types.hpp"

namespace boundary_forest {

class Beam {
 public:
  struct Entry {
    double reduced;
    Slot slot;
    bool is_returned;
    bool is_expanded;
  };
  struct Width {
    std::size_t n;
    std::size_t least;
    std::size_t most;
    double factor = std::numeric_limits<double>::infinity();
  };

  void reset(const Width& width) {
    entries_.clear();
    nearest_.clear();
    width_ = width;
    bound_ = std::numeric_limits<double>::infinity();
    n_returned_ = 0;
    next_ = 0;
  }

  const std::vector<Entry>& entries() const { return entries_; }

  // Whether it is kept.
  bool offer(double reduced, Slot slot, bool is_returned) {
    std::size_t at = entries_.size();
    if (at > 0 && is_before(reduced, slot, entries_.back())) {
      std::size_t begin = 0;
      while (begin < at) {
        const std::size_t middle = (begin + at) / 2;
        if (is_before(reduced, slot, entries_[middle]))
          at = middle;
        else
          begin = middle + 1;
      }
    } else if (is_beyond(reduced, n_returned_)) {
      return false;
    }
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at),
                    {reduced, slot, is_returned, false});
    next_ = std::min(next_, at);
    if (is_returned) {
      ++n_returned_;
      note(reduced);
    }
    while (
        is_beyond(entries_.back().reduced, n_returned_ - (entries_.back().is_returned ? 1 : 0))) {
      n_returned_ -= entries_.back().is_returned ? 1 : 0;
      entries_.pop_back();
    }
    return true;
  }

  // The closest that was not gone on from; `nothing` if there is none.
  Slot next() {
    while (next_ < entries_.size() && entries_[next_].is_expanded) ++next_;
    return next_ < entries_.size() ? entries_[next_].slot : nothing;
  }
  // The same, which is gone on from now.
  Slot expand() {
    const Slot slot = next();
    if (slot != nothing) entries_[next_++].is_expanded = true;
    return slot;
  }

 private:
  static bool is_before(double reduced, Slot slot, const Entry& other) {
    return reduced != other.reduced ? reduced < other.reduced : slot < other.slot;
  }

  // Whether an entry at this distance is dropped, with n_before returnable ones before it.
  bool is_beyond(double reduced, std::size_t n_before) const {
    return n_before >= (reduced > bound_ ? width_.least : width_.most);
  }

  // The n-th nearest may have come closer.
  void note(double reduced) {
    if (std::isinf(width_.factor) || (nearest_.size() == width_.n && reduced >= nearest_.back()))
      return;
    nearest_.insert(std::upper_bound(nearest_.begin(), nearest_.end(), reduced), reduced);
    if (nearest_.size() > width_.n) nearest_.pop_back();
    if (nearest_.size() == width_.n) bound_ = width_.factor * nearest_.back();
  }

  std::vector<Entry> entries_;
  std::vector<double> nearest_;  // distances of the nearest n, ascending
  Width width_{};
  double bound_ = 0.0;  // the factor times the n-th of them
  std::size_t n_returned_ = 0;
  std::size_t next_ = 0;  // all entries before it are expanded
};

}  // namespace boundary_forest
