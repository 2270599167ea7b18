#include "adapt/stream_mixture_arrays.hpp"

#include <algorithm>
#include <cmath>

#include "base/require.hpp"

namespace boundary_forest {
namespace {

bool votes_in(const Params& params) { return params.estimator == Estimator::shepard_vote; }

}  // namespace

MixtureArrays arrays_of(const StreamMixture& mixture, const Params& params) {
  MixtureArrays arrays;
  if (!mixture.is_mixed()) return arrays;
  const StreamWeights weights = mixture.weights(mixture.rate(), votes_in(params));
  arrays.weights.assign(weights.begin(), weights.end());
  arrays.weights.push_back(mixture.sharpness());
  for (const std::vector<double>* part : {&mixture.n_judged, &mixture.rate_losses, &mixture.losses,
                                          &mixture.correction_losses, &mixture.sharpness_losses})
    arrays.trial.insert(arrays.trial.end(), part->begin(), part->end());
  arrays.classes.assign(mixture.classes.codes().begin(), mixture.classes.codes().end());
  for (const LinearModel& model : mixture.models) {
    arrays.trial.push_back(static_cast<double>(model.n_solved()));
    append_model(model, arrays);
  }
  const std::size_t n_outputs = votes_in(params) ? mixture.classes.size() : params.label_length;
  const std::size_t begin = arrays.trial.size();
  arrays.trial.resize(begin + n_outputs, 0.0);
  for (const auto& [column, error] : mixture.last_error) arrays.trial[begin + column] = error;
  return arrays;
}

StreamMixture stream_mixture_of(const MixtureArrays& arrays, const Params& params,
                                std::uint64_t seen, std::uint32_t n_classes, bool is_sorted) {
  StreamMixture mixture;
  begin_stream_mixture(params, mixture);
  mixture.is_sorted = is_sorted;
  const bool votes = votes_in(params);
  mixture.classes = class_order_of(arrays, votes, n_classes);
  const std::size_t n_outputs = votes ? mixture.classes.size() : params.label_length;
  const std::size_t n_sums = mixture.n_judged.size() + mixture.rate_losses.size() +
                             mixture.losses.size() + mixture.correction_losses.size() +
                             mixture.sharpness_losses.size();
  require(arrays.trial.size() == n_sums + n_models + n_outputs, "mixture_trial has the wrong size");
  for (const double x : arrays.trial)
    require(std::isfinite(x), "mixture_trial has a number that is not finite");
  NumberReader trial(arrays.trial);
  mixture.n_judged = trial.next(n_rates);
  mixture.rate_losses = trial.next(n_rates);
  mixture.losses = trial.next(mixture.losses.size());
  mixture.correction_losses = trial.next(n_corrections);
  mixture.sharpness_losses = trial.next(mixture.sharpness_losses.size());
  for (const std::vector<double>* part :
       {&mixture.n_judged, &mixture.rate_losses, &mixture.losses, &mixture.correction_losses})
    for (const double x : *part) require(x >= 0.0, "mixture_trial has an invalid number");
  for (const double n : mixture.n_judged)
    require(n <= static_cast<double>(seen), "mixture_trial has an invalid number of rows");
  require(arrays.linear_sums.size() % n_models == 0, "linear_sums has the wrong size");
  const std::size_t size = arrays.linear_sums.size() / n_models;
  std::size_t begin = 0;
  for (std::size_t m = 0; m < n_models; ++m) {
    const double n_solved = trial.next(1)[0];
    const std::size_t n_left = arrays.linear_model.size() - begin;
    require(n_solved >= 0.0 && n_solved <= static_cast<double>(n_left / (params.n_features + 1)) &&
                n_solved == std::floor(n_solved),
            "linear_model has the wrong size");
    const std::size_t length = static_cast<std::size_t>(n_solved) * (params.n_features + 1);
    mixture.models[m] = linear_of(std::span(arrays.linear_sums).subspan(m * size, size),
                                  std::span(arrays.linear_model).subspan(begin, length),
                                  stream_models[m].kind, params.n_features, n_outputs, votes, seen);
    begin += length;
  }
  require(begin == arrays.linear_model.size(), "linear_model has the wrong size");
  const std::vector<double> errors = trial.next(n_outputs);
  for (std::uint32_t j = 0; j < n_outputs; ++j)
    if (errors[j] != 0.0) mixture.last_error.push_back({j, errors[j]});
  const StreamWeights weights = mixture.weights(mixture.rate(), votes);
  require(arrays.weights.size() == n_stream_experts + 1 &&
              std::equal(weights.begin(), weights.end(), arrays.weights.begin()) &&
              arrays.weights.back() == mixture.sharpness(),
          "mixture_weights does not follow from the losses");
  return mixture;
}

}  // namespace boundary_forest
