// d_c: the distance between label vectors, and the threshold epsilon that follows the targets'
// spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <vector>

#include "base/types.hpp"

namespace boundary_forest {

// |a - b|, scaled by its largest part so that it neither over- nor underflows; for one number |a - b|.
inline double euclidean_label_distance(const double* a, const double* b, std::size_t length) {
  double largest = 0.0;
  for (std::size_t i = 0; i < length; ++i) largest = std::fmax(largest, std::fabs(a[i] - b[i]));
  if (largest == 0.0 || std::isinf(largest)) return largest;
  double sum = 0.0;
  for (std::size_t i = 0; i < length; ++i) {
    const double part = (a[i] - b[i]) / largest;
    sum += part * part;
  }
  return largest * std::sqrt(sum);
}

inline double label_distance(const Params& params, const double* a, const double* b) {
  const std::size_t length = params.label_length;
  double distance = 0.0;
  switch (params.label_metric) {
    case LabelMetric::discrete:
      return std::equal(a, a + length, b) ? 0.0 : 1.0;
    case LabelMetric::euclidean:
      return euclidean_label_distance(a, b, length);
    case LabelMetric::manhattan:
      for (std::size_t i = 0; i < length; ++i) distance += std::fabs(a[i] - b[i]);
      return distance;
    case LabelMetric::chebyshev:
      for (std::size_t i = 0; i < length; ++i)
        distance = std::fmax(distance, std::fabs(a[i] - b[i]));
      return distance;
    case LabelMetric::function:
      return params.label_function(a, b);
    case LabelMetric::always:
      return std::numeric_limits<double>::infinity();
  }
  __builtin_unreachable();
}

// The running spread of label vectors (Welford, in order of arrival), for epsilon = "auto":
// a tenth of the standard deviation, for many outputs of the root of the summed variances.
//
// Squares of numbers beyond 2^480 might overflow, so an output that has met such a number is summed
// in units of 2^600 from then on. That changes no bit of what neither over- nor underflows.
class Spread {
 public:
  using Memory = std::pmr::memory_resource;

  static constexpr double large = 0x1p480;  // a label; squares of differences might overflow beyond

  explicit Spread(std::size_t length = 0)
      : mean_(length, 0.0), squares_(length, 0.0), exponent_(length, 0) {}
  // A copy for a moment.
  Spread(const Spread& other, Memory* memory)
      : n_(other.n_),
        mean_(other.mean_, memory),
        squares_(other.squares_, memory),
        exponent_(other.exponent_, memory) {}

  void add(const double* label) {
    ++n_;
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      if (std::fabs(label[i]) > large && exponent_[i] == 0) {
        exponent_[i] = large_exponent;
        mean_[i] *= 0x1p-600;
        squares_[i] = squares_[i] * 0x1p-600 * 0x1p-600;
      }
      const double value = exponent_[i] == 0 ? label[i] : label[i] * 0x1p-600;
      const double before = value - mean_[i];
      mean_[i] += before / static_cast<double>(n_);
      squares_[i] += before * (value - mean_[i]);
    }
  }

  // The sums themselves, for saving: n, then the means, then the sums of squares; then, if one of
  // them is not 0, the exponents of their units.
  std::vector<double> sums() const {
    std::vector<double> all = {static_cast<double>(n_)};
    all.insert(all.end(), mean_.begin(), mean_.end());
    all.insert(all.end(), squares_.begin(), squares_.end());
    if (is_large()) all.insert(all.end(), exponent_.begin(), exponent_.end());
    return all;
  }

  void restore(const std::vector<double>& sums) {
    const std::size_t length = mean_.size();
    const bool has_exponents = length > 0 && sums.size() == 1 + 3 * length;
    if ((sums.size() != 1 + 2 * length && !has_exponents) || !(sums[0] >= 0.0) ||
        sums[0] > static_cast<double>(most_arrivals))
      throw std::invalid_argument("spread does not match the labels");
    n_ = static_cast<std::uint64_t>(sums[0]);
    for (std::size_t i = 0; i < length; ++i) {
      mean_[i] = sums[1 + i];
      squares_[i] = sums[1 + length + i];
      const double exponent = has_exponents ? sums[1 + 2 * length + i] : 0.0;
      if (exponent != 0.0 && exponent != large_exponent)
        throw std::invalid_argument("spread has a unit that does not exist");
      exponent_[i] = static_cast<std::int16_t>(exponent);
    }
  }

  // Of one output; infinite where a double cannot hold it.
  double variance(std::size_t i) const {
    return std::ldexp(squares_[i] / static_cast<double>(n_), 2 * exponent_[i]);
  }
  double deviation() const { return deviation_times(1.0); }
  double epsilon() const { return deviation_times(0.1); }

 private:
  static constexpr std::int16_t large_exponent = 600;

  bool is_large() const {
    return std::any_of(exponent_.begin(), exponent_.end(), [](auto e) { return e != 0; });
  }

  double deviation_times(double factor) const {
    if (is_large()) return large_deviation_times(factor);
    double variance = 0.0;
    for (const double squares : squares_) variance += squares / static_cast<double>(n_);
    return factor * std::sqrt(variance);
  }

  // As a vector's length, scaled by its largest part.
  double large_deviation_times(double factor) const {
    const auto part = [&](std::size_t i) {
      return std::ldexp(factor * std::sqrt(squares_[i] / static_cast<double>(n_)), exponent_[i]);
    };
    double largest = 0.0;
    for (std::size_t i = 0; i < mean_.size(); ++i) largest = std::fmax(largest, part(i));
    if (largest == 0.0) return 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      const double ratio = part(i) / largest;
      sum += ratio * ratio;
    }
    return largest * std::sqrt(sum);
  }

  std::uint64_t n_ = 0;
  std::pmr::vector<double> mean_;     // in units of 2^exponent
  std::pmr::vector<double> squares_;  // in units of 2^(2 exponent)
  std::pmr::vector<std::int16_t> exponent_;
};

}  // namespace boundary_forest
