// How the rules of vote_rules.hpp are compared with labels, given the trees' answers to rows before these
// were learned. Whether the trees are all in one engine (forest/) or in several (forest_driver.hpp)
// makes no difference here.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "distance/label_metric.hpp"
#include "vote/combine.hpp"
#include "vote/vote_rules.hpp"

namespace boundary_forest {

// The trees' answers to one row: the examples that they ended at, by place.
struct TreeAnswers {
  std::span<const double> distances;
  Labels labels;
  const double* closest = nullptr;  // the label of the closest, if it alone is the answer
};

// How votes are weighed now, and what the next choice goes by.
struct VoteState {
  std::uint8_t rule = 0;  // in use, among vote_rules()
  // If rules are tried, of each rule, by output: the sum of its answers' squared errors, or the number
  // of its mistakes, on the rows before the next choice. If the forest forgets: their recent mean.
  std::vector<double> errors;
  // If trees are judged, of each place: the recent mean of such errors.
  std::vector<double> losses;
  // By class code: the weights that the user gave; and, if votes are balanced, how many examples have
  // arrived, without those that were forgotten. They multiply the votes of an answer, and have no part in the
  // choice of rules, which goes by plain mistakes.
  std::vector<double> class_weights;
  std::vector<double> class_counts;

  ClassWeights classes() const { return {class_weights, class_counts}; }
};

// One more example of a class.
template <class ClassCounts>
void count_class(double code, ClassCounts& counts) {
  const auto place = static_cast<std::size_t>(code);
  if (counts.size() <= place) counts.resize(place + 1, 0.0);
  counts[place] += 1.0;
}

// As votes are weighed before anything is learned. An engine that holds a part of the trees has no errors
// of rules, as it does not choose among them.
void begin_votes(const Params& params, VoteState& votes);

// By the rule in use; `factors` must outlive it.
Ballot ballot_of(const VoteState& votes, const Params& params, std::vector<double>& factors);

// One for every rule, by the trees' recent losses; without losses, by distances alone.
class Ballots {
 public:
  Ballots(const Params& params, std::span<const double> losses, std::pmr::memory_resource* memory);
  Ballots(const Ballots&) = delete;  // they refer to their factors
  Ballots& operator=(const Ballots&) = delete;

  std::span<const Ballot> all() const { return ballots_; }
  // By new losses, of which there were some before.
  void renew(std::span<const double> losses) { renew(losses, /*first=*/false); }

 private:
  void renew(std::span<const double> losses, bool first);

  const Params& params_;
  // Of each rule; none where those of one before it are the same.
  std::pmr::vector<std::pmr::vector<double>> factors_;
  std::pmr::vector<Ballot> ballots_;
};

// The answers of every rule to a row are compared with its label.
void try_rules(const TreeAnswers& answers, const double* label, const Params& params,
               VoteState& votes);

// The same at every arrival, for a forest that forgets: the rules' recent errors, and the trees' own. It
// is arrival number `a`; `before` is the spread of the labels before; `ballots` are by the losses so far,
// and then by the new ones.
void judge(Arrival a, const TreeAnswers& answers, const double* label, const Spread& before,
           const Params& params, Ballots& ballots, VoteState& votes);

// Takes the rule with the least errors in all, among equals the one in use, else the first; and sets
// all errors to 0.
void choose_rule(const Spread& spread, const Params& params, VoteState& votes);

}  // namespace boundary_forest
