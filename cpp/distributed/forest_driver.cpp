#include "distributed/forest_driver.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/memory.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

ForestDriver::ForestDriver(const Params& params)
    : params_((params.validate(), params)),
      schedule_(params),
      storage_limit_(params),
      spread_(params.label_length) {
  if (params.is_part()) throw std::invalid_argument("the parameters are those of all trees");
  begin_votes(params, votes_);
}

Arrival ForestDriver::block_end(Arrival stored) const {
  Arrival end = std::min(schedule_.block_end(seen_), storage_limit_.block_end(seen_, stored));
  if (!planted_) end = std::min<Arrival>(end, params_.n_T);
  return end;
}

bool ForestDriver::wants_leaves() const {
  return planted_ && (schedule_.judges() || schedule_.is_trial(seen_));
}

bool ForestDriver::is_full(Arrival stored, std::size_t n_cut) const {
  return planted_ && storage_limit_.is_reached(seen_, stored, n_cut);
}

// Row by row, as votes that are judged or balanced may be weighed otherwise after each.
void ForestDriver::learn(std::span<const double> labels, std::size_t n, const LeavesView& leaves,
                         const VoteRequest& request) {
  const std::size_t length = params_.label_length;
  const bool wanted = wants_leaves();
  if ((wanted || request.out != nullptr) && leaves.rows != n)
    throw std::invalid_argument("the trees' answers to these rows must be known");
  std::vector<const double*> labels_of_trees(params_.n_T);
  StackMemory memory;
  Ballots ballots(params_, votes_.losses, &memory);
  for (std::size_t y = 0; y < n; ++y) {
    const double* label = labels.data() + y * length;
    if (request.out != nullptr) {
      Ballot ballot = ballots.all()[votes_.rule];
      ballot.classes = votes_.classes();
      answer(leaves, y, request, ballot, labels_of_trees);
    }
    if (wanted) {
      labels_of(leaves, y, labels_of_trees);
      const TreeAnswers view{distances(leaves, y), labels_of_trees};
      if (schedule_.judges())
        judge(seen_, view, label, spread_, params_, ballots, votes_);
      else
        try_rules(view, label, params_, votes_);
    }
    take_note_of(label);
  }
  planted_ = planted_ || seen_ >= params_.n_T;
  if (planted_ && schedule_.chooses_votes(seen_)) choose_rule(spread_, params_, votes_);
}

void ForestDriver::learn_offline(std::span<const double> labels, std::size_t n) {
  for (std::size_t y = 0; y < n; ++y) take_note_of(labels.data() + y * params_.label_length);
  planted_ = true;
}

void ForestDriver::take_note_of(const double* label) {
  ++seen_;
  if (are_classes())
    n_classes_ = std::max(n_classes_, static_cast<std::uint32_t>(*label) + 1);
  else
    spread_.add(label);
  if (params_.counts_classes()) count_class(*label, votes_.class_counts);
}

void ForestDriver::labels_of(const LeavesView& leaves, std::size_t row,
                             std::span<const double*> out) const {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = leaves.labels + (row * params_.n_T + i) * params_.label_length;
}

void ForestDriver::answer(const LeavesView& leaves, const VoteRequest& request) const {
  std::vector<const double*> labels(params_.n_T);
  std::vector<double> factors;
  const Ballot ballot = ballot_of(votes_, params_, factors);
  for (std::size_t row = 0; row < leaves.rows; ++row) answer(leaves, row, request, ballot, labels);
}

void ForestDriver::answer(const LeavesView& leaves, std::size_t row, const VoteRequest& request,
                          const Ballot& ballot, std::span<const double*> labels) const {
  if (params_.estimator == Estimator::nearest)
    throw std::logic_error("the nearest example is found by candidates, not by ends");
  StackMemory memory;
  const std::span<const double> d = distances(leaves, row);
  std::pmr::vector<double> weights(d.begin(), d.end(), &memory);
  double sum = shepard_weights(weights, ballot);
  labels_of(leaves, row, labels);
  if (are_classes()) sum = apply_class_weights(labels, ballot.classes, weights, sum);
  const std::span<double> out = request.out->row(row);
  if (!are_classes()) {
    shepard_mean(labels, weights, sum, out);
  } else {
    const std::pmr::vector<Vote> votes = shepard_vote(labels, weights, sum, &memory);
    if (request.shares)
      for (const Vote& vote : votes) out[rank_of(vote.code, request.ranks)] = vote.share;
    else
      out[0] = winner(votes, request.ranks).code;
  }
  if (request.weights == nullptr) return;
  for (double& weight : weights) weight /= sum;
  std::ranges::copy(weights, request.weights->row(row).begin());
}

void ForestDriver::restore(const State& state) {
  if (state.errors.size() != votes_.errors.size() || state.losses.size() != votes_.losses.size() ||
      (votes_.errors.empty() ? state.rule != votes_.rule
                             : state.rule >= vote_rules(params_).size()))
    throw std::invalid_argument("inconsistent state: votes");
  if (state.class_counts.size() != (params_.counts_classes() ? state.n_classes : 0))
    throw std::invalid_argument("inconsistent state: class_counts");
  spread_.restore(state.spread);
  seen_ = state.seen;
  n_classes_ = state.n_classes;
  planted_ = state.planted;
  votes_.rule = static_cast<std::uint8_t>(state.rule);
  votes_.errors = state.errors;
  votes_.losses = state.losses;
  votes_.class_weights = state.class_weights;
  votes_.class_counts = state.class_counts;
}

}  // namespace boundary_forest
