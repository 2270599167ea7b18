#include "boundary_forest/voting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "boundary_forest/stack_memory.hpp"

namespace boundary_forest {
namespace {

// Beyond it, errors are as good as infinite, and yet have a mean.
constexpr double largest_error = 1e300;

constexpr double rule_memory = 500.0;  // arrivals
constexpr double tree_memory = 100.0;

// The mean of what was so far and one more; the last `memory` count for most.
void bring_up_to_date(double& mean, double value, Arrival n_before, double memory) {
  mean += (value - mean) / std::min(static_cast<double>(n_before + 1), memory);
}

// What the trees said of one row, so that several ballots can weigh it.
class Heard {
 public:
  Heard(const Voices& said, bool votes, std::pmr::memory_resource* memory)
      : said_(said),
        votes_(votes),
        weights_(said.distances.size(), memory),
        codes_(memory),
        places_(memory),
        shares_(memory) {
    if (!votes_) return;
    for (const double* label : said.labels) {
      const auto place = std::find(codes_.begin(), codes_.end(), *label) - codes_.begin();
      if (place == std::ssize(codes_)) codes_.push_back(*label);
      places_.push_back(static_cast<std::uint32_t>(place));
    }
  }

  // The mistakes or squared errors of the answer, by output. A class is right if no other has as
  // large a share: so the order of classes does not matter.
  void errors(const Ballot& ballot, const double* label, std::span<double> errors) {
    std::ranges::copy(said_.distances, weights_.begin());
    const double sum = shepard_weights(weights_, ballot);
    if (votes_) {
      errors[0] = is_right(*label, sum) ? 0.0 : 1.0;
      return;
    }
    if (said_.closest != nullptr)
      std::copy_n(said_.closest, errors.size(), errors.begin());
    else
      shepard_mean(said_.labels, weights_, sum, errors);
    for (std::size_t c = 0; c < errors.size(); ++c)
      errors[c] = (errors[c] - label[c]) * (errors[c] - label[c]);
  }

 private:
  bool is_right(double code, double sum) {
    shares_.assign(codes_.size(), 0.0);
    for (std::size_t i = 0; i < places_.size(); ++i) shares_[places_[i]] += weights_[i];
    double right = 0.0;
    double wrong = 0.0;
    for (std::size_t place = 0; place < codes_.size(); ++place) {
      double& side = codes_[place] == code ? right : wrong;
      side = std::max(side, shares_[place] / sum);
    }
    return right > wrong;
  }

  const Voices& said_;
  const bool votes_;
  std::pmr::vector<double> weights_;
  std::pmr::vector<double> codes_;          // the classes that trees name, in order of appearance
  std::pmr::vector<std::uint32_t> places_;  // of each tree's class among them
  std::pmr::vector<double> shares_;
};

bool are_classes(const Params& params) { return params.estimator == Estimator::shepard_vote; }

}  // namespace

void begin_votes(const Params& params, Adaptation& adaptation) {
  if (params.vote_weights == VoteWeights::uniform) adaptation.rule = 1;
  if (params.vote_weights == VoteWeights::automatic && !params.is_part())
    adaptation.errors.assign(
        vote_rules(params).size() * (params.forgets() ? 1 : params.label_length), 0.0);
  if (Schedule(params).judges()) adaptation.losses.assign(params.n_held(), 0.0);
}

Ballot ballot_of(const Adaptation& adaptation, const Params& params, std::vector<double>& factors) {
  const VoteRule& rule = vote_rules(params)[adaptation.rule];
  if (!adaptation.losses.empty()) vote_factors(rule, adaptation.losses, params, factors);
  return {rule.power, factors};
}

void try_rules(const Voices& said, const double* label, const Params& params,
               Adaptation& adaptation) {
  StackMemory memory;
  std::pmr::vector<double> errors(params.label_length, &memory);
  double* sums = adaptation.errors.data();
  Heard heard(said, are_classes(params), &memory);
  for (const VoteRule& rule : vote_rules(params)) {
    heard.errors({rule.power}, label, errors);
    for (const double error : errors) *sums++ += error;
  }
}

// Errors of several outputs are in units of the variances before.
void judge(Arrival a, const Voices& said, const double* label, const Spread& before,
           const Params& params, Adaptation& adaptation) {
  StackMemory memory;
  std::pmr::vector<double> errors(params.label_length, &memory);
  const auto total = [&] {
    double sum = 0.0;
    for (std::size_t c = 0; c < errors.size(); ++c) {
      const double variance = errors.size() == 1 ? 1.0 : before.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return sum < largest_error ? sum : largest_error;
  };
  const Arrival n_before = a - params.n_T;
  std::vector<double> factors;
  double* mean = adaptation.errors.data();
  Heard heard(said, are_classes(params), &memory);
  VoteRule last;
  for (const VoteRule& rule : vote_rules(params)) {
    if (rule.skill != last.skill || rule.lasting != last.lasting)
      vote_factors(rule, adaptation.losses, params, factors);
    last = rule;
    heard.errors({rule.power, factors}, label, errors);
    bring_up_to_date(*mean++, total(), n_before, rule_memory);
  }
  const double* least = std::min_element(adaptation.errors.data(), mean);
  if (*least < adaptation.errors[adaptation.rule])
    adaptation.rule = static_cast<std::uint8_t>(least - adaptation.errors.data());
  for (std::size_t i = 0; i < said.labels.size(); ++i) {
    const double* answer = said.labels[i];
    for (std::size_t c = 0; c < errors.size(); ++c)
      errors[c] = are_classes(params) ? static_cast<double>(answer[c] != label[c])
                                      : (answer[c] - label[c]) * (answer[c] - label[c]);
    bring_up_to_date(adaptation.losses[i], total(), n_before, tree_memory);
  }
}

// Errors of several outputs are added in units of their variances.
void choose_rule(const Spread& spread, const Params& params, Adaptation& adaptation) {
  const std::size_t length = params.label_length;
  const auto error_of = [&](std::size_t rule) {
    const double* errors = adaptation.errors.data() + rule * length;
    double sum = 0.0;
    for (std::size_t c = 0; c < length; ++c) {
      const double variance = length == 1 ? 1.0 : spread.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
  };
  std::size_t best = adaptation.rule;
  for (std::size_t rule = 0; rule < vote_rules(params).size(); ++rule)
    if (error_of(rule) < error_of(best)) best = rule;
  adaptation.rule = static_cast<std::uint8_t>(best);
  std::fill(adaptation.errors.begin(), adaptation.errors.end(), 0.0);
}

}  // namespace boundary_forest
