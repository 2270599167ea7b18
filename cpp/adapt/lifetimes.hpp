// When trees come and go that answer for a number of arrivals, and are then succeeded.
//
// The tree at a place of lifetime L is succeeded every L arrivals, those at places of the same lifetime
// in turn. Its successor begins empty, L / 2 arrivals before, and learns what arrives; so a tree that
// answers has learned from the last L / 2 to 3 L / 2 arrivals. All of it depends on the number of
// arrivals alone (promise 2).
#pragma once

#include <algorithm>
#include <vector>

#include "base/types.hpp"

namespace boundary_forest {

class Lifetimes {
 public:
  static constexpr Arrival never = ~Arrival{0};

  explicit Lifetimes(const Params& params)
      : lifetimes_(params.lifetimes), first_(params.lifetimes.size()) {
    const auto count = [&](std::size_t end, std::uint32_t lifetime) {
      const auto begin = lifetimes_.begin();
      return static_cast<Arrival>(
          std::count(begin, begin + static_cast<std::ptrdiff_t>(end), lifetime));
    };
    for (std::size_t place = 0; place < lifetimes_.size(); ++place) {
      const Arrival lifetime = lifetimes_[place];
      first_[place] =
          params.n_T + lifetime +
          lifetime * count(place, lifetimes_[place]) / count(lifetimes_.size(), lifetimes_[place]);
    }
  }

  // The first number of arrivals above `seen` at which the tree at `place` is succeeded.
  Arrival succession_after(std::uint32_t place, Arrival seen) const {
    if (lifetimes_.empty() || lifetimes_[place] == 0) return never;
    if (seen < first_[place]) return first_[place];
    const Arrival lifetime = lifetimes_[place];
    return first_[place] + ((seen - first_[place]) / lifetime + 1) * lifetime;
  }

  // From how many arrivals on the one that then succeeds learns.
  Arrival birth(std::uint32_t place, Arrival succession) const {
    return succession == never ? never : succession - std::max<Arrival>(lifetimes_[place] / 2, 1);
  }

 private:
  std::vector<std::uint32_t> lifetimes_;
  std::vector<Arrival> first_;  // succession, by place
};

}  // namespace boundary_forest
