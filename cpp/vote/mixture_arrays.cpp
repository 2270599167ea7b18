#include "vote/mixture_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/require.hpp"

namespace boundary_forest {
namespace {

template <class Part>
void append(std::vector<double>& all, const Part& part) {
  all.insert(all.end(), part.begin(), part.end());
}

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

LinearModel linear_of(const MixtureArrays& arrays, std::size_t D, std::size_t n_outputs, bool votes,
                      std::uint64_t seen) {
  LinearModel linear;
  if (arrays.linear_sums.empty()) {
    require(arrays.linear_model.empty(), "linear_model has no sums");
    return linear;
  }
  require(D <= LinearModel::most_features, "linear_sums has too many features");
  require(arrays.linear_sums.size() >= 2, "linear_sums has the wrong size");
  const double n_products = arrays.linear_sums[1];
  require(n_products >= 0.0 && n_products == std::floor(n_products) &&
              n_products <= static_cast<double>(std::min(Terms::all_products(D), Terms::most)),
          "linear_sums has an invalid number of products");
  linear.votes = votes;
  linear.terms = Terms(D, static_cast<std::size_t>(n_products));
  const std::size_t T = linear.terms.size();
  const std::size_t fixed = 2 + D + T + T * (T + 1) / 2;
  const std::size_t size = arrays.linear_sums.size();
  require(size >= fixed && (size - fixed) % (T + 2) == 0, "linear_sums has the wrong size");
  const std::size_t outputs = (size - fixed) / (T + 2);
  linear.n = arrays.linear_sums[0];
  require(
      linear.n >= 0.0 && linear.n <= static_cast<double>(seen) && linear.n == std::floor(linear.n),
      "linear_sums has an invalid number of rows");
  require(outputs == n_outputs || (linear.n == 0.0 && outputs < n_outputs),
          "linear_sums does not match the labels");
  NumberReader reader(std::span(arrays.linear_sums).subspan(2));
  LinearSums sums;
  sums.origin = reader.next(D);
  sums.label_origin = reader.next(outputs);
  sums.sums = reader.next(T);
  sums.products = reader.next(T * (T + 1) / 2);
  sums.label_sums = reader.next(outputs);
  sums.cross = reader.next(outputs * T);
  linear.sums = std::make_shared<const LinearSums>(std::move(sums));
  const std::size_t n_solved = arrays.linear_model.size() / (D + T + 2);
  require(arrays.linear_model.size() % (D + T + 2) == 0 && n_solved <= outputs,
          "linear_model has the wrong size");
  for (const double x : arrays.linear_model)
    require(std::isfinite(x), "linear_model has a number that is not finite");
  LinearModel::Fits fits;
  NumberReader model(arrays.linear_model);
  while (model.n_left() > 0) {
    append(fits.linear.intercepts, model.next(1));
    append(fits.linear.coefficients, model.next(D));
    append(fits.quadratic.intercepts, model.next(1));
    append(fits.quadratic.coefficients, model.next(T));
  }
  if (n_solved > 0) linear.fits = std::make_shared<const LinearModel::Fits>(std::move(fits));
  return linear;
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
  const LinearModel& linear = mixture.linear;
  if (!linear.is_kept()) return arrays;
  const LinearSums sums = linear.all_sums();
  arrays.linear_sums = {linear.n, static_cast<double>(linear.terms.n_products)};
  for (const std::vector<double>* part : {&sums.origin, &sums.label_origin, &sums.sums,
                                          &sums.products, &sums.label_sums, &sums.cross})
    append(arrays.linear_sums, *part);
  if (!linear.is_solved()) return arrays;
  const auto put = [&](const LinearFit& fit, std::size_t o) {
    arrays.linear_model.push_back(fit.intercepts[o]);
    append(arrays.linear_model,
           std::span(fit.coefficients).subspan(o * fit.n_terms(), fit.n_terms()));
  };
  for (std::size_t o = 0; o < linear.n_solved(); ++o) {
    put(linear.fits->linear, o);
    put(linear.fits->quadratic, o);
  }
  return arrays;
}

MixtureState mixture_of(const MixtureArrays& arrays, const Params& params, std::uint64_t seen,
                        std::uint32_t n_classes) {
  MixtureState mixture;
  begin_mixture(params, mixture);
  if (!mixture.is_mixed()) {
    require(arrays.weights.empty() && arrays.trial.empty() && arrays.classes.empty() &&
                arrays.linear_sums.empty() && arrays.linear_model.empty(),
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
  mixture.linear = linear_of(arrays, params.n_features,
                             votes ? mixture.classes.size() : params.label_length, votes, seen);
  require(!mixture.weighs_models() || mixture.linear.is_solved(),
          "mixture_weights has a linear model that was not saved");
  return mixture;
}

}  // namespace boundary_forest
