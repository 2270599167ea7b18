#include "adapt/stream_mixture.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "distance/feature_weights.hpp"

namespace boundary_forest {
namespace {

using Kind = StreamExpert::Kind;

constexpr double rate_decay = 0.995;        // of the losses that choose a rate
constexpr double correction_decay = 0.998;  // of those that choose a correction
constexpr double sharpness_decay = 0.998;   // of those that choose the sharpness
constexpr Arrival unused_period = 4;        // at which an expert without weight answers
constexpr double rows_to_rest = 9.0;  // before it has been judged so often, by the fastest rate
constexpr double rows_to_calibrate = 90.0;  // rows judged, by the slowest rate
// Loss per row that is added to the least: so small losses do not decide at once. Of classes, and of numbers
// in units of their variance.
constexpr double class_prior = 0.1;
constexpr double label_prior = 0.01;
constexpr double largest_loss = 1e6;
constexpr double largest_share = 1e6;  // of a linear fit, before shares sum to 1
constexpr double sixteenths_per_nat = 23.083120654223414;  // 16 / ln 2
constexpr LogWeight least_log = 16 * 64;                   // a weight of 2^-64 is none
constexpr Arrival recentre_period = 1000;  // arrivals, as sums relative to a far origin cancel
constexpr Arrival shortest_period = 4;     // between two solutions of a model

std::array<LinearModel, n_models> new_models() {
  std::array<LinearModel, n_models> models;
  for (std::size_t m = 0; m < n_models; ++m) models[m].kind = stream_models[m].kind;
  return models;
}

}  // namespace

void begin_stream_mixture(const Params& params, StreamMixture& mixture) {
  if (!params.mixes_streams()) return;
  mixture.models = new_models();
  mixture.n_judged.assign(n_rates, 0.0);
  mixture.losses.assign(n_rates * n_stream_experts, 0.0);
  mixture.rate_losses.assign(n_rates, 0.0);
  mixture.correction_losses.assign(n_corrections, 0.0);
  if (params.estimator == Estimator::shepard_vote)
    mixture.sharpness_losses.assign(n_sharpnesses, 0.0);
}

std::size_t StreamMixture::rate() const {
  return static_cast<std::size_t>(std::ranges::min_element(rate_losses) - rate_losses.begin());
}

double StreamMixture::correction() const {
  if (is_sorted || n_judged.back() < rows_to_calibrate) return 0.0;
  return corrections[std::ranges::min_element(correction_losses) - correction_losses.begin()];
}

std::uint8_t StreamMixture::sharpness() const {
  if (sharpness_losses.empty() || n_judged.back() < rows_to_calibrate) return first_sharpness;
  return sharpnesses[std::ranges::min_element(sharpness_losses) - sharpness_losses.begin()];
}

// exp(-n (loss / least - 1) / 2), as errors of a Gaussian would have it, with whole sixteenths of an octave.
StreamWeights StreamMixture::weights(std::size_t rate, bool votes) const {
  StreamWeights weights{};
  const double n = n_judged[rate];
  if (n == 0.0 || is_sorted) {
    weights[0] = 1.0;
    return weights;
  }
  const double* of_rate = losses.data() + rate * n_stream_experts;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < n_stream_experts; ++k)
    if (has(k)) least = std::min(least, of_rate[k]);
  const double unit = least + (votes ? class_prior : label_prior) * (n + 1.0);
  for (std::size_t k = 0; k < n_stream_experts; ++k) {
    if (!has(k)) continue;
    const double log = sixteenths_per_nat * (0.5 * n * ((of_rate[k] - least) / unit));
    if (log < static_cast<double>(least_log)) weights[k] = weight_of(-static_cast<LogWeight>(log));
  }
  for (std::size_t n_left = n_stream_experts; n_left > most_active; --n_left) {
    std::size_t last = n_stream_experts;  // the one with the least, of equals the last
    for (std::size_t k = 0; k < n_stream_experts; ++k)
      if (weights[k] > 0.0 && (last == n_stream_experts || weights[k] <= weights[last])) last = k;
    const auto n_active = std::ranges::count_if(weights, [](double w) { return w > 0.0; });
    if (n_active <= static_cast<std::ptrdiff_t>(most_active)) break;
    weights[last] = 0.0;
  }
  double sum = 0.0;
  for (const double w : weights) sum += w;
  for (double& w : weights) w /= sum;
  return weights;
}

void StreamMixture::add_row(std::span<const double> row, std::span<const double> label,
                            bool votes) {
  const std::uint32_t place = votes ? classes.add(static_cast<std::uint32_t>(label[0])) : 0;
  for (std::size_t m = 0; m < n_models; ++m) {
    LinearModel& model = models[m];
    if (model.is_stopped()) continue;
    if (!model.is_kept()) model.begin(row, votes ? std::span<const double>() : label, votes);
    if (!model.is_kept()) continue;
    if (!votes) {
      model.add_label(row, label.data(), 1.0);
      continue;
    }
    model.add_outputs(classes.size());
    if (place < model.n_outputs()) model.add_class(row, place, 1.0);
  }
}

// Not before a thirty-second of the rows is new, as far as they count, nor so often that a row costs more than a
// few of its squares.
void StreamMixture::solve(Arrival seen) {
  if (seen % recentre_period == 0)
    for (LinearModel& model : models) model.recentre();
  if (seen % shortest_period != 0 || !models[0].is_kept()) return;
  const std::size_t D = models[0].n_varied();  // others are as if they were not there
  const Arrival cheap = D * (D + models[0].n_outputs()) / 256;
  for (std::size_t m = 0; m < n_models; ++m) {
    const Arrival period =
        std::clamp(std::bit_floor(seen / 32), shortest_period, stream_models[m].longest_period);
    if (seen % std::max(period, cheap) == 0) models[m].solve();
  }
}

void StreamMixture::learn(Arrival a, std::span<const double> row, std::span<const double> label,
                          bool votes) {
  add_row(row, label, votes);
  solve(a + 1);
}

void StreamMixture::learn_again(const Window& window, ElementType type, std::size_t n_features,
                                std::size_t label_length, bool votes) {
  models = new_models();
  last_error.clear();
  std::vector<double> row(n_features);
  for (Arrival a = window.begin(); a < window.end(); ++a) {
    if (window.has(a)) {
      to_doubles({window.row(a), type}, n_features, row.data());
      add_row(row, {window.label(a), label_length}, votes);
      continue;
    }
    for (LinearModel& model : models) model.pass_row();
  }
  for (LinearModel& model : models) model.solve();
}

std::size_t StreamMixture::bytes() const {
  const std::size_t n = n_judged.size() + losses.size() + rate_losses.size() +
                        correction_losses.size() + sharpness_losses.size();
  std::size_t bytes = n * sizeof(double) + last_error.size() * sizeof(ColumnError);
  for (const LinearModel& model : models) bytes += model.bytes();
  return bytes + 2 * classes.size() * sizeof(std::uint32_t);
}

std::span<double> StreamRow::begin(const Position& query, std::span<const Leaf> v) {
  query_ = query;
  v_ = v;
  for (const std::uint32_t j : named_) {
    for (std::vector<double>& answer : answers_) answer[j] = 0.0;
    sums_[j] = mixed_[j] = uncorrected_[j] = 0.0;
    is_named_[j] = false;
  }
  named_.clear();
  const std::size_t n = votes_ ? mixture_.classes.size() : store_.label_length();
  for (std::vector<double>& answer : answers_) answer.resize(n, 0.0);
  for (std::vector<double>* part : {&sums_, &mixed_, &uncorrected_}) part->resize(n, 0.0);
  is_named_.resize(n, false);
  std::size_t n_begun = votes_ ? 0 : n;  // a linear model names all that it knows
  for (const LinearModel& model : mixture_.models) n_begun = std::max(n_begun, model.n_solved());
  for (std::uint32_t j = 0; j < n_begun; ++j) name(j);
  is_answered_.fill(false);
  is_answered_[0] = true;
  fit_is_begun_ = false;
  return answers_[0];
}

void StreamRow::put_share(std::uint32_t code, double share) { answers_[0][named(code)] = share; }

void StreamRow::name(std::uint32_t column) {
  if (is_named_[column]) return;
  is_named_[column] = true;
  named_.insert(std::ranges::upper_bound(named_, column), column);
}

std::uint32_t StreamRow::named(std::uint32_t code) {
  const std::uint32_t place = mixture_.classes.find(code);
  name(place);
  return place;
}

// What has no answer repeats that of the trees.
std::span<const double> StreamRow::answer(std::size_t k) {
  const std::span<double> out = answers_[k];
  if (is_answered_[k]) return out;
  is_answered_[k] = true;
  for (const std::uint32_t j : named_) out[j] = answers_[0][j];
  for (const std::uint32_t j : named_) sums_[j] = 0.0;
  const StreamExpert& expert = stream_experts[k];
  if (expert.kind == Kind::nearest) answer_nearest(expert, out);
  if (expert.kind == Kind::linear) answer_linear(mixture_.models[expert.n], out);
  if (expert.kind == Kind::ridge) answer_ridge(out);
  return out;
}

std::span<const Arrival> StreamRow::neighbours(const StreamExpert& expert) {
  return recent_.nearest(query_, expert.is_weighted ? learned_ : plain_, expert.n, expert.k);
}

void StreamRow::answer_nearest(const StreamExpert& expert, std::span<double> out) {
  const std::span<const Arrival> near = neighbours(expert);
  if (near.empty()) return;
  const auto n = static_cast<double>(near.size());
  for (const Arrival a : near) {
    const double* label = recent_.label(a);
    if (votes_)
      sums_[named(static_cast<std::uint32_t>(*label))] += 1.0;
    else
      for (const std::uint32_t j : named_) sums_[j] += label[j];
  }
  for (const std::uint32_t j : named_)
    if (std::isfinite(sums_[j])) out[j] = sums_[j] / n;
}

void StreamRow::answer_linear(const LinearModel& model, std::span<double> out) {
  if (!model.is_solved()) return;
  if (row_.empty()) row_.resize(store_.n_features());
  to_doubles(query_, row_.size(), row_.data());
  model.answer(row_, linear_);
  std::ranges::copy(linear_, sums_.begin());
  if (!votes_) {
    begin_fit();
    return put_clipped(linear_slack, out);
  }
  // Least squares on 0 and 1 are far too cautious: the fourth power is taken. (Then Hyperplane gains 1.9 points,
  // electricity 1.1 and SEA 1.0.)
  for (const std::uint32_t j : named_) {
    double& x = sums_[j];
    x = x > 0.0 ? std::min(x, largest_share) : 0.0;
    x *= x;
    x *= x;
  }
  put_shares(out);
}

void StreamRow::answer_ridge(std::span<double> out) {
  begin_fit();
  const std::span<const double> coefficients = fit_.coefficients(stream_ridge);
  for (std::size_t i = 0; i < coefficients.size(); ++i) {
    const double* label = store_.label(fit_.ends()[i]);
    if (votes_)
      sums_[named(static_cast<std::uint32_t>(*label))] += coefficients[i];
    else
      for (const std::uint32_t j : named_) sums_[j] += coefficients[i] * label[j];
  }
  if (votes_)
    put_shares(out);
  else
    put_clipped(local_slack, out);
}

void StreamRow::begin_fit() {
  if (fit_is_begun_) return;
  fit_is_begun_ = true;
  fit_.begin(query_, v_);
}

// What is negative or not finite is 0; then all are in proportion. None is positive: as the trees.
void StreamRow::put_shares(std::span<double> out) {
  double sum = 0.0;
  for (const std::uint32_t j : named_) {
    double& x = sums_[j];
    x = x > 0.0 && std::isfinite(x) ? std::min(x, largest_share) : 0.0;
    sum += x;
  }
  if (!(sum > 0.0)) return;
  for (const std::uint32_t j : named_) out[j] = sums_[j] / sum;
}

// Not farther from the labels of the ends than so much of their range.
void StreamRow::put_clipped(double slack, std::span<double> out) {
  for (const std::uint32_t j : named_) {
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -lowest;
    for (const Slot slot : fit_.ends()) {
      lowest = std::min(lowest, store_.label(slot)[j]);
      highest = std::max(highest, store_.label(slot)[j]);
    }
    const double beyond = slack * (highest - lowest);
    if (std::isfinite(sums_[j])) out[j] = std::clamp(sums_[j], lowest - beyond, highest + beyond);
  }
}

void StreamRow::mix(const StreamWeights& weights) {
  for (const std::uint32_t j : named_) mixed_[j] = 0.0;
  for (std::size_t k = 0; k < n_stream_experts; ++k) {
    if (!(weights[k] > 0.0)) continue;
    const std::span<const double> of_k = answer(k);
    for (const std::uint32_t j : named_) mixed_[j] += weights[k] * of_k[j];
  }
  for (const std::uint32_t j : named_)
    if (!std::isfinite(mixed_[j])) mixed_[j] = answers_[0][j];
}

// A part of the last error is added. Shares then sum to 1 again.
void StreamRow::correct(double part) {
  if (!(part > 0.0)) return;
  for (const ColumnError& last : mixture_.last_error) {
    name(last.column);
    const double x = mixed_[last.column] + part * last.error;
    if (std::isfinite(x)) mixed_[last.column] = votes_ && !(x > 0.0) ? 0.0 : x;
  }
  if (!votes_) return;
  double sum = 0.0;
  for (const std::uint32_t j : named_) sum += mixed_[j];
  if (!(sum > 0.0)) return;
  for (const std::uint32_t j : named_) mixed_[j] /= sum;
}

void StreamRow::answer_now() {
  mix(mixture_.weights(mixture_.rate(), votes_));
  correct(mixture_.correction());
}

void StreamRow::label(std::span<double> out) {
  answer_now();
  std::ranges::copy(mixed_, out.begin());
}

std::span<const Vote> StreamRow::probabilities(Ranks ranks, const ClassWeights& classes, bool all) {
  answer_now();
  const std::span<const std::uint32_t> codes = mixture_.classes.codes();
  double sum = 0.0;
  for (const std::uint32_t place : named_)
    if (rank_of(codes[place], ranks) != no_rank) sum += mixed_[place];
  all = all || classes.any() || !(sum > 0.0) || std::ranges::count(ranks, no_rank) > 0;
  shares_.clear();
  const auto add = [&](std::size_t place) {
    if (rank_of(codes[place], ranks) != no_rank) shares_.push_back({codes[place], mixed_[place]});
  };
  if (all)
    for (std::size_t place = 0; place < codes.size(); ++place) add(place);
  else
    for (const std::uint32_t place : named_) add(place);
  const std::uint8_t sharpness = mixture_.sharpness();
  const double of_zero = sharpened(added_share, sharpness);
  std::size_t n_zeros = all ? 0 : codes.size() - named_.size();
  double total = 0.0;
  for (Vote& vote : shares_) {
    const double share = sum > 0.0 ? vote.share / sum : 1.0 / static_cast<double>(shares_.size());
    const bool is_zero = !(share > 0.0);
    vote.share = is_zero ? of_zero : sharpened(share + added_share, sharpness);
    if (classes.any()) vote.share *= classes.of(vote.code);
    if (is_zero && !classes.any())
      ++n_zeros;
    else
      total += vote.share;
  }
  total += static_cast<double>(n_zeros) * of_zero;
  for (Vote& vote : shares_) vote.share /= total;
  return shares_;
}

void StreamRow::tree_weights(std::span<double> shares) {
  const StreamWeights weights = mixture_.weights(mixture_.rate(), votes_);
  for (double& share : shares) share *= weights[0];
  for (std::size_t k = 0; k < n_stream_experts; ++k) {
    if (stream_experts[k].kind != Kind::ridge || !(weights[k] > 0.0)) continue;
    begin_fit();
    const std::span<const double> coefficients = fit_.coefficients(stream_ridge);
    for (std::size_t t = 0; t < shares.size(); ++t) {
      const std::uint32_t end = fit_.end_of_tree()[t];
      shares[t] += weights[k] * (coefficients[end] / fit_.counts()[end]);
    }
  }
}

std::vector<StreamRow::RecentShare> StreamRow::recent_shares() {
  const StreamWeights weights = mixture_.weights(mixture_.rate(), votes_);
  std::vector<RecentShare> all;
  for (std::size_t k = 0; k < n_stream_experts; ++k) {
    if (stream_experts[k].kind != Kind::nearest || !(weights[k] > 0.0)) continue;
    const std::span<const Arrival> near = neighbours(stream_experts[k]);
    for (const Arrival a : near) {
      const auto known =
          std::ranges::find_if(all, [&](const RecentShare& one) { return one.arrival == a; });
      const double share = weights[k] / static_cast<double>(near.size());
      if (known == all.end())
        all.push_back({a, share});
      else
        known->share += share;
    }
  }
  return all;
}

// The squared error over all classes, or outputs in units of their variances.
double StreamRow::loss(std::span<const double> answer, const double* label,
                       std::uint32_t place) const {
  double sum = votes_ && place == nothing ? 1.0 : 0.0;
  for (const std::uint32_t j : named_) {
    const double truth = votes_ ? (place == j ? 1.0 : 0.0) : label[j];
    const double error = answer[j] - truth;
    sum += votes_ ? error * error : error * error * units_[j];
  }
  if (!votes_) sum /= static_cast<double>(mixed_.size());
  return sum < largest_loss ? sum : largest_loss;
}

void StreamRow::judge(Arrival a, const double* label, const Spread& before,
                      StreamMixture& mixture) {
  std::uint32_t place = nothing;
  if (votes_) place = mixture.classes.find(static_cast<std::uint32_t>(*label));
  if (place != nothing) name(place);
  units_.resize(votes_ ? 0 : mixed_.size());
  for (std::size_t j = 0; j < units_.size(); ++j) {
    const double variance = before.variance(j);
    units_[j] = variance > 0.0 && std::isfinite(variance) ? 1.0 / variance : 0.0;
  }
  const std::size_t in_use = mixture.rate();
  std::array<bool, n_stream_experts> judged;
  judged.fill(a % unused_period == 0 || mixture.n_judged.front() < rows_to_rest);
  judged[0] = true;
  for (std::size_t r = 0; r < n_rates; ++r) {
    const StreamWeights weights = mixture.weights(r, votes_);
    for (std::size_t k = 0; k < n_stream_experts; ++k) judged[k] = judged[k] || weights[k] > 0.0;
    mix(weights);
    rate_losses_[r] = loss(mixed_, label, place);
    if (r == in_use) judge_correction(label, place, mixture);
  }
  std::array<double, n_stream_experts> losses;
  for (std::size_t k = 0; k < n_stream_experts; ++k)
    if (judged[k]) losses[k] = loss(answer(k), label, place);
  for (std::size_t r = 0; r < n_rates; ++r) {
    mixture.rate_losses[r] = rate_decay * mixture.rate_losses[r] + rate_losses_[r];
    double* of_rate = mixture.losses.data() + r * n_stream_experts;
    const double of_trees = of_rate[0];
    for (std::size_t k = 0; k < n_stream_experts; ++k) {
      if (!judged[k])
        losses[k] = std::max(0.0, losses[0] + (of_rate[k] - of_trees) / mixture.n_judged[r]);
      of_rate[k] = loss_decays[r] * of_rate[k] + losses[k];
    }
    mixture.n_judged[r] = loss_decays[r] * mixture.n_judged[r] + 1.0;
  }
}

// What each correction would have lost, and each sharpness with the one in use. `mixed_` is the answer in use.
void StreamRow::judge_correction(const double* label, std::uint32_t place, StreamMixture& mixture) {
  const auto copy_columns = [&](const std::vector<double>& from, std::vector<double>& to) {
    for (const std::uint32_t j : named_) to[j] = from[j];
  };
  copy_columns(mixed_, uncorrected_);
  const double in_use = mixture.correction();
  for (std::size_t c = 0; c < n_corrections; ++c) {
    copy_columns(uncorrected_, mixed_);
    correct(corrections[c]);
    mixture.correction_losses[c] =
        correction_decay * mixture.correction_losses[c] + loss(mixed_, label, place);
  }
  copy_columns(uncorrected_, mixed_);
  correct(in_use);
  if (place != nothing) judge_sharpness(place, mixture);
  mixture.last_error.clear();
  if (votes_ && place == nothing) return;
  for (const std::uint32_t j : named_) {
    const double truth = votes_ ? (place == j ? 1.0 : 0.0) : label[j];
    const double error = truth - uncorrected_[j];
    if (std::isfinite(error) && error != 0.0) mixture.last_error.push_back({j, error});
  }
}

// What each sharpness would have lost.
void StreamRow::judge_sharpness(std::uint32_t place, StreamMixture& mixture) {
  std::array<double, n_sharpnesses> sums = {};
  const auto add = [&](double share, double times) {
    const double root = std::sqrt(std::sqrt(share + added_share));
    double power = 1.0;
    std::uint8_t quarters = 0;
    for (std::size_t s = 0; s < n_sharpnesses; ++s) {
      for (; quarters < sharpnesses[s]; ++quarters) power *= root;
      sums[s] += times * power;
    }
  };
  std::size_t n_zeros = mixed_.size();
  for (const std::uint32_t j : named_) {
    if (!(mixed_[j] > 0.0)) continue;
    add(mixed_[j], 1.0);
    --n_zeros;
  }
  if (n_zeros > 0) add(0.0, static_cast<double>(n_zeros));
  const double log = log2_of(mixed_[place] + added_share);
  for (std::size_t s = 0; s < n_sharpnesses; ++s)
    mixture.sharpness_losses[s] = sharpness_decay * mixture.sharpness_losses[s] +
                                  (log2_of(sums[s]) - 0.25 * sharpnesses[s] * log);
}

}  // namespace boundary_forest
