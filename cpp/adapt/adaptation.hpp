// What a forest decides for itself as it learns: the weights of features, and how trees' answers are
// weighed. Beyond the paper; a forest without either parameter decides nothing.
//
// Decisions come at numbers of arrivals, never at the end of a call, so that how a stream is cut into
// batches cannot matter (promise 2): at 125 * 2^j, once the forest is planted. A mixture is also decided
// half-way between two of them: its weights follow what changed since. Before, and at the latest
// as it is planted, features are weighted by their spread alone. A forest that forgets (lifetimes.hpp) also
// learns weights at every 1,000, and judges its votes at every arrival. After
// a doubling at which the weights have changed, trees that have the new ones are grown in steps, so that no
// arrival waits for all of them; then they take over together. Decisions are made by decisions.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "adapt/reservoir.hpp"
#include "adapt/stream_mixture.hpp"
#include "adapt/window.hpp"
#include "base/types.hpp"
#include "tree/boundary_tree.hpp"
#include "vote/mixture.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

struct Adaptation {
  std::shared_ptr<const TreeSettings> settings;  // of the trees that are made from now on
  Window window;                                 // of the last arrivals (Params::has_window)
  Reservoir reservoir;                           // of all arrivals, likewise
  VoteState votes;
  MixtureState mixture;
  StreamMixture stream;
};

class Schedule {
 public:
  static constexpr Arrival first_doubling = 125;  // arrivals
  static constexpr Arrival period = 1000;         // arrivals
  static constexpr Arrival growing_steps = 16;    // after a doubling

  explicit Schedule(const Params& params)
      : n_T_(params.n_T),
        forgets_(params.forgets()),
        learns_weights_(params.has_learned_weights),
        tries_votes_(params.tries_votes() || params.mixes()),
        mixes_(params.mixes()),
        longest_trial_(params.mixes() ? longest_mixture_trial : longest_trial) {}

  bool is_doubling(Arrival seen) const { return seen > 0 && doubling_after(seen - 1) == seen; }

  // How many of the last arrivals weights are learned from after so many; 0: they are not. From few, at
  // the start, only the spread of the features can be learned: after every arrival, as long as that is
  // cheap, so that a small table needs no scaling.
  Arrival weights_from(Arrival seen) const {
    if (!learns_weights_) return 0;
    if (is_doubling(seen)) return Window::capacity;
    if (seen == n_T_ || is_first_arrival(seen)) return period;
    return forgets_ && seen > n_T_ && seen % period == 0 ? period : 0;
  }

  // At doublings; a mixture half-way between two as well.
  bool chooses_votes(Arrival seen) const {
    return tries_votes_ && !forgets_ && seen > 0 && choice_after(seen - 1) == seen;
  }

  // Whether the row that comes after so many arrivals is one that the next choice of votes looks at: the
  // last 1,000 before it, or 250 for a mixture, but none before the last choice, nor more than half of all.
  bool is_trial(Arrival seen) const {
    return tries_votes_ && !forgets_ && seen >= beginning_of_trial(seen);
  }
  // Where the rows that the next choice looks at begin, and the second half of them.
  bool begins_trial(Arrival seen) const {
    return tries_votes_ && !forgets_ && seen == beginning_of_trial(seen);
  }
  bool is_middle_of_trial(Arrival seen) const { return mixes_ && seen == middle_of_trial(seen); }
  // Whether the models over all rows are solved between two decisions: at quarters of the way.
  bool solves_models(Arrival seen) const {
    return mixes_ && seen > 0 && seen == quarter_after(seen - 1);
  }
  // Whether votes are judged at every arrival.
  bool judges() const { return tries_votes_ && forgets_; }

  // Which of the steps after the last doubling comes at this number of arrivals, 1 to growing_steps;
  // 0 for none.
  Arrival growing_step(Arrival seen) const {
    const Arrival gap = growing_gap(seen);
    const Arrival since = seen - doubling_after(seen) / 2;
    return gap > 0 && since % gap == 0 && since / gap <= growing_steps ? since / gap : 0;
  }

  // A block that begins after `seen` arrivals must not go on beyond so many.
  Arrival block_end(Arrival seen) const {
    if (!learns_weights_ && (!tries_votes_ || forgets_)) return ~Arrival{0};
    if (learns_weights_ && is_first_arrival(seen + 1)) return seen + 1;
    const Arrival doubling = doubling_after(seen);
    Arrival end = doubling;
    if (tries_votes_ && !forgets_) end = choice_after(seen);
    if (tries_votes_ && !forgets_ && seen < beginning_of_trial(seen))
      end = beginning_of_trial(seen);
    if (mixes_ && seen < middle_of_trial(seen)) end = std::min(end, middle_of_trial(seen));
    if (mixes_) end = std::min(end, quarter_after(seen));
    if (learns_weights_ && forgets_) end = std::min(end, (seen / period + 1) * period);
    if (const Arrival gap = growing_gap(seen); gap > 0) {
      const Arrival step = (seen - doubling / 2) / gap + 1;
      if (step <= growing_steps) end = std::min(end, doubling / 2 + step * gap);
    }
    return end;
  }

 private:
  static constexpr Arrival longest_trial = 1000;
  static constexpr Arrival longest_mixture_trial = 250;

  bool is_first_arrival(Arrival seen) const { return seen < n_T_ && seen < first_doubling; }

  Arrival doubling_after(Arrival seen) const {
    Arrival doubling = first_doubling;
    while (doubling <= seen || doubling < n_T_) doubling *= 2;
    return doubling;
  }
  // The next choice of votes.
  Arrival choice_after(Arrival seen) const {
    const Arrival doubling = doubling_after(seen);
    const Arrival half_way = half_way_to(doubling);
    return half_way > 0 && seen < half_way ? half_way : doubling;
  }
  // Between a doubling and the one before; 0 if there is no choice.
  Arrival half_way_to(Arrival doubling) const {
    const Arrival before = doubling / 2;
    if (!mixes_ || before < first_doubling || before < n_T_) return 0;
    return before + doubling / 8 * 2;
  }
  Arrival beginning_of_trial(Arrival seen) const {
    const Arrival doubling = doubling_after(seen);
    const Arrival half_way = half_way_to(doubling);
    if (half_way == 0) return doubling - std::min(doubling / 2, longest_trial_);
    if (seen < half_way) return half_way - std::min(half_way - doubling / 2, longest_trial_);
    return doubling - std::min(doubling - half_way, longest_trial_);
  }

  Arrival middle_of_trial(Arrival seen) const {
    const Arrival choice = choice_after(seen);
    return choice - (choice - beginning_of_trial(seen)) / 2;
  }

  // The next quarter of the way from a doubling to the next, or the next doubling.
  Arrival quarter_after(Arrival seen) const {
    const Arrival doubling = doubling_after(seen);
    Arrival quarter = doubling / 2;
    for (Arrival k = 1; k < 4 && quarter <= seen; ++k) quarter = doubling / 2 + doubling / 8 * k;
    return quarter <= seen ? doubling : quarter;
  }

  // Arrivals from step to step, a 256th of those before the last doubling, but so few that the steps are
  // over before the next period; 0 if there was none.
  Arrival growing_gap(Arrival seen) const {
    const Arrival last = doubling_after(seen) / 2;
    if (!learns_weights_ || last < first_doubling || last < n_T_ || seen < last) return 0;
    return std::clamp<Arrival>(last / 256, 1, (period - 1) / growing_steps);
  }

  Arrival n_T_;
  bool forgets_;
  bool learns_weights_;
  bool tries_votes_;
  bool mixes_;
  Arrival longest_trial_;
};

}  // namespace boundary_forest
