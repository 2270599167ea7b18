// What the models over all rows know of a row, beyond the paper. A feature becomes
//     u = z / sqrt(1 + |z|),  z = (x - centre) / unit,
// so that few large values do not decide a fit; and, as far as there is room, |u - knot| for one or two knots, so
// that what is linear in these may bend there. On 23 tables the quadratic model has .82 of its error without.
//
// The numbers are fixed before the first decision, from the rows of the window: the median, the power of two
// below the distance of the quartiles, and quantiles of u. They are rounded to eighths of a unit, so that none is
// a value of one row.
//
// How many columns rows have may depend on batches: some are for features that come later. So the numbers of knots
// and of products follow from the features up to the last one that is not 0 in all rows of the window. Those beyond
// are added as if they came later, and left out when the models have as many features as they may.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "vote/linear_model.hpp"

namespace boundary_forest {

struct FeatureMap {
  static constexpr std::size_t most_knots = 2;

  std::size_t n_knots = 0;      // per feature
  std::size_t step = 1;         // of the terms (linear_model.hpp)
  std::vector<double> numbers;  // per feature: centre, unit, knots. None: it is not fixed

  bool is_fixed() const { return !numbers.empty(); }
  // For rows of this many features, of which `rows` (n x n_features) are known.
  static FeatureMap of(std::span<const double> rows, std::size_t n_features);

  std::size_t n_features() const { return numbers.size() / (2 + n_knots); }
  std::size_t most_features() const { return LinearModel::most_features / size(); }
  // What one feature becomes, and a row, of which it takes the first features.
  std::size_t size() const { return 1 + n_knots; }
  std::size_t width() const { return n_features() * size(); }
  void apply(std::span<const double> row, double* out) const;
  // Further features, which were 0 in all rows, as far as there is room.
  void widen(std::size_t n_features);

 private:
  void choose_knots(std::size_t n_features, std::size_t n_varied);
};

}  // namespace boundary_forest
