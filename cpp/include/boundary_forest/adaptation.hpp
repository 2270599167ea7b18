// What a forest decides for itself as it learns: the weights of features, and how trees' answers are
// weighed. Beyond the paper; a forest without either parameter decides nothing.
//
// Decisions come at 125 * 2^j arrivals, once the forest is planted: never at the end of a call, so that
// how a stream is cut into batches cannot matter (promise 2). The part that decides is deciding.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "boundary_forest/tree_settings.hpp"
#include "boundary_forest/types.hpp"
#include "boundary_forest/window.hpp"

namespace boundary_forest {

struct Adaptation {
  std::shared_ptr<const TreeSettings> settings;  // of the trees that are made from now on
  Window window;                                 // of the last arrivals, if weights are learned
  VotePower power = VotePower::one;
  // Of each power, by output: the sum of its answers' squared errors, or the number of its mistakes,
  // on the rows before the next decision.
  std::vector<double> errors;
};

class Schedule {
 public:
  explicit Schedule(const Params& params)
      : n_T_(params.n_T),
        decides_(params.has_learned_weights || tries_votes(params)),
        tries_votes_(tries_votes(params)) {}

  // Where a decision comes at this number of arrivals.
  bool is_decision(Arrival seen) const {
    return decides_ && seen > 0 && decision_after(seen - 1) == seen;
  }

  // Whether the row that comes after so many arrivals is one that the next decision about votes
  // looks at: the last 1,000 before it, but not more than half of all.
  bool is_trial(Arrival seen) const {
    return tries_votes_ && seen >= trial_of(decision_after(seen));
  }

  // A block that begins after `seen` arrivals must not go on beyond so many.
  Arrival block_end(Arrival seen) const {
    if (!decides_) return ~Arrival{0};
    const Arrival decision = decision_after(seen);
    return tries_votes_ && seen < trial_of(decision) ? trial_of(decision) : decision;
  }

 private:
  static constexpr Arrival first_decision = 125;
  static constexpr Arrival longest_trial = 1000;

  static bool tries_votes(const Params& params) {
    return params.vote_weights == VoteWeights::automatic;
  }
  Arrival decision_after(Arrival seen) const {
    Arrival decision = first_decision;
    while (decision <= seen || decision < n_T_) decision *= 2;
    return decision;
  }
  static Arrival trial_of(Arrival decision) {
    return decision - std::min(decision / 2, longest_trial);
  }

  Arrival n_T_;
  bool decides_;
  bool tries_votes_;
};

}  // namespace boundary_forest
