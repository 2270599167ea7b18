#include "adapt/aging_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/cholesky.hpp"

namespace boundary_forest {

void AgingModel::begin(std::span<const double> row, std::span<const double> label) {
  const std::size_t D = row.size();
  if (D > LinearModel::most_features || label.size() > LinearModel::most_outputs) return;
  origin.assign(row.begin(), row.end());
  sums.assign(D, 0.0);
  products.assign(D * (D + 1) / 2, 0.0);
  add_outputs(label.size());
  std::ranges::copy(label, label_origin.begin());
}

void AgingModel::add_outputs(std::size_t n_outputs) {
  if (!is_kept() || n_outputs <= this->n_outputs()) return;
  if (n_outputs > LinearModel::most_outputs) {
    n = 0.0;
    return;
  }
  label_origin.resize(n_outputs, 0.0);
  label_sums.resize(n_outputs, 0.0);
  cross.resize(n_outputs * origin.size(), 0.0);
}

// Row relative to the origin.
void AgingModel::add_row(std::span<const double> row, double sign) {
  n += sign;
  double* of_j = products.data();
  for (std::size_t j = 0; j < row.size(); of_j += ++j) {
    const double x = sign * row[j];
    sums[j] += x;
    add_multiple(of_j, x, row.data(), j + 1);
  }
}

void AgingModel::add_label(std::span<const double> row, const double* label, double sign) {
  const std::size_t D = origin.size();
  std::vector<double> relative(D);
  for (std::size_t j = 0; j < D; ++j) relative[j] = row[j] - origin[j];
  add_row(relative, sign);
  for (std::size_t o = 0; o < n_outputs(); ++o) {
    const double y = sign * (label[o] - label_origin[o]);
    label_sums[o] += y;
    add_multiple(cross.data() + o * D, y, relative.data(), D);
  }
}

void AgingModel::add_class(std::span<const double> row, std::size_t output, double sign) {
  const std::size_t D = origin.size();
  std::vector<double> relative(D);
  for (std::size_t j = 0; j < D; ++j) relative[j] = row[j] - origin[j];
  add_row(relative, sign);
  label_sums[output] += sign;
  add_multiple(cross.data() + output * D, sign, relative.data(), D);
}

void AgingModel::recentre(bool votes) {
  if (!is_kept() || !(n >= 1.0)) return;
  const std::size_t D = origin.size();
  std::vector<double> shift(D);
  std::vector<double> label_shift(n_outputs(), 0.0);
  for (std::size_t j = 0; j < D; ++j) shift[j] = sums[j] / n;
  for (std::size_t o = 0; !votes && o < n_outputs(); ++o) label_shift[o] = label_sums[o] / n;
  for (std::size_t j = 0; j < D; ++j)
    for (std::size_t k = 0; k <= j; ++k)
      products[j * (j + 1) / 2 + k] -= shift[j] * sums[k];  // the other terms cancel
  for (std::size_t o = 0; o < n_outputs(); ++o)
    for (std::size_t j = 0; j < D; ++j) cross[o * D + j] -= shift[j] * label_sums[o];
  for (std::size_t o = 0; !votes && o < n_outputs(); ++o) {
    label_origin[o] += label_shift[o];
    label_sums[o] = 0.0;
  }
  // The answers stay as they are.
  for (std::size_t o = 0; o < intercepts.size(); ++o)
    intercepts[o] += lane_dot(coefficients.data() + o * D, shift.data(), D);
  for (std::size_t j = 0; j < D; ++j) {
    origin[j] += shift[j];
    sums[j] = 0.0;
  }
}

void AgingModel::widen(std::size_t n_features) {
  const std::size_t D = origin.size();
  if (!is_kept()) return;
  if (n_features > LinearModel::most_features) {
    *this = AgingModel{};
    return;
  }
  const auto with_zeros = [&](const std::vector<double>& narrow) {
    std::vector<double> wide(narrow.size() / D * n_features, 0.0);
    for (std::size_t o = 0; o * D < narrow.size(); ++o)
      std::copy_n(narrow.data() + o * D, D, wide.data() + o * n_features);
    return wide;
  };
  cross = with_zeros(cross);
  coefficients = with_zeros(coefficients);
  origin.resize(n_features, 0.0);
  sums.resize(n_features, 0.0);
  products.resize(n_features * (n_features + 1) / 2, 0.0);
}

void AgingModel::decay(double factor) {
  constexpr double least = 1e-200;  // or numbers would become subnormal, and slow
  n *= factor;
  for (std::vector<double>* part : {&sums, &products, &label_sums, &cross})
    for (double& x : *part) x = std::fabs(x) < least ? 0.0 : factor * x;
}

void AgingModel::solve(double penalty) {
  coefficients.clear();
  intercepts.clear();
  if (!is_kept() || !(n >= 2.0)) return;
  const std::size_t D = origin.size();
  std::vector<double> mean(D);
  std::vector<double> scale(D, 0.0);
  for (std::size_t j = 0; j < D; ++j) {
    mean[j] = sums[j] / n;
    const double square = products[j * (j + 1) / 2 + j] / n;
    const double variance = square - mean[j] * mean[j];
    if (variance > LinearModel::least_digits * square) scale[j] = 1.0 / std::sqrt(variance);
  }
  std::vector<double> system(D * D);
  for (std::size_t j = 0; j < D; ++j)
    for (std::size_t k = 0; k <= j; ++k) {
      const double covariance = products[j * (j + 1) / 2 + k] / n - mean[j] * mean[k];
      system[k * D + j] = covariance * scale[j] * scale[k] + (j == k ? penalty : 0.0);
    }
  if (!cholesky(system.data(), D)) return;
  std::vector<double> solution(D);
  for (std::size_t o = 0; o < n_outputs(); ++o) {
    const double label_mean = label_sums[o] / n;
    for (std::size_t j = 0; j < D; ++j)
      solution[j] = (cross[o * D + j] / n - mean[j] * label_mean) * scale[j];
    boundary_forest::solve(system.data(), D, solution.data());
    for (std::size_t j = 0; j < D; ++j) solution[j] *= scale[j];
    coefficients.insert(coefficients.end(), solution.begin(), solution.end());
    intercepts.push_back(label_origin[o] +
                         (label_mean - lane_dot(solution.data(), mean.data(), D)));
  }
  const auto is_finite = [](double x) { return std::isfinite(x); };
  if (std::ranges::all_of(coefficients, is_finite) && std::ranges::all_of(intercepts, is_finite))
    return;
  coefficients.clear();
  intercepts.clear();
}

void AgingModel::answer(std::span<const double> row, std::vector<double>& out) const {
  const std::size_t D = origin.size();
  std::vector<double> relative(D);
  for (std::size_t j = 0; j < D; ++j) relative[j] = row[j] - origin[j];
  out.resize(intercepts.size());
  for (std::size_t o = 0; o < out.size(); ++o)
    out[o] = intercepts[o] + lane_dot(coefficients.data() + o * D, relative.data(), D);
}

}  // namespace boundary_forest
