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

// The answers of every rule to a row are held against its label.
void try_rules(const Voices& said, const double* label, const Params& params,
               Adaptation& adaptation);

// The same at every arrival, for a forest that forgets: the rules' recent errors, and the trees' own. It
// is arrival number `a`; `before` is the spread of the labels before.
void judge(Arrival a, const Voices& said, const double* label, const Spread& before,
           const Params& params, Adaptation& adaptation);

// Takes the rule with the least errors in all, among equals the one in use, else the first; and begins
// anew to count them.
void choose_rule(const Spread& spread, const Params& params, Adaptation& adaptation);

}  // namespace boundary_forest
