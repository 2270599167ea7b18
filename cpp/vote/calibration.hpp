// Probabilities from shares of votes, which are too cautious: (share + 0.003) ** T, as shares again. T is a
// number of quarters, so that roots and products are all that it takes; it is chosen by the likelihood of
// labels that were predicted before they were learned.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace boundary_forest {

inline constexpr double added_share = 0.003;  // so that no class is impossible
inline constexpr std::uint8_t sharpnesses[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24};
inline constexpr std::size_t n_sharpnesses = sizeof sharpnesses;
inline constexpr std::uint8_t first_sharpness = 4;  // quarters: the shares as they are

// x ** (quarters / 4)
inline double sharpened(double x, std::uint8_t quarters) {
  const double root = std::sqrt(std::sqrt(x));
  double power = 1.0;
  for (std::uint8_t i = 0; i < quarters; ++i) power *= root;
  return power;
}

// The binary logarithm of a positive number, within 1e-9; libm's differ in the last bits.
inline double log2_of(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2.0;
    --exponent;
  }
  const double z = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = z * z;
  double series = 1.0 / 11.0;
  for (const double odd : {9.0, 7.0, 5.0, 3.0, 1.0}) series = series * square + 1.0 / odd;
  return static_cast<double>(exponent) + 2.8853900817779268 * (z * series);  // 2 / ln 2
}

}  // namespace boundary_forest
