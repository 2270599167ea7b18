#include "vote/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "distance/metric.hpp"

namespace boundary_forest {
namespace {

constexpr double equal_pull = 0.001;         // towards equal weights, per row and output
constexpr double fewest_judged = 20.0;       // rows that weights are fitted to
constexpr double fewest_calibrated = 100.0;  // rows judged, of which half choose the sharpness
constexpr double carried = 0.7;              // how much earlier rows count after a decision
constexpr std::size_t n_sweeps = 1000;

constexpr std::size_t n_products = n_experts * (n_experts + 1) / 2;

double product(std::span<const double> products, std::size_t k, std::size_t l) {
  return k < l ? products[l * (l + 1) / 2 + k] : products[k * (k + 1) / 2 + l];
}

using Active = std::array<bool, n_experts>;

// The w >= 0 with sum 1 that has the least w' Q w, by descent along one coordinate after the other: v has
// the least v' Q v / 2 - sum(v), and w is in proportion to it.
std::vector<double> least_squares(std::span<const double> products, double pull,
                                  const Active& active) {
  std::vector<double> v(n_experts, 0.0);
  bool changes = true;
  for (std::size_t sweep = 0; sweep < n_sweeps && changes; ++sweep) {
    changes = false;
    for (std::size_t k = 0; k < n_experts; ++k) {
      if (!active[k]) continue;
      double gradient = 1.0;
      for (std::size_t l = 0; l < n_experts; ++l)
        if (l != k) gradient -= product(products, k, l) * v[l];
      const double best = std::max(0.0, gradient / (product(products, k, k) + pull));
      changes = changes || best != v[k];
      v[k] = best;
    }
  }
  double sum = 0.0;
  for (const double x : v) sum += x;
  for (double& x : v) x /= sum;
  return v;
}

// None if there are too few rows, or errors that are too large to compare.
std::vector<double> fitted_weights(std::span<const double> products, double n, bool has_models,
                                   double n_outputs) {
  if (n < fewest_judged) return {};
  std::vector<double> mean(products.begin(), products.end());
  for (double& x : mean) {
    x /= n * n_outputs;
    if (!std::isfinite(x)) return {};
  }
  Active active;
  for (std::size_t k = 0; k < n_experts; ++k) active[k] = has_models || !needs_models(k);
  while (true) {
    std::vector<double> weights = least_squares(mean, equal_pull, active);
    std::size_t n_left = 0;
    for (std::size_t k = 0; k < n_experts; ++k) n_left += weights[k] > 0.0;
    if (n_left <= most_active) return weights;
    // Those that have no weight, or the one with the least.
    std::size_t least = n_experts;
    for (std::size_t k = 0; k < n_experts; ++k) {
      active[k] = weights[k] > 0.0;
      if (active[k] && (least == n_experts || weights[k] < weights[least])) least = k;
    }
    active[least] = false;
  }
}

// Features up to the last one that is not 0 in all rows; at least one.
std::size_t known_features(std::span<const double> rows, std::size_t n_features) {
  std::size_t n_known = 1;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != 0.0) n_known = std::max(n_known, i % n_features + 1);
  return n_known;
}

}  // namespace

void begin_mixture(const Params& params, MixtureState& mixture) {
  if (!params.mixes()) return;
  mixture.weights.assign(n_experts, 0.0);
  mixture.weights[0] = 1.0;
  mixture.products.assign(n_products, 0.0);
  if (params.estimator == Estimator::shepard_vote)
    mixture.losses.assign(n_sharpnesses, 0.0);
  else
    mixture.units.assign(params.label_length, 0.0);
}

void MixtureState::add_row(std::span<const double> row, const double* label, bool votes,
                           double sign) {
  const std::uint32_t place = votes ? classes.add(static_cast<std::uint32_t>(*label)) : 0;
  if (!map.is_fixed() || linear.is_stopped()) return;
  std::vector<double> mapped(map.width());
  map.apply(row, mapped.data());
  if (!linear.is_kept())
    linear.begin(mapped, votes ? std::span<const double>() : std::span(label, units.size()), votes,
                 map.step);
  if (!votes) return linear.add_label(mapped, label, sign);
  linear.add_outputs(classes.size());
  if (place < linear.n_outputs()) linear.add_class(mapped, place, sign);
}

void MixtureState::begin_models(Arrival first, std::span<const double> rows,
                                std::span<const double> labels, std::size_t n_features,
                                bool votes) {
  const std::size_t n = rows.size() / n_features;
  const std::size_t length = labels.size() / std::max<std::size_t>(n, 1);
  const std::size_t n_known = known_features(rows, n_features);
  if (n == 0 || n_known > LinearModel::most_features || length > LinearModel::most_outputs) return;
  std::vector<double> known;
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = rows.subspan(i * n_features, n_known);
    known.insert(known.end(), row.begin(), row.end());
  }
  map = FeatureMap::of(known, n_known);
  first_row = first;
  for (std::size_t i = 0; i < n; ++i)
    add_row(std::span(known).subspan(i * n_known, n_known), labels.data() + i * length, votes);
  widen(n_features);
}

void MixtureState::begin_trial(const Spread& spread, bool votes) {
  const bool was_solved = linear.is_solved();
  linear.solve();
  drop_lost_model();
  for (std::size_t j = 0; !votes && j < units.size(); ++j) {
    const double variance = spread.variance(j);
    units[j] = variance > 0.0 && std::isfinite(variance) ? 1.0 / std::sqrt(variance) : 0.0;
  }
  is_calibrating = false;
  if (was_solved == linear.is_solved()) return;
  n_judged = 0.0;  // of all experts, or of all but one
  std::ranges::fill(products, 0.0);
}

bool MixtureState::fit_weights() {
  const std::vector<double> fitted =
      fitted_weights(products, n_judged, linear.is_solved(),
                     static_cast<double>(std::max<std::size_t>(units.size(), 1)));
  if (!fitted.empty()) weights = fitted;
  return !fitted.empty();
}

void MixtureState::look_ahead() { is_calibrating = fit_weights() && !losses.empty(); }

void MixtureState::decide() {
  if (is_calibrating && n_judged >= fewest_calibrated)
    sharpness = sharpnesses[std::ranges::min_element(losses) - losses.begin()];
  is_calibrating = false;
  fit_weights();
  linear.solve();
  drop_lost_model();
  n_judged *= carried;
  for (double& x : products) x *= carried;
  for (double& x : losses) x *= carried;
}

void MixtureState::solve_again() {
  if (!linear.is_solved()) return;
  linear.solve();
  drop_lost_model();
}

void MixtureState::drop_lost_model() {
  if (linear.is_solved() || !weighs_models()) return;
  std::ranges::fill(weights, 0.0);
  weights[0] = 1.0;
}

void MixtureState::widen(std::size_t n_features) {
  map.widen(n_features);
  linear.widen(map.width());
}

bool MixtureState::weighs_models() const {
  for (std::size_t k = 0; k < weights.size(); ++k)
    if (needs_models(k) && weights[k] > 0.0) return true;
  return false;
}

void RowMixture::begin(const Position& query, std::span<const Leaf> v) {
  query_ = query;
  fit_.begin(query, v);
  labels_.clear();
  for (const Slot slot : fit_.ends()) labels_.push_back(store_.label(slot));
  has_scores_ = false;
  for (std::vector<double>& answers : models_) answers.clear();
  if (votes_) {
    classes_.clear();
    column_of_.clear();
    for (const double* label : labels_) {
      const auto code = static_cast<std::uint32_t>(*label);
      const auto at = std::find(classes_.begin(), classes_.end(), code) - classes_.begin();
      if (at == std::ssize(classes_)) classes_.push_back(code);
      column_of_.push_back(static_cast<std::uint32_t>(at));
    }
    n_columns_ = classes_.size();
    const bool all_one = n_columns_ == 1;
    lowest_.assign(n_columns_, all_one ? 1.0 : 0.0 - local_slack);
    highest_.assign(n_columns_, all_one ? 1.0 : 1.0 + local_slack);
  } else {
    n_columns_ = store_.label_length();
    lowest_.assign(labels_[0], labels_[0] + n_columns_);
    highest_ = lowest_;
    for (const double* label : labels_)
      for (std::size_t j = 0; j < n_columns_; ++j) {
        lowest_[j] = std::min(lowest_[j], label[j]);
        highest_[j] = std::max(highest_[j], label[j]);
      }
  }
  answers_.resize(n_experts * n_columns_);
}

void RowMixture::answer_local(std::size_t expert) {
  const std::span<double> out(answer(expert), n_columns_);
  if (votes_ && n_columns_ == 1) {  // as clipping would have it
    out[0] = 1.0;
    return;
  }
  const std::span<const double> coefficients = fit_of(expert).coefficients(experts[expert]);
  std::ranges::fill(out, 0.0);
  if (votes_) {
    for (std::size_t i = 0; i < coefficients.size(); ++i) out[column_of_[i]] += coefficients[i];
    for (double& x : out) x = std::clamp(x, 0.0 - local_slack, 1.0 + local_slack);
    return;
  }
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    for (std::size_t j = 0; j < n_columns_; ++j) out[j] += coefficients[i] * labels_[i][j];
  for (std::size_t j = 0; j < n_columns_; ++j) {
    if (!std::isfinite(out[j]))
      out[j] =
          large_mean(labels_, fit_.counts(), static_cast<double>(fit_.end_of_tree().size()), j);
    const double slack = local_slack * (highest_[j] - lowest_[j]);
    out[j] = std::clamp(out[j], lowest_[j] - slack, highest_[j] + slack);
  }
}

// In the space of the positions, or of positions and scores.
LocalFit& RowMixture::fit_of(std::size_t expert) {
  if (experts[expert].kind != Expert::Kind::scored_ridge) return fit_;
  if (!has_scores_) begin_scores();
  return scored_fit_;
}

void KnownScores::begin(std::size_t n_outputs) {
  if (n_outputs_ == n_outputs) return;
  n_outputs_ = n_outputs;
  slots_.assign(n_places, nothing);
  scores_.resize(n_places * n_outputs);
}

double* KnownScores::of(Slot slot) {
  const std::size_t place = slot % n_places;
  double* scores = scores_.data() + place * n_outputs_;
  if (slots_[place] != slot) std::fill_n(scores, n_outputs_, std::nan(""));
  slots_[place] = slot;
  return scores;
}

// The quadratic model's answer for a class of the ends, or in units of the labels.
double RowMixture::score(const double* terms, std::size_t column) const {
  const LinearModel& model = mixture_.linear;
  const std::size_t output = votes_ ? mixture_.classes.find(classes_[column]) : column;
  const double x = output < model.n_solved() ? model.score(terms, output) : 0.0;
  return votes_ ? std::clamp(x, 0.0 - local_slack, 1.0 + local_slack) : x * mixture_.units[column];
}

// The scores of an example are such answers for all classes of the ends, or outputs.
void RowMixture::begin_scores() {
  has_scores_ = true;
  const LinearModel& model = mixture_.linear;
  std::vector<double> terms(model.terms.size());
  std::vector<double> of_query(n_columns_);
  model.expand(mapped(query_), terms.data());
  for (std::size_t c = 0; c < n_columns_; ++c) of_query[c] = score(terms.data(), c);
  scores_.resize(fit_.ends().size() * n_columns_);
  if (!is_first_) known_.begin(votes_ ? mixture_.classes.size() : n_columns_);
  double* out = scores_.data();
  for (const Slot slot : fit_.ends()) {
    double* known = is_first_ ? nullptr : known_.of(slot);
    bool is_expanded = false;
    for (std::size_t c = 0; c < n_columns_; ++c) {
      const std::size_t output = votes_ ? mixture_.classes.find(classes_[c]) : c;
      double x = known != nullptr && output != nothing ? known[output] : std::nan("");
      if (std::isnan(x)) {
        if (!is_expanded)
          model.expand(mapped({store_.row(slot), store_.element_type()}), terms.data());
        is_expanded = true;
        x = score(terms.data(), c);
        if (known != nullptr && output != nothing) known[output] = x;
      }
      *out++ = x - of_query[c];
    }
  }
  is_first_ = false;
  scored_fit_.begin_with_scores(fit_, scores_, n_columns_);
}

// What the models over all rows know of it, until the next call.
std::span<const double> RowMixture::mapped(const Position& position) {
  row_.resize(store_.n_features());
  mapped_.resize(mixture_.map.width());
  to_doubles(position, row_.size(), row_.data());
  mixture_.map.apply(row_, mapped_.data());
  return mapped_;
}

void RowMixture::answer_models() {
  if (!mixture_.linear.is_solved()) return;
  mixture_.linear.answer(mapped(query_), models_[0], models_[1]);
  for (std::vector<double>& answers : models_)
    for (std::size_t j = 0; j < answers.size(); ++j) {
      double& x = answers[j];
      if (votes_) {
        x = std::isfinite(x) ? std::clamp(x, 0.0 - local_slack, 1.0 + local_slack) : 0.0;
        continue;
      }
      const double slack = linear_slack * (highest_[j] - lowest_[j]);
      x = std::isfinite(x) ? std::clamp(x, lowest_[j] - slack, highest_[j] + slack) : lowest_[j];
    }
}

// Of all experts, if there are no weights; else of those that have one.
void RowMixture::answer_all(std::span<const double> weights) {
  const auto is_needed = [&](std::size_t k) {
    return weights.empty() ? mixture_.linear.is_solved() || !needs_models(k) : weights[k] > 0.0;
  };
  for (std::size_t k = 0; k < n_local; ++k)
    if (is_needed(k)) answer_local(k);
  if (is_needed(linear_expert) || is_needed(quadratic_expert)) answer_models();
}

void RowMixture::label(std::span<double> out) {
  answer_all(mixture_.weights);
  std::ranges::fill(out, 0.0);
  for (std::size_t k = 0; k < n_experts; ++k) {
    const double weight = mixture_.weights[k];
    if (!(weight > 0.0)) continue;
    const double* of_k = k < n_local ? answer(k) : models_[k - n_local].data();
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += weight * of_k[j];
  }
  for (std::size_t j = 0; j < out.size(); ++j)
    if (!std::isfinite(out[j]))
      out[j] =
          large_mean(labels_, fit_.counts(), static_cast<double>(fit_.end_of_tree().size()), j);
}

// Shares of the classes of the ends, then of those that the models over all rows name.
void RowMixture::mix_shares(std::span<const double> weights, const ClassOrder& seen, Ranks ranks) {
  shares_.clear();
  is_listed_.assign(seen.size(), 0);
  const std::size_t n_named = std::max(weights[linear_expert] > 0.0 ? models_[0].size() : 0,
                                       weights[quadratic_expert] > 0.0 ? models_[1].size() : 0);
  const auto list = [&](std::uint32_t code, std::uint32_t place, double share) {
    for (std::size_t m = 0; place < n_named && m < models_.size(); ++m)
      if (const double weight = weights[n_local + m]; weight > 0.0)
        share += weight * models_[m][place];
    if (place != nothing) is_listed_[place] = 1;
    if (rank_of(code, ranks) != no_rank) shares_.push_back({code, std::max(share, 0.0)});
  };
  for (std::size_t c = 0; c < n_columns_; ++c) {
    double share = 0.0;
    for (std::size_t k = 0; k < n_local; ++k)
      if (weights[k] > 0.0) share += weights[k] * answer(k)[c];
    list(classes_[c], seen.find(classes_[c]), share);
  }
  for (std::uint32_t place = 0; place < n_named; ++place)
    if (place < seen.size() && !is_listed_[place]) list(seen.codes()[place], place, 0.0);
  double sum = 0.0;
  for (const Vote& vote : shares_) sum += vote.share;
  for (Vote& vote : shares_)
    vote.share = sum > 0.0 ? vote.share / sum : 1.0 / static_cast<double>(shares_.size());
}

std::span<const Vote> RowMixture::probabilities(const ClassOrder& seen, Ranks ranks,
                                                const ClassWeights& classes) {
  answer_all(mixture_.weights);
  mix_shares(mixture_.weights, seen, ranks);
  double sum = 0.0;
  for (Vote& vote : shares_) {
    vote.share = sharpened(vote.share + added_share, mixture_.sharpness);
    if (classes.any()) vote.share *= classes.of(vote.code);
    sum += vote.share;
  }
  const double least = sharpened(added_share, mixture_.sharpness);
  for (std::size_t place = 0; place < seen.size(); ++place) {
    const std::uint32_t code = seen.codes()[place];
    if (is_listed_[place] || rank_of(code, ranks) == no_rank) continue;
    shares_.push_back({code, classes.any() ? least * classes.of(code) : least});
    sum += shares_.back().share;
  }
  for (Vote& vote : shares_) vote.share /= sum;
  return shares_;
}

void RowMixture::tree_weights(std::span<double> out) {
  std::ranges::fill(out, 0.0);
  for (std::size_t k = 0; k < n_local; ++k) {
    const double weight = mixture_.weights[k];
    if (!(weight > 0.0)) continue;
    const std::span<const double> coefficients = fit_of(k).coefficients(experts[k]);
    for (std::size_t t = 0; t < out.size(); ++t) {
      const std::uint32_t end = fit_.end_of_tree()[t];
      out[t] += weight * (coefficients[end] / fit_.counts()[end]);
    }
  }
}

void RowMixture::judge(const double* label, const ClassOrder& seen, MixtureState& trial) {
  const bool has_models = mixture_.linear.is_solved();
  answer_all({});
  std::array<double, n_experts> errors = {};
  const auto add = [&] {
    double* at = trial.products.data();
    for (std::size_t k = 0; k < n_experts; ++k)
      for (std::size_t l = 0; l <= k; ++l) *at++ += errors[k] * errors[l];
  };
  // Of experts that do not answer the errors are 0.
  const auto set_local = [&](std::size_t column, double truth) {
    for (std::size_t k = 0; k < n_local; ++k)
      if (has_models || !needs_models(k)) errors[k] = answer(k)[column] - truth;
  };
  if (votes_) {
    judge_class(static_cast<std::uint32_t>(*label), seen, trial, errors, set_local, add);
  } else {
    for (std::size_t j = 0; j < n_columns_; ++j) {
      set_local(j, label[j]);
      for (std::size_t m = 0; has_models && m < models_.size(); ++m)
        errors[n_local + m] = models_[m][j] - label[j];
      for (double& error : errors) error *= trial.units[j];
      add();
    }
  }
  trial.n_judged += 1.0;
}

// By class: those of the ends, the true one, then those that only the models name.
template <class SetLocal, class Add>
void RowMixture::judge_class(std::uint32_t code, const ClassOrder& seen, MixtureState& trial,
                             std::span<double> errors, SetLocal&& set_local, Add&& add) {
  const bool has_models = mixture_.linear.is_solved();
  if (trial.is_calibrating && seen.find(code) != nothing) judge_sharpness(code, seen, trial);
  const auto set_models = [&](std::uint32_t of, double truth) {
    const std::uint32_t place = seen.find(of);
    for (std::size_t m = 0; has_models && m < models_.size(); ++m)
      errors[n_local + m] = (place < models_[m].size() ? models_[m][place] : 0.0) - truth;
  };
  for (std::size_t c = 0; c < n_columns_; ++c) {
    const double truth = classes_[c] == code ? 1.0 : 0.0;
    set_local(c, truth);
    set_models(classes_[c], truth);
    add();
  }
  const auto is_of_ends = [&](std::uint32_t of) {
    return std::ranges::find(classes_, of) != classes_.end();
  };
  if (!is_of_ends(code)) {
    for (std::size_t k = 0; k < n_local; ++k)
      if (has_models || !needs_models(k)) errors[k] = -1.0;
    set_models(code, 1.0);
    add();
  }
  std::ranges::fill(errors, 0.0);
  for (std::uint32_t place = 0; place < models_[0].size() && place < seen.size(); ++place) {
    const std::uint32_t of = seen.codes()[place];
    if (of == code || is_of_ends(of)) continue;
    set_models(of, 0.0);
    add();
  }
}

// What each sharpness would have lost.
void RowMixture::judge_sharpness(std::uint32_t code, const ClassOrder& seen, MixtureState& trial) {
  mix_shares(trial.weights, seen, {});
  double true_share = 0.0;
  std::array<double, n_sharpnesses> sums = {};
  const auto add = [&](double share, double times) {
    for (std::size_t s = 0; s < n_sharpnesses; ++s)
      sums[s] += times * sharpened(share + added_share, sharpnesses[s]);
  };
  for (const Vote& vote : shares_) {
    if (vote.code == code) true_share = vote.share;
    add(vote.share, 1.0);
  }
  const auto n_listed = std::ranges::count(is_listed_, 1);
  add(0.0, static_cast<double>(std::ssize(is_listed_) - n_listed));
  const double log = log2_of(true_share + added_share);
  for (std::size_t s = 0; s < n_sharpnesses; ++s)
    trial.losses[s] += log2_of(sums[s]) - 0.25 * sharpnesses[s] * log;
}

}  // namespace boundary_forest
