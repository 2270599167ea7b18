// How the rules of vote_rules.hpp are held against labels, given what the trees said of rows before they
// were learned. Whether the trees are all in one engine (deciding.cpp) or in several (forest_driver.hpp)
// makes no difference here.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "boundary_forest/adaptation.hpp"
#include "boundary_forest/combine.hpp"
#include "boundary_forest/label_metric.hpp"
#include "boundary_forest/types.hpp"
#include "boundary_forest/vote_rules.hpp"

namespace boundary_forest {

// What the trees said of one row: the examples that they ended at, by place.
struct Voices {
  std::span<const double> distances;
  Labels labels;
  const double* closest = nullptr;  // the label of the closest, if it alone is the answer
};

// As votes are weighed before anything is learned. An engine that holds a part of the trees has no errors
// of rules, as it does not choose among them.
void begin_votes(const Params& params, Adaptation& adaptation);

// By the rule in use; `factors` must outlive it.
Ballot ballot_of(const Adaptation& adaptation, const Params& params, std::vector<double>& factors);

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

// The answers of every rule to a row are held against its label.
void try_rules(const Voices& said, const double* label, const Params& params,
               Adaptation& adaptation);

// The same at every arrival, for a forest that forgets: the rules' recent errors, and the trees' own. It
// is arrival number `a`; `before` is the spread of the labels before; `ballots` are by the losses so far,
// and then by the new ones.
void judge(Arrival a, const Voices& said, const double* label, const Spread& before,
           const Params& params, Ballots& ballots, Adaptation& adaptation);

// Takes the rule with the least errors in all, among equals the one in use, else the first; and begins
// anew to count them.
void choose_rule(const Spread& spread, const Params& params, Adaptation& adaptation);

}  // namespace boundary_forest
