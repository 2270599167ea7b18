// The rules by which trees' answers may be weighed, beyond the paper, of which a forest chooses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace boundary_forest {

// By 1 / d^p; by how well each tree did lately; by all trees, or by those alone that have no lifetime.
struct VoteRule {
  VotePower power = VotePower::one;
  std::uint8_t skill = 0;  // how much that counts, 0 to 2
  bool lasting = false;
};

inline constexpr VoteRule table_rules[] = {
    {VotePower::one}, {VotePower::zero}, {VotePower::half}, {VotePower::two}};

inline constexpr VoteRule stream_rules[] = {{VotePower::one},          {VotePower::zero},
                                            {VotePower::one, 1},       {VotePower::zero, 1},
                                            {VotePower::one, 2},       {VotePower::zero, 2},
                                            {VotePower::one, 0, true}, {VotePower::zero, 0, true}};

inline std::span<const VoteRule> vote_rules(const Params& params) {
  return params.forgets() ? std::span<const VoteRule>(stream_rules) : table_rules;
}

// A tree's factor, by its recent loss (the share of its mistakes, or its mean squared error) and the
// least of all trees' losses.
inline double skill_factor(double loss, double least, std::uint8_t skill, bool votes) {
  if (skill == 0 || loss == least) return 1.0;
  const double ratio = votes ? (1.0 - loss) / (1.0 - least) : least / loss;
  double factor = ratio;
  if (votes) {  // to the power 10
    const double square = ratio * ratio;
    const double fourth = square * square;
    factor = fourth * fourth * square;
  }
  return skill == 1 ? factor : factor * factor;
}

// The factors of the trees from params.first_tree on; none where all are 1.
template <class Factors>
void vote_factors(const VoteRule& rule, std::span<const double> losses, const Params& params,
                  Factors& factors) {
  factors.clear();
  if (rule.skill == 0 && !rule.lasting) return;
  factors.reserve(losses.size());
  const double least = *std::min_element(losses.begin(), losses.end());
  const bool votes = params.estimator == Estimator::shepard_vote;
  bool any = false;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const bool has_vote =
        !rule.lasting || params.is_lasting(params.first_tree + static_cast<std::uint32_t>(i));
    factors.push_back(has_vote ? skill_factor(losses[i], least, rule.skill, votes) : 0.0);
    any = any || factors.back() > 0.0;
  }
  if (!any) factors.clear();
}

}  // namespace boundary_forest
