// d_c: the distance between label vectors, and the threshold epsilon that follows the targets'
// spread.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "boundary_forest/types.hpp"

namespace boundary_forest {

// |a - b|, scaled by its largest part so that it neither over- nor underflows; for one number |a -
// b|.
inline double label_distance(const double* a, const double* b, std::size_t length) {
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

// d_c(c(y), c(v_min)) > epsilon?
inline bool labels_differ(LabelRule rule, const double* a, const double* b, std::size_t length,
                          double epsilon) {
  switch (rule) {
    case LabelRule::classes_differ:
      return *a != *b;
    case LabelRule::difference:
      return label_distance(a, b, length) > epsilon;
    default:
      return true;
  }
}

// The running spread of label vectors (Welford, in order of arrival), for epsilon = "auto":
// a tenth of the standard deviation, for many outputs of the root of the summed variances.
class Spread {
 public:
  explicit Spread(std::size_t length = 0) : mean_(length, 0.0), squares_(length, 0.0) {}

  void add(const double* label) {
    ++n_;
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      const double before = label[i] - mean_[i];
      mean_[i] += before / static_cast<double>(n_);
      squares_[i] += before * (label[i] - mean_[i]);
    }
  }

  double epsilon() const {
    double variance = 0.0;
    for (const double squares : squares_) variance += squares / static_cast<double>(n_);
    return 0.1 * std::sqrt(variance);
  }

 private:
  std::uint64_t n_ = 0;
  std::vector<double> mean_;
  std::vector<double> squares_;
};

}  // namespace boundary_forest
