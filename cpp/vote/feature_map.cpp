#include "vote/feature_map.hpp"

#include <algorithm>

namespace boundary_forest {
namespace {

constexpr double steps = 8.0;      // per unit, to which numbers are rounded
constexpr double most_z = 1e100;   // beyond, squares might be too large
constexpr double no_unit = 1e-12;  // of the median: a smaller distance is rounding alone

double squashed(double x, double centre, double unit) {
  const double z = std::clamp((x - centre) / unit, -most_z, most_z);
  return z / std::sqrt(1.0 + std::fabs(z));
}

double rounded(double x) {
  return std::fabs(x) < 0x1p49 ? std::floor(x * steps + 0.5) / steps : x;  // else it has no eighths
}

// The value in sorted ones below which a share of `part` / 20 lies.
double quantile(std::span<const double> sorted, std::size_t part) {
  return sorted[(sorted.size() - 1) * part / 20];
}

// The largest power of two that is not above.
double power_of_two(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, exponent - 1);
}

// How much values vary: the distance of the quartiles, or of the outer values; 1 if they do not.
double unit_of(std::span<const double> sorted) {
  const double least = no_unit * std::fabs(quantile(sorted, 10));
  for (const double width :
       {quantile(sorted, 15) - quantile(sorted, 5), sorted.back() - sorted.front()})
    if (width > least && width < most_z && width > 1.0 / most_z) return power_of_two(width);
  return 1.0;
}

}  // namespace

// As many knots per feature as leave room for all products of these and the features; else as leave half of
// the terms to products of features.
void FeatureMap::choose_knots(std::size_t n_features, std::size_t n_varied) {
  const auto leaves_half = [&](std::size_t knots) {
    return (1 + knots) * n_features <= Terms::most / 2;
  };
  const auto leaves_all = [&](std::size_t knots) {
    const std::size_t n = (1 + knots) * n_varied;
    return leaves_half(knots) && n + Terms::all_products(n) <= Terms::most;
  };
  step = 1;
  for (n_knots = most_knots; n_knots > 0; --n_knots)
    if (leaves_all(n_knots)) return;
  n_knots = most_knots;
  while (n_knots > 0 && !leaves_half(n_knots)) --n_knots;
  step = 1 + n_knots;
}

FeatureMap FeatureMap::of(std::span<const double> rows, std::size_t n_features) {
  FeatureMap map;
  const std::size_t n = rows.size() / n_features;
  std::vector<double> sorted(n_features * n);  // by feature
  std::size_t n_varied = 0;
  for (std::size_t f = 0; f < n_features; ++f) {
    const std::span<double> of_f(sorted.data() + f * n, n);
    for (std::size_t i = 0; i < n; ++i) of_f[i] = rows[i * n_features + f] + 0.0;  // not -0
    std::ranges::sort(of_f);
    n_varied += of_f.front() != of_f.back();
  }
  map.choose_knots(n_features, n_varied);
  for (std::size_t f = 0; f < n_features; ++f) {
    const std::span<const double> of_f(sorted.data() + f * n, n);
    const double unit = unit_of(of_f);
    const double centre = rounded(quantile(of_f, 10) / unit) * unit;
    map.numbers.push_back(centre);
    map.numbers.push_back(unit);
    for (std::size_t k = 0; k < map.n_knots; ++k) {
      const std::size_t part = map.n_knots == 1 ? 10 : 6 + 8 * k;
      map.numbers.push_back(rounded(squashed(quantile(of_f, part), centre, unit)));
    }
  }
  return map;
}

void FeatureMap::apply(std::span<const double> row, double* out) const {
  const double* of_f = numbers.data();
  for (const double x : row.first(n_features())) {
    const double u = squashed(x, of_f[0], of_f[1]);
    *out++ = u;
    for (std::size_t k = 0; k < n_knots; ++k) *out++ = std::fabs(u - of_f[2 + k]);
    of_f += 2 + n_knots;
  }
}

void FeatureMap::widen(std::size_t n_features) {
  if (!is_fixed()) return;
  for (std::size_t f = this->n_features(); f < std::min(n_features, most_features()); ++f) {
    numbers.push_back(0.0);
    numbers.push_back(1.0);
    numbers.insert(numbers.end(), n_knots, 0.0);
  }
}

}  // namespace boundary_forest
