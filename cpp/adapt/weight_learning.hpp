// A distance that is learned: weights of features under which near examples have like labels.
//
// The objective is one for all tasks. The label of an example is estimated from its 10 nearest others
// by the kernel 1 / (1 + d^2 / h)^2, h the lower median of their d^2, and the squared error of this
// estimate is descended in the logarithms of the weights. Labels are vectors: classes are one-hot, and
// numbers are standardised. Descent begins with equal weights on standardised features each time;
// going on from the last weights gets stuck.
//
// The older three quarters of the window are learned from. The newest quarter chooses between the
// weights in use, none, 1 / variance, what was learned, and half of its logarithms.
//
// Everything is a function of the window, the seed and the number of arrivals: sums are in double, by
// row, then neighbour, then class in order of appearance among the neighbours; threads share rows,
// and one of them adds. (Relatives: Weinberger and Tesauro's metric learning for kernel regression,
// neighbourhood components analysis, Relief.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "adapt/reservoir.hpp"
#include "adapt/window.hpp"
#include "base/types.hpp"
#include "distance/feature_weights.hpp"
#include "distance/metric.hpp"

namespace boundary_forest {

// The rows that weights are learned from: the first three quarters, and the last quarter to choose by.
struct WeightRows {
  // The last n_rows arrivals.
  WeightRows(const Window& window, std::size_t n_rows);
  // Half of them, and as many members of the reservoir, in a random order: where rows come sorted by class, the
  // last ones have few classes.
  WeightRows(const Window& window, const Reservoir& reservoir, const ExampleStore& store,
             std::size_t n_rows, std::uint64_t seed);

  std::size_t size() const { return arrivals.size(); }

  std::vector<Arrival> arrivals;
  std::vector<const std::byte*> positions;
  std::vector<const double*> labels;
};

// The weights to use from now on, after `seen` arrivals; an empty list is the plain metric. Of too few rows
// those in use stay; but a forest that forgets begins with 1 / variance, so that distances in trees of different
// weights are of the same size.
LogWeights learn_weights(const WeightRows& rows, Arrival seen, const Params& params,
                         const LogWeights& in_use, std::size_t n_threads);

// The mean and the population variance of each feature over n rows, row(0) to row(n - 1).
struct Moments {
  std::vector<double> means;
  std::vector<double> variances;
};
Moments moments(const Params& params, std::size_t n,
                const std::function<const std::byte*(std::size_t)>& row);

}  // namespace boundary_forest
