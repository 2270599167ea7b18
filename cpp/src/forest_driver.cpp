#include "boundary_forest/forest_driver.hpp"

#include <algorithm>
#include <stdexcept>

#include "boundary_forest/stack_memory.hpp"
#include "boundary_forest/voting.hpp"

namespace boundary_forest {

ForestDriver::ForestDriver(const Params& params)
    : params_((params.validate(), params)),
      schedule_(params),
      bound_(params),
      spread_(params.label_length) {
  if (params.is_part()) throw std::invalid_argument("the parameters are those of all trees");
  begin_votes(params, votes_);
}

Arrival ForestDriver::block_end(Arrival stored) const {
  Arrival end = std::min(schedule_.block_end(seen_), bound_.block_end(seen_, stored));
  if (!planted_) end = std::min<Arrival>(end, params_.n_T);
  return end;
}

bool ForestDriver::wants_ends() const {
  return planted_ && (schedule_.judges() || schedule_.is_trial(seen_));
}

bool ForestDriver::is_full(Arrival stored, std::size_t n_cut) const {
  return planted_ && bound_.is_reached(seen_, stored, n_cut);
}

// Row by row, as votes that are judged may be weighed otherwise after each.
void ForestDriver::learn(std::span<const double> labels, std::size_t n, const EndsView& ends,
                         const Asked& asked) {
  const std::size_t length = params_.label_length;
  const bool heard = wants_ends();
  if ((heard || asked.out != nullptr) && ends.rows != n)
    throw std::invalid_argument("what the trees said of these rows must be known");
  std::vector<const double*> said(params_.n_T);
  StackMemory memory;
  Ballots ballots(params_, votes_.losses, &memory);
  for (std::size_t y = 0; y < n; ++y) {
    const double* label = labels.data() + y * length;
    if (asked.out != nullptr) answer(ends, y, asked, ballots.all()[votes_.rule], said);
    if (heard) {
      labels_of(ends, y, said);
      const Voices voices{distances(ends, y), said};
      if (schedule_.judges())
        judge(seen_, voices, label, spread_, params_, ballots, votes_);
      else
        try_rules(voices, label, params_, votes_);
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
}

void ForestDriver::labels_of(const EndsView& ends, std::size_t row,
                             std::span<const double*> out) const {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = ends.labels + (row * params_.n_T + i) * params_.label_length;
}

void ForestDriver::answer(const EndsView& ends, const Asked& asked) const {
  std::vector<const double*> labels(params_.n_T);
  std::vector<double> factors;
  const Ballot ballot = ballot_of(votes_, params_, factors);
  for (std::size_t row = 0; row < ends.rows; ++row) answer(ends, row, asked, ballot, labels);
}

void ForestDriver::answer(const EndsView& ends, std::size_t row, const Asked& asked,
                          const Ballot& ballot, std::span<const double*> labels) const {
  if (params_.estimator == Estimator::nearest)
    throw std::logic_error("the nearest example is found by candidates, not by ends");
  StackMemory memory;
  const std::span<const double> d = distances(ends, row);
  std::pmr::vector<double> weights(d.begin(), d.end(), &memory);
  const double sum = shepard_weights(weights, ballot);
  labels_of(ends, row, labels);
  const std::span<double> out = asked.out->row(row);
  if (!are_classes()) {
    shepard_mean(labels, weights, sum, out);
  } else {
    const std::pmr::vector<Vote> votes = shepard_vote(labels, weights, sum, &memory);
    if (asked.shares)
      for (const Vote& vote : votes) out[rank_of(vote.code, asked.ranks)] = vote.share;
    else
      out[0] = winner(votes, asked.ranks).code;
  }
  if (asked.weights == nullptr) return;
  for (double& weight : weights) weight /= sum;
  std::ranges::copy(weights, asked.weights->row(row).begin());
}

void ForestDriver::restore(const State& state) {
  if (state.errors.size() != votes_.errors.size() || state.losses.size() != votes_.losses.size() ||
      (votes_.errors.empty() ? state.rule != votes_.rule
                             : state.rule >= vote_rules(params_).size()))
    throw std::invalid_argument("inconsistent state: votes");
  spread_.restore(state.spread);
  seen_ = state.seen;
  n_classes_ = state.n_classes;
  planted_ = state.planted;
  votes_.rule = static_cast<std::uint8_t>(state.rule);
  votes_.errors = state.errors;
  votes_.losses = state.losses;
}

}  // namespace boundary_forest
