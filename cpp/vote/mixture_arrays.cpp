#include "vote/mixture_arrays.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "base/require.hpp"

namespace boundary_forest {
namespace {

constexpr std::size_t n_counts_of_sums = 3;  // before the origin
constexpr std::size_t n_counts_of_map = 3;   // before the numbers of the first feature

void check_weights(std::span<const double> weights) {
  std::size_t n_active = 0;
  double sum = 0.0;
  for (const double weight : weights) {
    require(weight >= 0.0 && weight <= 1.0, "mixture_weights has an invalid number");
    n_active += weight > 0.0;
    sum += weight;
  }
  require(n_active >= 1 && n_active <= most_active && std::fabs(sum - 1.0) < 1e-9,
          "mixture_weights has no mixture");
}

}  // namespace

void append_model(const LinearModel& model, MixtureArrays& arrays) {
  if (!model.is_kept()) return;
  const LinearSums sums = model.all_sums();
  append(arrays.linear_sums,
         std::array{model.n, model.unit, static_cast<double>(model.terms.most_products)});
  for (const std::vector<double>* part : {&sums.origin, &sums.label_origin, &sums.sums,
                                          &sums.products, &sums.label_sums, &sums.cross})
    append(arrays.linear_sums, *part);
  for (std::size_t o = 0; o < model.n_solved(); ++o)
    for (const LinearFit* fit : {&model.fits->linear, &model.fits->quadratic}) {
      if (fit->intercepts.empty()) continue;
      arrays.linear_model.push_back(fit->intercepts[o]);
      append(arrays.linear_model,
             std::span(fit->coefficients).subspan(o * fit->n_terms(), fit->n_terms()));
    }
}

LinearModel linear_of(std::span<const double> saved_sums, std::span<const double> saved_fits,
                      LinearModel::Kind kind, std::size_t D, std::size_t n_outputs, bool votes,
                      std::uint64_t seen, std::size_t step) {
  LinearModel linear{.kind = kind};
  if (saved_sums.empty()) {
    require(saved_fits.empty(), "linear_model has no sums");
    return linear;
  }
  require(D <= LinearModel::most_features, "linear_sums has too many features");
  require(saved_sums.size() >= n_counts_of_sums, "linear_sums has the wrong size");
  linear.n = saved_sums[0];
  linear.unit = saved_sums[1];
  const double most_products = saved_sums[2];
  require(most_products >= 0.0 && most_products == std::floor(most_products) &&
              most_products <= static_cast<double>(kind.has_products ? Terms::most : 0),
          "linear_sums has an invalid number of products");
  linear.votes = votes;
  linear.terms = {D, static_cast<std::size_t>(most_products), step};
  const std::size_t T = linear.terms.size();
  const std::size_t fixed = n_counts_of_sums + D + T + T * (T + 1) / 2;
  const std::size_t size = saved_sums.size();
  require(size >= fixed && (size - fixed) % (T + 2) == 0, "linear_sums has the wrong size");
  const std::size_t outputs = (size - fixed) / (T + 2);
  const bool is_plain = kind.growth == 1.0;
  require(std::isfinite(linear.unit) && linear.unit >= LinearModel::least_unit &&
              linear.unit < LinearModel::most_unit && (linear.unit == 1.0 || !is_plain) &&
              linear.n >= 0.0 && linear.n <= static_cast<double>(seen) * linear.unit &&
              (linear.n == std::floor(linear.n) || !is_plain),
          "linear_sums has an invalid number of rows");
  require(outputs == n_outputs || (linear.n == 0.0 && outputs < n_outputs),
          "linear_sums does not match the labels");
  NumberReader reader(saved_sums.subspan(n_counts_of_sums));
  LinearSums sums;
  sums.origin = reader.next(D);
  sums.label_origin = reader.next(outputs);
  sums.sums = reader.next(T);
  sums.products = reader.next(T * (T + 1) / 2);
  sums.label_sums = reader.next(outputs);
  sums.cross = reader.next(outputs * T);
  linear.sums = std::make_shared<const LinearSums>(std::move(sums));
  const std::size_t per_output = D + 1 + (kind.has_products ? T + 1 : 0);
  require(saved_fits.size() % per_output == 0 && saved_fits.size() / per_output <= outputs,
          "linear_model has the wrong size");
  for (const double x : saved_fits)
    require(std::isfinite(x), "linear_model has a number that is not finite");
  LinearModel::Fits fits;
  NumberReader model(saved_fits);
  while (model.n_left() > 0) {
    append(fits.linear.intercepts, model.next(1));
    append(fits.linear.coefficients, model.next(D));
    if (!kind.has_products) continue;
    append(fits.quadratic.intercepts, model.next(1));
    append(fits.quadratic.coefficients, model.next(T));
  }
  if (!saved_fits.empty()) linear.fits = std::make_shared<const LinearModel::Fits>(std::move(fits));
  return linear;
}

namespace {

void restore_map(std::span<const double> saved, std::size_t D, std::uint64_t seen,
                 MixtureState& mixture) {
  if (saved.empty()) return;
  require(saved.size() >= n_counts_of_map, "linear_map has the wrong size");
  NumberReader reader(saved);
  const std::vector<double> counts = reader.next(n_counts_of_map);
  FeatureMap& map = mixture.map;
  require(counts[0] >= 0.0 && counts[0] <= static_cast<double>(seen) &&
              counts[0] == std::floor(counts[0]),
          "linear_map has an invalid first row");
  require(counts[1] == 0.0 || counts[1] == 1.0 || counts[1] == 2.0,
          "linear_map has an invalid number of knots");
  require(counts[2] == 1.0 || counts[2] == counts[1] + 1.0, "linear_map has an invalid step");
  mixture.first_row = static_cast<Arrival>(counts[0]);
  map.n_knots = static_cast<std::size_t>(counts[1]);
  map.step = static_cast<std::size_t>(counts[2]);
  require(reader.n_left() == std::min(D, map.most_features()) * (2 + map.n_knots),
          "linear_map has the wrong size");
  map.numbers = reader.next(reader.n_left());
  for (std::size_t i = 0; i < map.numbers.size(); ++i)
    require(std::isfinite(map.numbers[i]) && (i % (2 + map.n_knots) != 1 || map.numbers[i] > 0.0),
            "linear_map has an invalid number");
}

}  // namespace

ClassOrder class_order_of(const MixtureArrays& arrays, bool votes, std::uint32_t n_classes) {
  ClassOrder classes;
  require(votes || arrays.classes.empty(), "class_order has classes, but labels are none");
  for (const std::uint32_t code : arrays.classes) {
    require(code < n_classes && classes.find(code) == nothing,
            "class_order has a class that does not exist, or one twice");
    classes.add(code);
  }
  return classes;
}

MixtureArrays arrays_of(const MixtureState& mixture) {
  MixtureArrays arrays;
  if (!mixture.is_mixed()) return arrays;
  arrays.weights = mixture.weights;
  arrays.weights.push_back(mixture.sharpness);
  arrays.trial = {mixture.n_judged, mixture.is_calibrating ? 1.0 : 0.0};
  append(arrays.trial, mixture.units);
  append(arrays.trial, mixture.products);
  append(arrays.trial, mixture.losses);
  arrays.classes.assign(mixture.classes.codes().begin(), mixture.classes.codes().end());
  if (mixture.map.is_fixed())
    append(arrays.linear_map, std::array{static_cast<double>(mixture.first_row),
                                         static_cast<double>(mixture.map.n_knots),
                                         static_cast<double>(mixture.map.step)});
  append(arrays.linear_map, mixture.map.numbers);
  append_model(mixture.linear, arrays);
  return arrays;
}

MixtureState mixture_of(const MixtureArrays& arrays, const Params& params, std::uint64_t seen,
                        std::uint32_t n_classes) {
  MixtureState mixture;
  begin_mixture(params, mixture);
  if (!mixture.is_mixed()) {
    require(arrays.weights.empty() && arrays.trial.empty() && arrays.classes.empty() &&
                arrays.linear_map.empty() && arrays.linear_sums.empty() &&
                arrays.linear_model.empty(),
            "there is a mixture, but weights is not 'mixture'");
    return mixture;
  }
  const bool votes = params.estimator == Estimator::shepard_vote;
  require(arrays.weights.size() == n_experts + 1, "mixture_weights does not match the experts");
  NumberReader weights(arrays.weights);
  mixture.weights = weights.next(n_experts);
  check_weights(mixture.weights);
  const double sharpness = arrays.weights.back();
  require(std::ranges::find(sharpnesses, sharpness) != std::ranges::end(sharpnesses),
          "mixture_weights has an invalid sharpness");
  mixture.sharpness = static_cast<std::uint8_t>(sharpness);
  require(arrays.trial.size() ==
              2 + mixture.units.size() + mixture.products.size() + mixture.losses.size(),
          "mixture_trial has the wrong size");
  NumberReader trial(arrays.trial);
  mixture.n_judged = trial.next(1)[0];
  const double is_calibrating = trial.next(1)[0];
  require(mixture.n_judged >= 0.0 && mixture.n_judged <= static_cast<double>(seen) &&
              (is_calibrating == 0.0 || (is_calibrating == 1.0 && votes)),
          "mixture_trial has an invalid number of rows");
  mixture.is_calibrating = is_calibrating == 1.0;
  mixture.units = trial.next(mixture.units.size());
  mixture.products = trial.next(mixture.products.size());
  mixture.losses = trial.next(mixture.losses.size());
  mixture.classes = class_order_of(arrays, votes, n_classes);
  restore_map(arrays.linear_map, params.n_features, seen, mixture);
  require(mixture.map.is_fixed() == !arrays.linear_sums.empty(),
          "linear_map does not match linear_sums");
  mixture.linear = linear_of(arrays.linear_sums, arrays.linear_model, {}, mixture.map.width(),
                             votes ? mixture.classes.size() : params.label_length, votes, seen,
                             mixture.map.step);
  require(!mixture.weighs_models() || mixture.linear.is_solved(),
          "mixture_weights has a linear model that was not saved");
  return mixture;
}

}  // namespace boundary_forest
