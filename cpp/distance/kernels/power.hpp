// |x - y|^p for minkowski, and the root that turns a sum of them into a distance.
//
// Integer and half-integer p up to 64 need multiplications and a square root alone, which round alike
// everywhere; any other p goes through the C library's pow, whose last bit depends on which variant
// of it the processor gets. So promise 2 holds across machines for the former.
#pragma once

#include <bit>
#include <cstdint>

namespace boundary_forest::kernels {
namespace {

constexpr double largest_exact_power = 64.0;

inline bool has_exact_power(double p) {
  return p <= largest_exact_power && 2.0 * p == static_cast<double>(static_cast<int>(2.0 * p));
}

// x^p for x >= 0, by squaring; reference/ multiplies in the same order.
inline double power(double x, double p) {
  if (!has_exact_power(p)) return __builtin_pow(x, p);
  const auto twice = static_cast<unsigned>(2.0 * p);
  double result = twice % 2 == 1 ? __builtin_sqrt(x) : 1.0;
  double base = x;
  for (unsigned exponent = twice / 2; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

// The largest y with power(y, p) <= r, for r >= 0; doubles are ordered as their bits are. Of 0 it is
// 0, although powers of small numbers underflow: d(x, x) must be 0.
inline double root(double r, double p) {
  if (!has_exact_power(p)) return __builtin_pow(r, 1.0 / p);
  if (r == 0.0 || r > __DBL_MAX__) return r;
  std::uint64_t below = 0;
  std::uint64_t above = std::bit_cast<std::uint64_t>(__builtin_inf());
  while (above - below > 1) {
    const std::uint64_t middle = below + (above - below) / 2;
    (power(std::bit_cast<double>(middle), p) <= r ? below : above) = middle;
  }
  return std::bit_cast<double>(below);
}

}  // namespace
}  // namespace boundary_forest::kernels
