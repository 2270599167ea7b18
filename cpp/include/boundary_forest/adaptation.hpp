// What a forest decides for itself as it learns: the weights of features, and how trees' answers are
// weighed. Beyond the paper; a forest without either parameter decides nothing.
//
// Decisions come at 125 * 2^j arrivals, once the forest is planted: never at the end of a call, so that
// how a stream is cut into batches cannot matter (promise 2). The part that decides is deciding.cpp.
// After a decision for new weights, trees that have them are grown in steps, so that no arrival waits
// for all of them; then they take over together (regrowing.cpp).
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
        learns_weights_(params.has_learned_weights),
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

  // Which of the steps after the last decision comes at this number of arrivals, 1 to growing_steps;
  // 0 for none.
  static constexpr Arrival growing_steps = 16;
  Arrival growing_step(Arrival seen) const {
    const Arrival gap = growing_gap(seen);
    const Arrival since = seen - decision_after(seen) / 2;
    return gap > 0 && since % gap == 0 && since / gap <= growing_steps ? since / gap : 0;
  }

  // A block that begins after `seen` arrivals must not go on beyond so many.
  Arrival block_end(Arrival seen) const {
    if (!decides_) return ~Arrival{0};
    const Arrival decision = decision_after(seen);
    Arrival end = tries_votes_ && seen < trial_of(decision) ? trial_of(decision) : decision;
    if (const Arrival gap = growing_gap(seen); gap > 0) {
      const Arrival step = (seen - decision / 2) / gap + 1;
      if (step <= growing_steps) end = std::min(end, decision / 2 + step * gap);
    }
    return end;
  }

 private:
  static constexpr Arrival first_decision = 125;
  static constexpr Arrival longest_trial = 1000;

  // Arrivals from step to step, a 256th of those before the last decision; 0 if there was none.
  Arrival growing_gap(Arrival seen) const {
    const Arrival last = decision_after(seen) / 2;
    if (!learns_weights_ || last < first_decision || last < n_T_ || seen < last) return 0;
    return std::max<Arrival>(last / 256, 1);
  }

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
  bool learns_weights_;
  bool decides_;
  bool tries_votes_;
};

}  // namespace boundary_forest
