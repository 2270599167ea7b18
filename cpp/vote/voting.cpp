#include "vote/voting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/memory.hpp"

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

// The trees' answers to one row, weighed by several ballots. Their sums over the trees, each in tree
// order, run side by side: one alone would have every addition wait for the one before.
class WeighedAnswers {
 public:
  WeighedAnswers(const TreeAnswers& answers, bool votes, std::pmr::memory_resource* memory)
      : answers_(answers),
        votes_(votes),
        n_(answers.distances.size()),
        ratios_(n_, memory),
        weights_(memory),
        sums_(memory),
        codes_(memory),
        places_(memory),
        totals_(memory) {
    if (!votes_) return;
    for (const double* label : answers.labels) {
      const auto place = std::find(codes_.begin(), codes_.end(), *label) - codes_.begin();
      if (place == std::ssize(codes_)) codes_.push_back(*label);
      places_.push_back(static_cast<std::uint32_t>(place));
    }
  }

  // The mistakes or squared errors of the answers, by ballot, then by output. A class is right if no
  // other has as large a share: so the order of classes does not matter.
  void errors(std::span<const Ballot> ballots, const double* label, std::span<double> errors) {
    if (answers_.closest != nullptr) {
      const std::size_t length = errors.size() / ballots.size();
      for (std::size_t i = 0; i < errors.size(); ++i)
        errors[i] = squared(answers_.closest[i % length] - label[i % length]);
      return;
    }
    weigh(ballots);
    if (votes_)
      for (std::size_t b = 0; b < ballots.size(); ++b) errors[b] = is_right(*label, b) ? 0.0 : 1.0;
    else
      mean_errors(label, errors);
  }

 private:
  static double squared(double x) { return x * x; }

  // The weights of ballot b.
  std::span<double> weights(std::size_t b) { return std::span(weights_).subspan(b * n_, n_); }

  void weigh(std::span<const Ballot> ballots) {
    const std::size_t B = ballots.size();
    weights_.resize(B * n_);
    double least = 0.0;
    double least_of_ratios = std::numeric_limits<double>::quiet_NaN();  // which equals nothing
    for (std::size_t b = 0; b < B; ++b) {
      // Rules that have the same factors share them (Ballots).
      if (b == 0 || ballots[b].factors.data() != ballots[b - 1].factors.data())
        least = least_distance(answers_.distances, ballots[b].factors);
      if (least != least_of_ratios) shepard_ratios(answers_.distances, least, ratios_);
      least_of_ratios = least;
      shepard_weights(ratios_, least, ballots[b], weights(b));
    }
    sums_.assign(B, 0.0);
    totals_.assign(codes_.size() * B, 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      double* of_class = votes_ ? totals_.data() + places_[i] * B : nullptr;
      for (std::size_t b = 0; b < B; ++b) {
        const double weight = weights_[b * n_ + i];
        sums_[b] += weight;
        if (votes_) of_class[b] += weight;
      }
    }
  }

  bool is_right(double code, std::size_t b) const {
    double right = 0.0;
    double wrong = 0.0;
    for (std::size_t place = 0; place < codes_.size(); ++place) {
      double& side = codes_[place] == code ? right : wrong;
      side = std::max(side, totals_[place * sums_.size() + b] / sums_[b]);
    }
    return right > wrong;
  }

  void mean_errors(const double* label, std::span<double> errors) {
    const std::size_t length = errors.size() / sums_.size();
    for (std::size_t b = 0; b < sums_.size(); ++b) {
      const std::span<double> mean = errors.subspan(b * length, length);
      shepard_mean(answers_.labels, weights(b), sums_[b], mean);
      for (std::size_t c = 0; c < length; ++c) mean[c] = squared(mean[c] - label[c]);
    }
  }

  const TreeAnswers& answers_;
  const bool votes_;
  const std::size_t n_;                     // trees
  std::pmr::vector<double> ratios_;         // of the least distance to each tree's
  std::pmr::vector<double> weights_;        // by ballot, then by tree
  std::pmr::vector<double> sums_;           // of a ballot's weights
  std::pmr::vector<double> codes_;          // the classes that trees name, in order of appearance
  std::pmr::vector<std::uint32_t> places_;  // of each tree's class among them
  std::pmr::vector<double> totals_;         // by class, then by ballot
};

bool are_classes(const Params& params) { return params.estimator == Estimator::shepard_vote; }

}  // namespace

void begin_votes(const Params& params, VoteState& votes) {
  if (params.vote_weights == VoteWeights::uniform) votes.rule = 1;
  if (params.tries_votes())
    votes.errors.assign(vote_rules(params).size() * (params.forgets() ? 1 : params.label_length),
                        0.0);
  if (params.judges_votes()) votes.losses.assign(params.n_held(), 0.0);
}

Ballot ballot_of(const VoteState& votes, const Params& params, std::vector<double>& factors) {
  const VoteRule& rule = vote_rules(params)[votes.rule];
  if (!votes.losses.empty()) vote_factors(rule, votes.losses, params, factors);
  return {rule.power, factors, votes.classes()};
}

Ballots::Ballots(const Params& params, std::span<const double> losses,
                 std::pmr::memory_resource* memory)
    : params_(params), factors_(vote_rules(params).size(), memory), ballots_(memory) {
  renew(losses, /*first=*/true);
}

// Factors change with the losses where skill counts; who lasts is known from the first time on.
void Ballots::renew(std::span<const double> losses, bool first) {
  const std::span<const VoteRule> rules = vote_rules(params_);
  ballots_.clear();
  for (std::size_t r = 0, shared = 0; r < rules.size(); ++r) {
    const VoteRule& rule = rules[r];
    if (rule.skill != rules[shared].skill || rule.lasting != rules[shared].lasting) shared = r;
    if (shared == r && !losses.empty() && (first || rule.skill > 0))
      vote_factors(rule, losses, params_, factors_[r]);
    ballots_.push_back({rule.power, factors_[shared], {}});
  }
}

void try_rules(const TreeAnswers& answers, const double* label, const Params& params,
               VoteState& votes) {
  StackMemory memory;
  const Ballots ballots(params, {}, &memory);
  std::pmr::vector<double> errors(votes.errors.size(), &memory);
  WeighedAnswers(answers, are_classes(params), &memory).errors(ballots.all(), label, errors);
  for (std::size_t i = 0; i < errors.size(); ++i) votes.errors[i] += errors[i];
}

// Errors of several outputs are in units of the variances before.
void judge(Arrival a, const TreeAnswers& answers, const double* label, const Spread& before,
           const Params& params, Ballots& ballots, VoteState& votes) {
  const std::size_t length = params.label_length;
  const auto total = [&](const double* errors) {
    double sum = 0.0;
    for (std::size_t c = 0; c < length; ++c) {
      const double variance = length == 1 ? 1.0 : before.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return sum < largest_error ? sum : largest_error;
  };
  StackMemory memory;
  const Arrival n_before = a - params.n_T;
  const std::size_t n_rules = votes.errors.size();
  std::pmr::vector<double> errors(n_rules * length, &memory);
  WeighedAnswers(answers, are_classes(params), &memory).errors(ballots.all(), label, errors);
  for (std::size_t r = 0; r < n_rules; ++r)
    bring_up_to_date(votes.errors[r], total(errors.data() + r * length), n_before, rule_memory);
  const auto least = std::min_element(votes.errors.begin(), votes.errors.end());
  if (*least < votes.errors[votes.rule])
    votes.rule = static_cast<std::uint8_t>(least - votes.errors.begin());
  for (std::size_t i = 0; i < answers.labels.size(); ++i) {
    const double* answer = answers.labels[i];
    for (std::size_t c = 0; c < length; ++c)
      errors[c] = are_classes(params) ? static_cast<double>(answer[c] != label[c])
                                      : (answer[c] - label[c]) * (answer[c] - label[c]);
    bring_up_to_date(votes.losses[i], total(errors.data()), n_before, tree_memory);
  }
  ballots.renew(votes.losses);
}

// Errors of several outputs are added in units of their variances.
void choose_rule(const Spread& spread, const Params& params, VoteState& votes) {
  const std::size_t length = params.label_length;
  const auto error_of = [&](std::size_t rule) {
    const double* errors = votes.errors.data() + rule * length;
    double sum = 0.0;
    for (std::size_t c = 0; c < length; ++c) {
      const double variance = length == 1 ? 1.0 : spread.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
  };
  std::size_t best = votes.rule;
  for (std::size_t rule = 0; rule < vote_rules(params).size(); ++rule)
    if (error_of(rule) < error_of(best)) best = rule;
  votes.rule = static_cast<std::uint8_t>(best);
  std::fill(votes.errors.begin(), votes.errors.end(), 0.0);
}

}  // namespace boundary_forest
