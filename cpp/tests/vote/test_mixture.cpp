// Fits behind weights="mixture": around a query, in either space, and over all rows.
#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.hpp"
#include "store/example_store.hpp"
#include "tests/check.hpp"
#include "vote/calibration.hpp"
#include "vote/feature_map.hpp"
#include "vote/linear_model.hpp"
#include "vote/local_fit.hpp"

using namespace boundary_forest;

namespace {

double number(std::uint64_t i) { return static_cast<double>(hash64(7, i) >> 11) * 0x1p-53 - 0.5; }

// y = 3 x0 - 2 x1 + 1; other features do not matter.
double target(const double* x) { return 3.0 * x[0] - 2.0 * x[1] + 1.0; }

bool is_near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }

// What a ridge of the given penalty answers to a query in the midst of n examples with D features.
double ridge_answer(std::size_t n, std::size_t D, double penalty) {
  std::vector<double> rows(n * D);
  std::vector<double> labels(n);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = number(i);
  for (std::size_t i = 0; i < n; ++i) labels[i] = target(rows.data() + i * D);
  ExampleStore store(ElementType::float64, D, 1);
  store.stage(reinterpret_cast<const std::byte*>(rows.data()), labels.data(), n, 0);
  std::vector<Leaf> v;
  for (Slot slot = 0; slot < n; ++slot) v.insert(v.end(), 1 + slot % 2, Leaf{slot, 0.0});
  const std::vector<double> query(D, 0.1);
  LocalFit fit(store, {});
  fit.begin({reinterpret_cast<const std::byte*>(query.data()), ElementType::float64}, v);
  CHECK_EQ(fit.ends().size(), n);
  const std::span<const double> coefficients = fit.coefficients({Expert::Kind::ridge, 1, penalty});
  double answer = 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    answer += coefficients[i] * labels[i];
    sum += coefficients[i];
  }
  CHECK(is_near(sum, 1.0, 1e-12));
  return answer;
}

}  // namespace

CASE("a ridge regression around a query follows a linear target, in either space") {
  const std::vector<double> query(60, 0.1);
  for (const std::size_t D : {2, 5, 20}) {
    CHECK(is_near(ridge_answer(50, D, 1e-9), target(query.data()), 1e-6));
    CHECK(!is_near(ridge_answer(50, D, 3.0), target(query.data()), 1e-3));
  }
  // With as many examples as features, and one less, the two spaces solve nearly the same problem.
  CHECK(is_near(ridge_answer(40, 40, 0.3), ridge_answer(39, 40, 0.3), 0.2));
}

CASE("a linear model forgets rows, and its origin is nobody's row") {
  constexpr std::size_t D = 4;
  LinearModel model;
  std::vector<double> first(D);
  for (std::size_t i = 0; i < 300; ++i) {
    std::vector<double> row(D);
    for (std::size_t j = 0; j < D; ++j) row[j] = 1e3 + number(i * D + j);
    const double label = target(row.data());
    if (i == 0) {
      first = row;
      model.begin(row, std::span(&label, 1), /*votes=*/false);
    }
    model.add_label(row, &label, 1.0);
  }
  model.solve();
  std::vector<double> quadratic;
  std::vector<double> before;
  std::vector<double> after;
  const std::vector<double> query = {1000.2, 999.9, 1000.0, 1000.1};
  model.answer(query, before, quadratic);
  CHECK(is_near(before[0], target(query.data()), 0.02));
  const double label = target(first.data());
  model.add_label(first, &label, -1.0);
  model.recentre();
  model.answer(query, after, quadratic);
  CHECK(is_near(before[0], after[0], 1e-9));
  for (std::size_t j = 0; j < D; ++j) CHECK(model.sums->origin[j] != first[j]);
  model.solve();
  model.answer(query, after, quadratic);
  CHECK(is_near(after[0], target(query.data()), 0.02));
}

CASE("a quadratic model follows products, also when a row is forgotten") {
  constexpr std::size_t D = 5;
  LinearModel model;
  const auto row_of = [](std::size_t i) {
    std::vector<double> row(D);
    for (std::size_t j = 0; j < D; ++j) row[j] = 50.0 + number(i * D + j);
    return row;
  };
  const auto label_of = [](const std::vector<double>& row) {
    return 4.0 * (row[0] - 50.0) * (row[3] - 50.0) - row[1];
  };
  for (std::size_t i = 0; i < 500; ++i) {
    const std::vector<double> row = row_of(i);
    const double label = label_of(row);
    if (i == 0) model.begin(row, std::span(&label, 1), /*votes=*/false);
    model.add_label(row, &label, 1.0);
  }
  model.solve();
  const std::vector<double> query = {50.4, 49.7, 50.0, 49.6, 50.1};
  std::vector<double> linear;
  std::vector<double> before;
  std::vector<double> after;
  model.answer(query, linear, before);
  CHECK(is_near(before[0], label_of(query), 0.1));
  CHECK(!is_near(linear[0], label_of(query), 0.3));
  const std::vector<double> lost = row_of(7);
  const double label = label_of(lost);
  model.add_label(lost, &label, -1.0);
  model.recentre();
  model.answer(query, linear, after);
  CHECK(is_near(before[0], after[0], 1e-6));
}

CASE("terms with steps have places of their own, products of the first features alone") {
  for (const std::size_t step : {1, 3}) {
    const Terms terms = Terms::as_fit(12, step);
    std::vector<double> features(12);
    for (std::size_t f = 0; f < 12; ++f) features[f] = number(f);
    std::vector<double> out(terms.size(), 1e9);
    terms.expand(features.data(), out.data());
    for (std::size_t f = 0; f < 12; ++f) CHECK_EQ(out[terms.feature(f)], features[f]);
    CHECK_EQ(terms.n_products(), Terms::all_products(12 / step));
    CHECK_EQ(out.back(), features[12 - step] * features[12 - step]);
    for (const double x : out) CHECK(x != 1e9);
  }
}

CASE("a map squashes large values, and its numbers are no values of rows") {
  std::vector<double> rows;
  for (std::size_t i = 0; i < 63; ++i) {
    rows.push_back(1e-3 * number(i));
    rows.push_back(7.3);
  }
  FeatureMap map = FeatureMap::of(rows, 2);
  CHECK_EQ(map.n_knots, FeatureMap::most_knots);
  CHECK_EQ(map.numbers[5], 1.0);  // the unit of a constant
  for (const double number : map.numbers)
    for (const double x : rows) CHECK(number != x);
  map.widen(3);
  std::vector<double> out(map.width());
  map.apply(std::vector{1e300, 7.3, 0.0}, out.data());
  for (std::size_t k = 0; k < 3; ++k) CHECK(std::isfinite(out[k]) && out[k] > 1.0);
  for (std::size_t k = 6; k < 9; ++k) CHECK_EQ(out[k], 0.0);
  map.widen(1000);
  CHECK_EQ(map.width(), LinearModel::most_features / 3 * 3);  // of the first features alone
}

CASE("wider rows leave the answers of a linear model as they are") {
  LinearModel model;
  for (std::size_t i = 0; i < 50; ++i) {
    const std::vector<double> row = {number(2 * i), number(2 * i + 1)};
    if (i == 0) model.begin(row, {}, /*votes=*/true);
    model.add_outputs(2);
    model.add_class(row, row[0] > 0.0 ? 0 : 1, 1.0);
  }
  model.solve();
  std::vector<double> narrow;
  std::vector<double> wide;
  std::vector<double> narrow_quadratic;
  std::vector<double> wide_quadratic;
  model.answer(std::vector{0.3, 0.1}, narrow, narrow_quadratic);
  model.widen(5);
  model.solve();
  model.answer(std::vector{0.3, 0.1, 0.0, 0.0, 0.0}, wide, wide_quadratic);
  CHECK_EQ(narrow[0], wide[0]);
  CHECK_EQ(narrow[1], wide[1]);
  CHECK_EQ(narrow_quadratic[0], wide_quadratic[0]);
  model.widen(LinearModel::most_features + 1);
  CHECK(!model.is_kept());
}

CASE("logarithms and powers are those of the library, nearly") {
  for (const double x : {0.003, 0.4999, 0.7071, 1.0, 3.0, 1e-15}) {
    CHECK(is_near(log2_of(x), std::log2(x), 1e-8));
    for (const std::uint8_t quarters : sharpnesses)
      CHECK(is_near(sharpened(x, quarters) / std::pow(x, 0.25 * quarters), 1.0, 1e-12));
  }
}

int main() { return check::run_all(); }
