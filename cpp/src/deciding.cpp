// What a forest decides for itself, at the numbers of arrivals that adaptation.hpp gives.
//
// Votes: each power p of the weights 1 / d^p is tried on the rows before a decision, by what the trees
// say of them before they learn them; the power with the fewest mistakes, or the least squared error,
// is used from then on. Weights of features: see weight_learning.hpp; if they change, all trees are
// grown anew with them (regrowing.cpp).
#include <cmath>
#include <limits>

#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/stack_memory.hpp"
#include "boundary_forest/weight_learning.hpp"

namespace boundary_forest {

void BoundaryForest::decide(const Run& run) {
  Adaptation& adaptation = progress_.adaptation;
  if (!adaptation.errors.empty()) {
    adaptation.power = best_power();
    std::fill(adaptation.errors.begin(), adaptation.errors.end(), 0.0);
  }
  learn_weights(run);
}

void BoundaryForest::learn_weights(const Run& run) {
  Adaptation& adaptation = progress_.adaptation;
  if (!adaptation.window.is_kept()) return;
  const auto changed = boundary_forest::learn_weights(
      adaptation.window, params_, adaptation.settings->log_weights, threads(run));
  if (changed) adaptation.settings = settings_with(*changed);
}

std::shared_ptr<const TreeSettings> BoundaryForest::settings_with(
    const LogWeights& log_weights) const {
  if (log_weights.empty()) return settings_;
  return std::make_shared<TreeSettings>(TreeSettings{
      make_weighted_metric(weights_of(log_weights), params_.element_type), log_weights});
}

// The answers of every power to the staged examples from `first` on are held against their labels. A
// class is right if no other has as large a share: so the order of classes does not matter.
void BoundaryForest::try_votes(Slot first, std::span<const Leaf> v) {
  const std::size_t n_T = params_.n_held();
  const std::size_t length = params_.label_length;
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    const double* label = store_.label(first + static_cast<Slot>(y));
    double* errors = progress_.adaptation.errors.data();
    for (const VotePower power : vote_powers) {
      StackMemory memory;
      if (votes()) {
        const std::pmr::vector<Vote> shares = E_vote(v.subspan(y * n_T, n_T), power, &memory);
        double right = 0.0;
        double wrong = 0.0;
        for (const Vote& vote : shares) {
          double& side = vote.code == *label ? right : wrong;
          side = std::max(side, vote.share);
        }
        *errors += right > wrong ? 0.0 : 1.0;
      } else {
        std::pmr::vector<double> estimate(length, &memory);
        E_label(v.subspan(y * n_T, n_T), power, estimate);
        for (std::size_t c = 0; c < length; ++c)
          errors[c] += (estimate[c] - label[c]) * (estimate[c] - label[c]);
      }
      errors += length;
    }
  }
}

// Errors of several outputs are added in units of their variances. Among equals the one in use wins,
// else the first.
VotePower BoundaryForest::best_power() const {
  const Adaptation& adaptation = progress_.adaptation;
  const std::size_t length = params_.label_length;
  const auto error_of = [&](VotePower power) {
    const double* errors = adaptation.errors.data() + static_cast<std::size_t>(power) * length;
    double sum = 0.0;
    for (std::size_t c = 0; c < length; ++c) {
      const double variance = length == 1 ? 1.0 : progress_.spread.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
  };
  VotePower best = adaptation.power;
  for (const VotePower power : vote_powers)
    if (error_of(power) < error_of(best)) best = power;
  return best;
}

BoundaryForest::Features BoundaryForest::features() {
  const Reading reading(publication_);
  const Version& version = reading.version;
  const Adaptation& adaptation = version.adaptation;
  Features out;
  out.weights = weights_of(adaptation.settings->log_weights);
  if (const Window& window = adaptation.window; window.is_kept()) {
    out.variances = moments(params_, window.end() - window.begin(), [&](std::size_t i) {
                      return window.row(window.begin() + i);
                    }).variances;
  } else {
    const std::vector<Slot> slots = living(version);
    out.variances = moments(params_, slots.size(), [&](std::size_t i) {
                      return store_.row(slots[i]);
                    }).variances;
  }
  return out;
}

}  // namespace boundary_forest
