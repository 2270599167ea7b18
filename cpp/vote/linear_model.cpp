#include "vote/linear_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/cholesky.hpp"

namespace boundary_forest {
namespace {

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

std::size_t packed(std::size_t j, std::size_t k) { return j * (j + 1) / 2 + k; }

// The sums of two terms' products.
double product(const LinearSums& sums, std::size_t t, std::size_t u) {
  return t < u ? sums.products[packed(u, t)] : sums.products[packed(t, u)];
}

// Ridge regression on the terms at these places; no outputs if there is none.
LinearFit fitted(const LinearSums& sums, double n, double penalty, double term_penalty,
                 std::span<const std::size_t> places) {
  const std::size_t D = places.size();
  const std::size_t T = sums.sums.size();
  std::vector<double> mean(D);
  std::vector<double> scale(D, 0.0);
  double n_varied = 0.0;  // terms
  for (std::size_t j = 0; j < D; ++j) {
    mean[j] = sums.sums[places[j]] / n;
    const double square = product(sums, places[j], places[j]) / n;
    const double variance = square - mean[j] * mean[j];
    if (!(variance > LinearModel::least_digits * square)) continue;
    scale[j] = 1.0 / std::sqrt(variance);
    n_varied += 1.0;
  }
  penalty += term_penalty * n_varied / n;
  std::vector<double> system(D * D);
  for (std::size_t j = 0; j < D; ++j)
    for (std::size_t k = 0; k <= j; ++k) {
      const double covariance = product(sums, places[j], places[k]) / n - mean[j] * mean[k];
      system[k * D + j] = covariance * scale[j] * scale[k] + (j == k ? penalty : 0.0);
    }
  LinearFit fit;
  if (!cholesky(system.data(), D)) return fit;
  std::vector<double> solution(D);
  for (std::size_t o = 0; o < sums.label_sums.size(); ++o) {
    const double label_mean = sums.label_sums[o] / n;
    for (std::size_t j = 0; j < D; ++j)
      solution[j] = (sums.cross[o * T + places[j]] / n - mean[j] * label_mean) * scale[j];
    solve(system.data(), D, solution.data());
    for (std::size_t j = 0; j < D; ++j) solution[j] *= scale[j];
    fit.coefficients.insert(fit.coefficients.end(), solution.begin(), solution.end());
    fit.intercepts.push_back(sums.label_origin[o] +
                             (label_mean - lane_dot(solution.data(), mean.data(), D)));
  }
  if (all_finite(fit.coefficients) && all_finite(fit.intercepts)) return fit;
  return {};
}

// What a row or a column of the products becomes when the origin moves, as
// (u_i - s_i) (u_j - s_j) = u_i u_j - s_i u_j - s_j u_i + s_i s_j. at(t) is its part for term t, shift[t] the
// way of the feature there, and `constant` the part of the constant term, which stays.
template <class At>
void shift_terms(const Terms& terms, std::span<const double> shift, double constant, At&& at) {
  terms.for_products([&](std::size_t t, std::size_t i, std::size_t j) {
    at(t) = ((at(t) - shift[i] * at(j)) - shift[j] * at(i)) + shift[i] * shift[j] * constant;
  });
  for (std::size_t f = 0; f < terms.n_features; ++f)
    at(terms.feature(f)) -= shift[terms.feature(f)] * constant;
}

void shift_products(LinearSums& sums, double n, const Terms& terms, std::span<const double> shift) {
  const std::size_t T = terms.size();
  std::vector<double> all(T * T);  // rows are moved, then columns
  for (std::size_t j = 0; j < T; ++j)
    for (std::size_t k = 0; k <= j; ++k)
      all[j * T + k] = all[k * T + j] = sums.products[packed(j, k)];
  for (std::size_t k = 0; k < T; ++k)
    shift_terms(terms, shift, sums.sums[k],
                [&](std::size_t t) -> double& { return all[t * T + k]; });
  shift_terms(terms, shift, n, [&](std::size_t t) -> double& { return sums.sums[t]; });
  for (std::size_t j = 0; j < T; ++j) {
    shift_terms(terms, shift, sums.sums[j],
                [&](std::size_t t) -> double& { return all[j * T + t]; });
    for (std::size_t k = 0; k <= j; ++k) sums.products[packed(j, k)] = all[j * T + k];
  }
}

// The answers stay: with u + s for the features, products have parts for these and for the intercept.
void shift_fits(LinearModel::Fits& fits, const Terms& terms, std::span<const double> shift) {
  const std::size_t D = terms.n_features;
  std::vector<double> of_features(D);
  for (std::size_t f = 0; f < D; ++f) of_features[f] = shift[terms.feature(f)];
  for (std::size_t o = 0; o < fits.linear.intercepts.size(); ++o) {
    fits.linear.intercepts[o] +=
        lane_dot(fits.linear.coefficients.data() + o * D, of_features.data(), D);
    if (fits.quadratic.intercepts.empty()) continue;
    double* c = fits.quadratic.coefficients.data() + o * terms.size();
    double& intercept = fits.quadratic.intercepts[o];
    for (std::size_t f = 0; f < D; ++f) intercept += c[terms.feature(f)] * of_features[f];
    terms.for_products([&](std::size_t t, std::size_t i, std::size_t j) {
      intercept += c[t] * (shift[i] * shift[j]);
      c[i] += c[t] * shift[j];
      c[j] += c[t] * shift[i];
    });
  }
}

}  // namespace

Terms Terms::as_fit(std::size_t D, std::size_t step) { return {D, most - std::min(most, D), step}; }

void Terms::expand(const double* features, double* out) const {
  for (std::size_t i = 0; i < n_features; ++i) out[feature(i)] = features[i];
  for_products([&](std::size_t t, std::size_t i, std::size_t j) { out[t] = out[i] * out[j]; });
}

std::size_t LinearModel::bytes() const {
  std::size_t n = waiting.size() + waiting_counts.size() + waiting_labels.size();
  if (is_kept())
    for (const std::vector<double>* part : {&sums->origin, &sums->label_origin, &sums->sums,
                                            &sums->products, &sums->label_sums, &sums->cross})
      n += part->size();
  if (is_solved())
    for (const LinearFit* fit : {&fits->linear, &fits->quadratic})
      n += fit->intercepts.size() + fit->coefficients.size();
  return n * sizeof(double);
}

void LinearModel::begin(std::span<const double> row, std::span<const double> label, bool votes,
                        std::size_t step) {
  const std::size_t D = row.size();
  if (D > most_features || label.size() > most_outputs) return;
  this->votes = votes;
  terms = kind.has_products ? Terms::as_fit(D, step) : Terms{D, 0};
  LinearSums first;
  first.origin.assign(row.begin(), row.end());
  first.sums.assign(terms.size(), 0.0);
  first.products.assign(terms.size() * (terms.size() + 1) / 2, 0.0);
  first.label_origin.assign(label.begin(), label.end());
  first.label_sums.assign(label.size(), 0.0);
  first.cross.assign(label.size() * terms.size(), 0.0);
  sums = std::make_shared<const LinearSums>(std::move(first));
}

void LinearModel::add_outputs(std::size_t n_outputs) {
  if (!is_kept() || n_outputs <= this->n_outputs()) return;
  if (n_outputs > most_outputs) {
    settle();
    is_current = false;
    n = 0.0;
    return;
  }
  LinearSums more = *sums;
  more.label_origin.resize(n_outputs, 0.0);
  more.label_sums.resize(n_outputs, 0.0);
  more.cross.resize(n_outputs * terms.size(), 0.0);
  sums = std::make_shared<const LinearSums>(std::move(more));
}

void LinearModel::add_label(std::span<const double> row, const double* label, double sign) {
  std::vector<double> relative(label, label + n_outputs());
  for (std::size_t o = 0; o < relative.size(); ++o) relative[o] -= sums->label_origin[o];
  add_row(row, relative, sign);
}

void LinearModel::add_class(std::span<const double> row, std::size_t output, double sign) {
  const auto place = static_cast<double>(output);
  add_row(row, std::span(&place, 1), sign);
}

void LinearModel::add_row(std::span<const double> row, std::span<const double> label, double sign) {
  if (sign < 0.0) settle();
  is_current = false;
  pass_row();
  n += sign * unit;
  for (std::size_t j = 0; j < row.size(); ++j) waiting.push_back(row[j] - sums->origin[j]);
  waiting_counts.push_back(unit);
  waiting_labels.insert(waiting_labels.end(), label.begin(), label.end());
  if (sign < 0.0 || waiting.size() >= most_waiting * row.size()) settle(sign);
}

// Powers of two change no digit. What has all but vanished is 0, or numbers would become subnormal, and slow.
void LinearModel::pass_row() {
  constexpr double vanished = 1e-200;
  if (!is_kept()) return;
  unit *= kind.growth;
  if (unit < most_unit) return;
  settle();
  unit /= most_unit;
  n /= most_unit;
  LinearSums less = *sums;
  for (std::vector<double>* part : {&less.sums, &less.products, &less.label_sums, &less.cross})
    for (double& x : *part) x = std::fabs(x) < vanished ? 0.0 : x / most_unit;
  sums = std::make_shared<const LinearSums>(std::move(less));
}

std::size_t LinearModel::n_varied() const {
  const std::size_t D = terms.n_features;
  std::size_t n_varied = 0;
  for (std::size_t f = 0; f < D; ++f) {
    bool varied = product(*sums, terms.feature(f), terms.feature(f)) != 0.0;
    for (std::size_t i = 0; !varied && i < waiting_counts.size(); ++i)
      varied = waiting_counts[i] * waiting[i * D + f] * waiting[i * D + f] != 0.0;
    n_varied += varied;
  }
  return n_varied;
}

// Element by element in order of the rows; four rows at a time, so that an element is read and written once
// for them.
void LinearModel::add_waiting(LinearSums& to, double sign) const {
  const std::size_t D = terms.n_features;
  const std::size_t T = terms.size();
  const std::size_t n_rows = waiting_counts.size();
  const auto count = [&](std::size_t i) { return sign * waiting_counts[i]; };
  std::vector<double> rows(n_rows * T);
  for (std::size_t i = 0; i < n_rows; ++i) {
    terms.expand(waiting.data() + i * D, rows.data() + i * T);
    add_multiple(to.sums.data(), count(i), rows.data() + i * T, T);
  }
  std::size_t i = 0;
  for (; i + 4 <= n_rows; i += 4) {
    const double* __restrict a = rows.data() + i * T;
    const double* __restrict b = a + T;
    const double* __restrict c = b + T;
    const double* __restrict d = c + T;
    double* __restrict p = to.products.data();
    for (std::size_t j = 0; j < T; p += ++j) {
      const double aj = count(i) * a[j], bj = count(i + 1) * b[j];
      const double cj = count(i + 2) * c[j], dj = count(i + 3) * d[j];
      for (std::size_t k = 0; k <= j; ++k)
        p[k] = (((p[k] + aj * a[k]) + bj * b[k]) + cj * c[k]) + dj * d[k];
    }
  }
  for (; i < n_rows; ++i) {
    const double* row = rows.data() + i * T;
    double* of_j = to.products.data();
    for (std::size_t j = 0; j < T; of_j += ++j) add_multiple(of_j, count(i) * row[j], row, j + 1);
  }
  const std::size_t length = waiting_labels.size() / n_rows;
  for (i = 0; i < n_rows; ++i)
    for (std::size_t l = 0; l < length; ++l) {
      const double label = waiting_labels[i * length + l];
      const std::size_t o = votes ? static_cast<std::size_t>(label) : l;
      const double y = votes ? count(i) : count(i) * label;
      to.label_sums[o] += y;
      add_multiple(to.cross.data() + o * T, y, rows.data() + i * T, T);
    }
}

void LinearModel::settle(double sign) {
  if (waiting.empty()) return;
  LinearSums more = *sums;
  add_waiting(more, sign);
  sums = std::make_shared<const LinearSums>(std::move(more));
  waiting.clear();
  waiting_counts.clear();
  waiting_labels.clear();
}

LinearSums LinearModel::all_sums() const {
  LinearSums all = *sums;
  if (!waiting.empty()) add_waiting(all, 1.0);
  return all;
}

void LinearModel::recentre() {
  if (!is_kept() || !(n >= unit)) return;
  LinearSums moved = all_sums();
  waiting.clear();
  waiting_counts.clear();
  waiting_labels.clear();
  const std::size_t D = terms.n_features;
  const std::size_t T = terms.size();
  std::vector<double> shift(T, 0.0);
  for (std::size_t f = 0; f < D; ++f) shift[terms.feature(f)] = moved.sums[terms.feature(f)] / n;
  shift_products(moved, n, terms, shift);
  for (std::size_t o = 0; o < n_outputs(); ++o)
    shift_terms(terms, shift, moved.label_sums[o],
                [&](std::size_t t) -> double& { return moved.cross[o * T + t]; });
  for (std::size_t j = 0; j < D; ++j) {
    moved.origin[j] += shift[terms.feature(j)];
    moved.sums[terms.feature(j)] = 0.0;  // but for rounding
  }
  for (std::size_t o = 0; !votes && o < n_outputs(); ++o) {
    const double label_shift = moved.label_sums[o] / n;
    add_multiple(moved.cross.data() + o * T, -label_shift, moved.sums.data(), T);
    moved.label_origin[o] += label_shift;
    moved.label_sums[o] = 0.0;
  }
  sums = std::make_shared<const LinearSums>(std::move(moved));
  if (!is_solved()) return;
  Fits fits_there = *fits;
  shift_fits(fits_there, terms, shift);
  fits = std::make_shared<const Fits>(std::move(fits_there));
}

void LinearModel::widen(std::size_t n_features) {
  if (!is_kept()) return;
  if (n_features > most_features) {
    *this = LinearModel{.kind = kind};
    return;
  }
  settle();
  is_current = false;
  const std::size_t D = terms.n_features;
  const std::size_t T = terms.size();
  terms.n_features = n_features;  // the terms before are the first ones
  const auto with_zeros = [](const std::vector<double>& narrow, std::size_t n_narrow,
                             std::size_t n_wide) {
    std::vector<double> rows(narrow.size() / n_narrow * n_wide, 0.0);
    for (std::size_t i = 0; i * n_narrow < narrow.size(); ++i)
      std::copy_n(narrow.data() + i * n_narrow, n_narrow, rows.data() + i * n_wide);
    return rows;
  };
  LinearSums more = *sums;
  more.origin.resize(n_features, 0.0);
  more.sums.resize(terms.size(), 0.0);
  more.cross = with_zeros(sums->cross, T, terms.size());
  more.products.resize(terms.size() * (terms.size() + 1) / 2, 0.0);
  sums = std::make_shared<const LinearSums>(std::move(more));
  if (!is_solved()) return;
  Fits fits_there = *fits;
  fits_there.linear.coefficients = with_zeros(fits->linear.coefficients, D, n_features);
  fits_there.quadratic.coefficients = with_zeros(fits->quadratic.coefficients, T, terms.size());
  fits = std::make_shared<const Fits>(std::move(fits_there));
}

void LinearModel::solve() {
  if (is_current) return;
  is_current = true;
  fits = nullptr;
  if (!is_kept() || !(n >= 2.0 * unit)) return;
  if (kind.has_products)
    recentre();
  else
    settle();
  const std::size_t D = terms.n_features;
  const std::size_t T = terms.size();
  std::vector<std::size_t> places(T);
  for (std::size_t f = 0; f < D; ++f) places[f] = terms.feature(f);
  Fits solved{fitted(*sums, n, kind.penalty, 0.0, std::span(places).first(D)), {}};
  if (solved.linear.intercepts.empty()) return;
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (kind.has_products) solved.quadratic = fitted(*sums, n, kind.penalty, term_penalty, places);
  if (kind.has_products &&
      solved.quadratic.intercepts.empty()) {  // squares are too large, or nearly dependent
    solved.quadratic.intercepts = solved.linear.intercepts;
    solved.quadratic.coefficients.assign(n_outputs() * T, 0.0);
    for (std::size_t o = 0; o < n_outputs(); ++o)
      for (std::size_t f = 0; f < D; ++f)
        solved.quadratic.coefficients[o * T + terms.feature(f)] =
            solved.linear.coefficients[o * D + f];
  }
  fits = std::make_shared<const Fits>(std::move(solved));
}

void LinearModel::expand(std::span<const double> row, double* out) const {
  std::array<double, most_features> relative;
  for (std::size_t j = 0; j < row.size(); ++j) relative[j] = row[j] - sums->origin[j];
  terms.expand(relative.data(), out);
}

double LinearModel::score(const double* expanded, std::size_t output) const {
  const std::size_t T = terms.size();
  const LinearFit& fit = fits->quadratic;
  return fit.intercepts[output] + lane_dot(fit.coefficients.data() + output * T, expanded, T);
}

void LinearModel::answer(std::span<const double> row, std::vector<double>& linear) const {
  const std::size_t D = terms.n_features;
  std::array<double, most_features> relative;
  for (std::size_t j = 0; j < D; ++j) relative[j] = row[j] - sums->origin[j];
  linear.resize(n_solved());
  for (std::size_t o = 0; o < n_solved(); ++o)
    linear[o] = fits->linear.intercepts[o] +
                lane_dot(fits->linear.coefficients.data() + o * D, relative.data(), D);
}

void LinearModel::answer(std::span<const double> row, std::vector<double>& linear,
                         std::vector<double>& quadratic) const {
  answer(row, linear);
  std::vector<double> expanded(terms.size());
  expand(row, expanded.data());
  quadratic.resize(n_solved());
  for (std::size_t o = 0; o < n_solved(); ++o) quadratic[o] = score(expanded.data(), o);
}

}  // namespace boundary_forest
