// What a forest decides for itself, at the numbers of arrivals that adaptation.hpp gives.
//
// Votes: each rule of vote_rules.hpp is tried on rows before they are learned, by what the trees say of
// them (voting.hpp); the one with the fewest mistakes, or the least squared error, is used from then on.
// Weights of features: see weight_learning.hpp; if they change, trees are grown anew with them
// (regrowing.cpp).
#include "adapt/weight_learning.hpp"
#include "base/memory.hpp"
#include "forest/boundary_forest.hpp"
#include "forest/tree_answers.hpp"

namespace boundary_forest {

void BoundaryForest::decide(const Run& run) {
  Adaptation& adaptation = progress_.adaptation;
  if (schedule_.chooses_votes(progress_.seen))
    choose_rule(progress_.spread, params_, adaptation.votes);
  if (const Arrival n_rows = schedule_.weights_from(progress_.seen); n_rows > 0)
    learn_weights(n_rows, run);
}

// What is learned at a doubling is for the trees that last; theirs are in use.
void BoundaryForest::learn_weights(Arrival n_rows, const Run& run) {
  Adaptation& adaptation = progress_.adaptation;
  const TreeSettings* in_use = adaptation.settings.get();
  if (params_.forgets() && schedule_.is_doubling(progress_.seen))
    for (std::size_t i = params_.n_held(); i-- > 0 && !trees_.empty();)
      if (params_.is_lasting(trees_[i].tree->place())) in_use = trees_[i].tree->settings().get();
  const LogWeights chosen = boundary_forest::learn_weights(adaptation.window, n_rows, params_,
                                                           in_use->log_weights, threads(run));
  if (chosen != adaptation.settings->log_weights) adaptation.settings = settings_with(chosen);
}

std::shared_ptr<const TreeSettings> BoundaryForest::settings_with(
    const LogWeights& log_weights) const {
  if (log_weights.empty()) return settings_;
  return std::make_shared<TreeSettings>(TreeSettings{
      make_weighted_metric(weights_of(log_weights), params_.element_type), log_weights});
}

// The answers of every rule to the staged examples from `first` on are held against their labels.
void BoundaryForest::try_votes(Slot first, std::span<const Leaf> v) {
  const std::size_t n_T = params_.n_held();
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    StackMemory memory;
    const RowAnswers said(*this, v.subspan(y * n_T, n_T), &memory);
    try_rules(said.view(), store_.label(first + static_cast<Slot>(y)), params_,
              progress_.adaptation.votes);
  }
}

BoundaryForest::Features BoundaryForest::features() {
  const Reading reading(publication_);
  const Version& version = reading.version;
  const Adaptation& adaptation = version.adaptation;
  Features out;
  out.weights = weights_of(adaptation.settings->log_weights);
  if (const Window& window = adaptation.window; window.is_kept()) {
    const std::vector<Arrival> known = window.last(Window::capacity);
    out.variances = moments(params_, known.size(), [&](std::size_t i) {
                      return window.row(known[i]);
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
