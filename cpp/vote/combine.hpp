// E: how the examples that the trees found become an answer (the paper's section on the algorithm).
//
// Shepard's weights are 1 / d(x_i, y). Beyond the paper: 1 / d^p for other p, times a factor for each
// tree. Examples at distance zero alone decide, equally. Sums run in tree order, in double. The
// weights are scaled by the least distance, which changes no answer and keeps 1 / d from overflowing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <numeric>
#include <span>
#include <vector>

#include "store/example_store.hpp"
#include "tree/nearest.hpp"

namespace boundary_forest {

// Ratio of a tree's weight to that of the tree with the least distance: ratio is that distance / d.
inline double vote_weight(double ratio, VotePower power) {
  switch (power) {
    case VotePower::one:
      return ratio;
    case VotePower::zero:
      return 1.0;
    case VotePower::half:
      return std::sqrt(ratio);
    case VotePower::two:
      return ratio * ratio;
  }
  __builtin_unreachable();
}

// What the votes for a class are multiplied by, beyond the paper: a weight that the user gave it, or, where
// votes are balanced, 1 / the number of its examples. (scikit-learn's n / (n_classes * count) has two more
// factors, which all classes share.) By code; a class that is not listed has the weight 1.
struct ClassWeights {
  static constexpr double least = 1e-100;  // that may be given, so that no sum of votes overflows
  static constexpr double largest = 1e100;

  std::span<const double> given = {};
  std::span<const double> counts = {};

  bool any() const { return !given.empty() || !counts.empty(); }
  double of(std::uint32_t code) const {
    if (code < counts.size()) return 1.0 / std::max(counts[code], 1.0);
    return code < given.size() ? given[code] : 1.0;
  }
};

// How answers are weighed: by 1 / d^power, times each tree's factor, times the weight of the class that it
// names. No factors: all are 1. A tree whose factor is 0 has no vote; one of them must be above 0.
struct Ballot {
  VotePower power = VotePower::one;
  std::span<const double> factors = {};
  ClassWeights classes = {};
};

// Of the trees that have a vote.
inline double least_distance(std::span<const double> d, std::span<const double> factors) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < d.size(); ++i)
    if (factors.empty() || factors[i] > 0.0) least = std::min(least, d[i]);
  return least;
}

// least / d; equal ones too where all are infinite. If the least is 0, 1 for those at distance zero and
// 0 for others. (Trees that have no vote may be closer: what becomes of those does not matter.)
inline void shepard_ratios(std::span<const double> d, double least, std::span<double> ratios) {
  if (least == 0.0)
    for (std::size_t i = 0; i < d.size(); ++i) ratios[i] = d[i] == 0.0 ? 1.0 : 0.0;
  else
    for (std::size_t i = 0; i < d.size(); ++i) ratios[i] = d[i] == least ? 1.0 : least / d[i];
}

// By these ratios; the two may lie at the same place.
inline void shepard_weights(std::span<const double> ratios, double least, const Ballot& ballot,
                            std::span<double> weights) {
  const VotePower power = least == 0.0 ? VotePower::one : ballot.power;
  for (std::size_t i = 0; i < ratios.size(); ++i) weights[i] = vote_weight(ratios[i], power);
  for (std::size_t i = 0; i < ballot.factors.size(); ++i) {
    const double factor = ballot.factors[i];
    const double weight = least == 0.0 ? weights[i] : factor * weights[i];
    weights[i] = factor > 0.0 ? weight : 0.0;
  }
}

// Turns distances into weights, in place; returns their sum.
inline double shepard_weights(std::span<double> d, const Ballot& ballot) {
  const double least = least_distance(d, ballot.factors);
  shepard_ratios(d, least, d);
  shepard_weights(d, least, ballot, d);
  return std::accumulate(d.begin(), d.end(), 0.0);
}

// Of the examples that the trees found: a label vector a tree.
using Labels = std::span<const double* const>;

// Multiplies the trees' weights by those of the classes that they name; returns the sum, which was `sum`. In
// tree order, so that the codes of classes do not matter.
inline double apply_class_weights(Labels labels, const ClassWeights& classes,
                                  std::span<double> weights, double sum) {
  if (!classes.any()) return sum;
  sum = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] *= classes.of(static_cast<std::uint32_t>(*labels[i]));
    sum += weights[i];
  }
  return sum;
}

struct Vote {
  std::uint32_t code;
  double share;
};

// The classes that the trees name, by code, and the share of the weights that each gets. There may
// be many more classes than trees, so nothing here is as long as their list.
inline std::pmr::vector<Vote> shepard_vote(Labels labels, std::span<const double> weights,
                                           double sum, std::pmr::memory_resource* memory) {
  std::pmr::vector<std::uint64_t> by_code(labels.size(), memory);  // the code, then the tree
  for (std::size_t i = 0; i < labels.size(); ++i)
    by_code[i] = static_cast<std::uint64_t>(*labels[i]) << 32 | i;
  if (!std::is_sorted(by_code.begin(), by_code.end())) std::sort(by_code.begin(), by_code.end());
  std::pmr::vector<Vote> votes(memory);
  for (const std::uint64_t code_and_tree : by_code) {
    const auto code = static_cast<std::uint32_t>(code_and_tree >> 32);
    if (votes.empty() || votes.back().code != code) votes.push_back({code, 0.0});
    votes.back().share += weights[static_cast<std::uint32_t>(code_and_tree)];
  }
  for (Vote& vote : votes) vote.share /= sum;
  return votes;
}

// Where class codes stand among the classes; without ranks, in the order of their codes. A code whose
// class was forgotten has none, and no example has that code.
using Ranks = std::span<const std::uint32_t>;
constexpr std::uint32_t no_rank = 0xFFFFFFFFU;

// The number of classes that shares are given for.
inline std::size_t n_ranked(Ranks ranks, std::size_t n_classes) {
  if (ranks.empty()) return n_classes;
  return ranks.size() - static_cast<std::size_t>(std::count(ranks.begin(), ranks.end(), no_rank));
}

inline std::uint32_t rank_of(std::uint32_t code, Ranks ranks) {
  return ranks.empty() ? code : ranks[code];
}

// The class with the largest share; among equals, the first by rank.
inline const Vote& winner(std::span<const Vote> votes, Ranks ranks) {
  return *std::min_element(votes.begin(), votes.end(), [&](const Vote& a, const Vote& b) {
    if (a.share != b.share) return a.share > b.share;
    return rank_of(a.code, ranks) < rank_of(b.code, ranks);
  });
}

// The weighted mean of number j of the label vectors, where their sum overflows: it is taken in units
// of 2^64, and kept between the least and the largest, beyond which rounding might lead.
inline double large_mean(Labels labels, std::span<const double> weights, double sum,
                         std::size_t j) {
  double total = 0.0;
  double least = std::numeric_limits<double>::infinity();
  double largest = -least;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double value = labels[i][j];
    total += weights[i] * (value * 0x1p-64);
    least = std::fmin(least, value);
    largest = std::fmax(largest, value);
  }
  return std::clamp(total / sum * 0x1p64, least, largest);
}

// The weighted mean of the label vectors.
inline void shepard_mean(Labels labels, std::span<const double> weights, double sum,
                         std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t i = 0; i < labels.size(); ++i)
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += weights[i] * labels[i][j];
  for (std::size_t j = 0; j < out.size(); ++j)
    out[j] = std::isfinite(out[j]) ? out[j] / sum : large_mean(labels, weights, sum, j);
}

// Retrieval: the closest of the locally closest examples, the earliest among equals.
inline const Leaf& closest_answer(std::span<const Leaf> v, const ExampleStore& store) {
  return *std::min_element(v.begin(), v.end(), ranked_by(arrival_in(store)));
}

}  // namespace boundary_forest
