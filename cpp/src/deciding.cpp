// What a forest decides for itself, at the numbers of arrivals that adaptation.hpp gives.
//
// Votes: each rule of vote_rules.hpp is tried on rows before they are learned, by what the trees say of
// them; the one with the fewest mistakes, or the least squared error, is used from then on. Weights of
// features: see weight_learning.hpp; if they change, trees are grown anew with them (regrowing.cpp).
#include <algorithm>
#include <cmath>
#include <limits>

#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/stack_memory.hpp"
#include "boundary_forest/weight_learning.hpp"

namespace boundary_forest {

void BoundaryForest::decide(const Run& run) {
  Adaptation& adaptation = progress_.adaptation;
  if (schedule_.chooses_votes(progress_.seen)) {
    adaptation.rule = best_rule();
    std::fill(adaptation.errors.begin(), adaptation.errors.end(), 0.0);
  }
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

namespace {

// Beyond it, errors are as good as infinite, and yet have a mean.
constexpr double largest_error = 1e300;

constexpr double rule_memory = 500.0;  // arrivals
constexpr double tree_memory = 100.0;

// The mean of what was so far and one more; the last `memory` count for most.
void bring_up_to_date(double& mean, double value, Arrival n_before, double memory) {
  mean += (value - mean) / std::min(static_cast<double>(n_before + 1), memory);
}

}  // namespace

// What the trees said of one row, so that several ballots can weigh it.
class BoundaryForest::Heard {
 public:
  Heard(const BoundaryForest& forest, std::span<const Leaf> v, std::pmr::memory_resource* memory)
      : store_(forest.store_),
        v_(v),
        votes_(forest.votes()),
        d_(forest.distances(v, memory)),
        weights_(v.size(), memory),
        codes_(memory),
        places_(memory),
        shares_(memory) {
    if (forest.params_.estimator == Estimator::nearest)
      closest_ = store_.label(nearest(v, store_).example);
    if (!votes_) return;
    for (const Leaf& v_i : v) {
      const double code = *store_.label(v_i.example);
      const auto place = std::find(codes_.begin(), codes_.end(), code) - codes_.begin();
      if (place == std::ssize(codes_)) codes_.push_back(code);
      places_.push_back(static_cast<std::uint32_t>(place));
    }
  }

  // The mistakes or squared errors of the answer, by output. A class is right if no other has as
  // large a share: so the order of classes does not matter.
  void errors(const Ballot& ballot, const double* label, std::span<double> errors) {
    std::ranges::copy(d_, weights_.begin());
    const double sum = shepard_weights(weights_, ballot);
    if (votes_) {
      errors[0] = is_right(*label, sum) ? 0.0 : 1.0;
      return;
    }
    if (closest_ != nullptr)
      std::copy_n(closest_, errors.size(), errors.begin());
    else
      shepard_mean(v_, weights_, sum, store_, errors);
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

  const ExampleStore& store_;
  const std::span<const Leaf> v_;
  const bool votes_;
  const double* closest_ = nullptr;  // the label of the closest, if it alone is the answer
  const std::pmr::vector<double> d_;
  std::pmr::vector<double> weights_;
  std::pmr::vector<double> codes_;          // the classes that trees name, in order of appearance
  std::pmr::vector<std::uint32_t> places_;  // of each tree's class among them
  std::pmr::vector<double> shares_;
};

// The answers of every rule to the staged examples from `first` on are held against their labels.
void BoundaryForest::try_votes(Slot first, std::span<const Leaf> v) {
  const std::size_t n_T = params_.n_held();
  const std::size_t length = params_.label_length;
  StackMemory memory;
  std::pmr::vector<double> errors(length, &memory);
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    const double* label = store_.label(first + static_cast<Slot>(y));
    double* sums = progress_.adaptation.errors.data();
    StackMemory memory_of_row;
    Heard heard(*this, v.subspan(y * n_T, n_T), &memory_of_row);
    for (const VoteRule& rule : vote_rules(params_)) {
      heard.errors({rule.power}, label, errors);
      for (const double error : errors) *sums++ += error;
    }
  }
}

// The same at every arrival, for a forest that forgets: the rules' recent errors, and the trees' own.
// Errors of several outputs are in units of the variances before.
void BoundaryForest::judge(Arrival a, const double* label, std::span<const Leaf> v,
                           const Spread& before) {
  Adaptation& adaptation = progress_.adaptation;
  StackMemory memory;
  std::pmr::vector<double> errors(params_.label_length, &memory);
  const auto total = [&] {
    double sum = 0.0;
    for (std::size_t c = 0; c < errors.size(); ++c) {
      const double variance = errors.size() == 1 ? 1.0 : before.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return sum < largest_error ? sum : largest_error;
  };
  const Arrival n_before = a - params_.n_T;
  std::vector<double> factors;
  double* mean = adaptation.errors.data();
  Heard heard(*this, v, &memory);
  VoteRule last;
  for (const VoteRule& rule : vote_rules(params_)) {
    if (rule.skill != last.skill || rule.lasting != last.lasting)
      vote_factors(rule, adaptation.losses, params_, factors);
    last = rule;
    heard.errors({rule.power, factors}, label, errors);
    bring_up_to_date(*mean++, total(), n_before, rule_memory);
  }
  const double* least = std::min_element(adaptation.errors.data(), mean);
  if (*least < adaptation.errors[adaptation.rule])
    adaptation.rule = static_cast<std::uint8_t>(least - adaptation.errors.data());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double* answer = store_.label(v[i].example);
    for (std::size_t c = 0; c < errors.size(); ++c)
      errors[c] = votes() ? static_cast<double>(answer[c] != label[c])
                          : (answer[c] - label[c]) * (answer[c] - label[c]);
    bring_up_to_date(adaptation.losses[i], total(), n_before, tree_memory);
  }
}

// Errors of several outputs are added in units of their variances. Among equals the one in use wins,
// else the first.
std::uint8_t BoundaryForest::best_rule() const {
  const Adaptation& adaptation = progress_.adaptation;
  const std::size_t length = params_.label_length;
  const auto error_of = [&](std::size_t rule) {
    const double* errors = adaptation.errors.data() + rule * length;
    double sum = 0.0;
    for (std::size_t c = 0; c < length; ++c) {
      const double variance = length == 1 ? 1.0 : progress_.spread.variance(c);
      if (variance > 0.0) sum += errors[c] / variance;
    }
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
  };
  std::size_t best = adaptation.rule;
  for (std::size_t rule = 0; rule < vote_rules(params_).size(); ++rule)
    if (error_of(rule) < error_of(best)) best = rule;
  return static_cast<std::uint8_t>(best);
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
