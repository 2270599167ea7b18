#include "adapt/decisions.hpp"

#include <algorithm>
#include <utility>

#include "adapt/weight_learning.hpp"
#include "distance/metric.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

Decisions::Decisions(const Params& params, std::shared_ptr<const TreeSettings> settings)
    : params_(params),
      settings_(std::move(settings)),
      schedule_(params),
      lifetimes_(params),
      storage_limit_(params),
      depth_limit_(params) {}

Adaptation Decisions::first(std::size_t row_bytes) const {
  Adaptation adaptation;
  adaptation.settings = settings_;
  if (params_.has_window())
    adaptation.window = Window(row_bytes, params_.label_length, params_.ids);
  if (params_.has_reservoir()) adaptation.reservoir = Reservoir(params_);
  begin_votes(params_, adaptation.votes);
  begin_mixture(params_, adaptation.mixture);
  begin_stream_mixture(params_, adaptation.stream);
  return adaptation;
}

Arrival Decisions::block_end(Arrival seen, Arrival stored) const {
  return std::min({schedule_.block_end(seen), storage_limit_.block_end(seen, stored),
                   depth_limit_.next_for_all(seen), Reservoir::block_end(seen, params_)});
}

void Decisions::decide(Arrival seen, const Spread& spread, std::span<const LearnerTree> trees,
                       const ExampleStore& store, std::size_t n_threads,
                       Adaptation& adaptation) const {
  adaptation.reservoir.decide(seen, adaptation.window, store);
  adaptation.stream.is_sorted = adaptation.reservoir.replays();
  if (schedule_.chooses_votes(seen)) {
    if (params_.mixes())
      adaptation.mixture.decide();
    else
      choose_rule(spread, params_, adaptation.votes);
  }
  if (schedule_.is_middle_of_trial(seen)) adaptation.mixture.look_ahead();
  if (params_.mixes() && schedule_.begins_trial(seen)) {
    if (!adaptation.mixture.linear.is_kept()) begin_models(adaptation);
    adaptation.mixture.begin_trial(spread, params_.estimator == Estimator::shepard_vote);
  }
  if (schedule_.solves_models(seen)) adaptation.mixture.solve_again();
  if (const Arrival n_rows = schedule_.weights_from(seen); n_rows > 0)
    learn_weights(seen, n_rows, trees, store, n_threads, adaptation);
}

void Decisions::begin_models(Adaptation& adaptation) const {
  const Window& window = adaptation.window;
  std::vector<double> rows;
  std::vector<double> labels;
  Arrival first = window.end();
  window.for_each_from(window.begin(), [&](Arrival a, const std::byte* row) {
    first = std::min(first, a);
    rows.resize(rows.size() + params_.n_features);
    to_doubles({row, params_.element_type}, params_.n_features,
               rows.data() + rows.size() - params_.n_features);
    labels.insert(labels.end(), window.label(a), window.label(a) + params_.label_length);
  });
  adaptation.mixture.begin_models(first, rows, labels, params_.n_features,
                                  params_.estimator == Estimator::shepard_vote);
}

// What is learned at a doubling is for the trees without a lifetime; the weights in use are theirs.
void Decisions::learn_weights(Arrival seen, Arrival n_rows, std::span<const LearnerTree> trees,
                              const ExampleStore& store, std::size_t n_threads,
                              Adaptation& adaptation) const {
  const TreeSettings* in_use = adaptation.settings.get();
  if (params_.forgets() && schedule_.is_doubling(seen))
    for (std::size_t i = params_.n_held(); i-- > 0 && !trees.empty();)
      if (params_.is_lasting(trees[i].tree->place())) in_use = trees[i].tree->settings().get();
  const Reservoir& reservoir = adaptation.reservoir;
  const WeightRows rows =
      reservoir.replays() ? WeightRows(adaptation.window, reservoir, store, n_rows, params_.seed)
                          : WeightRows(adaptation.window, n_rows);
  const LogWeights chosen =
      boundary_forest::learn_weights(rows, seen, params_, in_use->log_weights, n_threads);
  if (chosen != adaptation.settings->log_weights) adaptation.settings = settings_with(chosen);
}

bool Decisions::gets_successor(const BoundaryTree& tree, Arrival step,
                               const Adaptation& adaptation) const {
  const bool is_its_turn = tree.place() * Schedule::growing_steps / params_.n_T + 1 == step;
  return is_its_turn && params_.is_lasting(tree.place()) &&
         tree.settings()->log_weights != adaptation.settings->log_weights;
}

std::shared_ptr<const TreeSettings> Decisions::settings_with(const LogWeights& log_weights) const {
  if (log_weights.empty()) return settings_;
  return std::make_shared<TreeSettings>(TreeSettings{
      make_weighted_metric(weights_of(log_weights), params_.element_type), log_weights});
}

}  // namespace boundary_forest
