#include "vote/mixture_arrays.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace

void append_linear(const LinearModel& linear, MixtureArrays& arrays) {
  if (!linear.is_kept()) return;
  arrays.linear_sums.push_back(linear.n);
  for (const std::vector<double>* part : {&linear.origin, &linear.label_origin, &linear.sums,
                                          &linear.products, &linear.label_sums, &linear.cross})
    append(arrays.linear_sums, *part);
  const std::size_t D = linear.origin.size();
  for (std::size_t o = 0; o < linear.intercepts.size(); ++o) {
    arrays.linear_model.push_back(linear.intercepts[o]);
    append(arrays.linear_model, std::span(linear.coefficients).subspan(o * D, D));
  }
}

LinearModel linear_of(std::span<const double> sums, std::span<const double> solution, std::size_t D,
                      std::size_t n_outputs, std::uint64_t seen, bool ages) {
  LinearModel linear;
  if (sums.empty()) {
    require(solution.empty(), "linear_model has no sums");
    return linear;
  }
  require(D <= LinearModel::most_features, "linear_sums has too many features");
  const std::size_t fixed = 1 + 2 * D + D * (D + 1) / 2;
  const std::size_t size = sums.size();
  require(size >= fixed && (size - fixed) % (D + 2) == 0, "linear_sums has the wrong size");
  const std::size_t outputs = (size - fixed) / (D + 2);
  linear.n = sums[0];
  require(linear.n >= 0.0 && linear.n <= static_cast<double>(seen) &&
              (ages || linear.n == std::floor(linear.n)),
          "linear_sums has an invalid number of rows");
  require(outputs == n_outputs || (linear.n == 0.0 && outputs < n_outputs),
          "linear_sums does not match the labels");
  NumberReader reader(sums.subspan(1));
  linear.origin = reader.next(D);
  linear.label_origin = reader.next(outputs);
  linear.sums = reader.next(D);
  linear.products = reader.next(D * (D + 1) / 2);
  linear.label_sums = reader.next(outputs);
  linear.cross = reader.next(outputs * D);
  require(solution.size() % (D + 1) == 0 && solution.size() / (D + 1) <= outputs,
          "linear_model has the wrong size");
  for (const double x : solution)
    require(std::isfinite(x), "linear_model has a number that is not finite");
  NumberReader model(solution);
  while (model.n_left() > 0) {
    append(linear.intercepts, model.next(1));
    append(linear.coefficients, model.next(D));
  }
  return linear;
}

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
  append_linear(mixture.linear, arrays);
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
  mixture.linear = linear_of(arrays.linear_sums, arrays.linear_model, params.n_features,
                             votes ? mixture.classes.size() : params.label_length, seen);
  require(mixture.weights[linear_expert] == 0.0 || mixture.linear.is_solved(),
          "mixture_weights has a linear model that was not saved");
  return mixture;
}

}  // namespace boundary_forest
