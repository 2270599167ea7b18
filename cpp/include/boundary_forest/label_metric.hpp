// d_c: the distance between label vectors, and the threshold epsilon that follows the targets'
// spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <vector>

#include "boundary_forest/types.hpp"

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
class Spread {
 public:
  using Memory = std::pmr::memory_resource;

  explicit Spread(std::size_t length = 0) : mean_(length, 0.0), squares_(length, 0.0) {}
  // A copy for a moment.
  Spread(const Spread& other, Memory* memory)
      : n_(other.n_), mean_(other.mean_, memory), squares_(other.squares_, memory) {}

  void add(const double* label) {
    ++n_;
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      const double before = label[i] - mean_[i];
      mean_[i] += before / static_cast<double>(n_);
      squares_[i] += before * (label[i] - mean_[i]);
    }
  }

  // The sums themselves, for saving: n, then the means, then the sums of squares.
  std::vector<double> sums() const {
    std::vector<double> all = {static_cast<double>(n_)};
    all.insert(all.end(), mean_.begin(), mean_.end());
    all.insert(all.end(), squares_.begin(), squares_.end());
    return all;
  }

  void restore(const std::vector<double>& sums) {
    const auto length = static_cast<std::ptrdiff_t>(mean_.size());
    if (sums.size() != 1 + 2 * mean_.size() || !(sums[0] >= 0.0) || sums[0] > 0x1p53)
      throw std::invalid_argument("spread does not fit the labels");
    n_ = static_cast<std::uint64_t>(sums[0]);
    std::copy_n(sums.begin() + 1, length, mean_.begin());
    std::copy_n(sums.begin() + 1 + length, length, squares_.begin());
  }

  double deviation() const {
    double variance = 0.0;
    for (const double squares : squares_) variance += squares / static_cast<double>(n_);
    return std::sqrt(variance);
  }

  double epsilon() const { return 0.1 * deviation(); }

 private:
  std::uint64_t n_ = 0;
  std::pmr::vector<double> mean_;
  std::pmr::vector<double> squares_;
};

}  // namespace boundary_forest
