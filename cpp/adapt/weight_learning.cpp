#include "adapt/weight_learning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "adapt/label_estimates.hpp"
#include "adapt/standardised_rows.hpp"
#include "base/rng.hpp"
#include "concurrency/thread_pool.hpp"

namespace boundary_forest {
namespace {

constexpr std::size_t fewest_rows = 125;    // to learn from and to choose by
constexpr int n_steps = 30;                 // of the descent
constexpr std::size_t rows_per_step = 100;  // at most; half of it where weights are learned often
constexpr double first_step = 14.0;         // its largest component, e^0.6; later steps fall to 0
constexpr double lowest = -184.0;           // compared with the largest: e^-8
constexpr double farthest = 8.0;            // standard deviations; outliers must not decide
// Learned weights must lower the error by so much compared with half of them: trees do better with the latter
// where the estimate finds both alike.
constexpr double reluctance = 1.0 + 1.0 / 64.0;

class WeightLearning {
 public:
  WeightLearning(const WeightRows& given, Arrival seen, const Params& params, std::size_t n_threads)
      : given_(given),
        seen_(seen),
        seed_(params.seed),
        D_(params.n_features),
        forgets_(params.forgets()),
        n_threads_(n_threads),
        cut_(are_few() ? given.size() : given.size() * 3 / 4),
        labels_(params, std::span(given.labels).first(cut_)),
        moments_(moments(params, cut_, [&](std::size_t i) { return given.positions[i]; })),
        rows_(params.n_features) {
    for (const double variance : moments_.variances)
      base_.push_back(variance > 0.0 ? clamped(-log_weight_of(std::min(variance, 1e300))) : 0);
    standardise(params);
  }

  LogWeights choose(const LogWeights& in_use) const {
    const LogWeights equal = scaled(LogWeights(D_, 0));
    if (are_few()) return given_.size() == 0 ? in_use : equal;
    const LogWeights learned = descend();
    LogWeights half = learned;
    for (LogWeight& u : half) u /= 2;
    const LogWeights candidates[] = {raw(), equal, scaled(learned), scaled(half)};
    const LogWeights* best = &in_use;
    double least = validation_error(in_use);
    for (const LogWeights& candidate : candidates) {
      if (candidate == in_use) continue;
      double error = validation_error(candidate);
      if (&candidate == &candidates[2]) error *= reluctance;
      if (!(error < least)) continue;
      least = error;
      best = &candidate;
    }
    return *best;
  }

 private:
  bool are_few() const { return given_.size() < fewest_rows; }  // for more than the spread

  // No weights; or, where trees of different weights vote together, equal ones of the others' size.
  LogWeights raw() const {
    if (!forgets_) return {};
    LogWeights logs = base_;
    for (LogWeight& log : logs) log = -log;
    return scaled(logs);
  }

  static LogWeight clamped(LogWeight log) {
    return std::clamp(log, -most_log_weight, most_log_weight);
  }

  // Logarithms of weights on standardised features, the largest 0.
  LogWeights descend() const {
    std::vector<double> u(D_, 0.0);
    for (int step = 0; step < n_steps; ++step) {
      const std::vector<std::uint32_t> chosen = rows_of_step(step);
      std::vector<Estimated> queries;
      for (const std::uint32_t row : chosen) queries.push_back({position(row), row});
      const std::vector<double> weights = weights_of(rounded(u));
      const std::vector<Nearby> near = nearest_rows(weights, queries, rows_, n_threads_);
      std::vector<double> gradient(D_, 0.0);
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        double pulls[n_near];
        labels_.error(near[i], given_.labels[chosen[i]], pulls);
        for (std::size_t j = 0; j < n_near; ++j) {
          const float* x = position(chosen[i]);
          const float* y = position(near[i].row(j));
          for (std::size_t f = 0; f < D_; ++f) {
            const double apart = static_cast<double>(x[f]) - static_cast<double>(y[f]);
            gradient[f] += pulls[j] * (apart * apart);
          }
        }
      }
      for (std::size_t f = 0; f < D_; ++f) gradient[f] *= weights[f];
      move(u, gradient, step);
    }
    return rounded(u);
  }

  // Along the gradient, its largest component by `length`; then the largest of u is 0 again. Features
  // that are constant stay out of it.
  void move(std::vector<double>& u, std::span<const double> gradient, int step) const {
    double largest = 0.0;
    for (const double g : gradient) largest = std::max(largest, std::fabs(g));
    if (!(largest > 0.0) || std::isinf(largest)) return;
    const double length = first_step * std::sqrt(1.0 - static_cast<double>(step) / n_steps);
    for (std::size_t f = 0; f < u.size(); ++f) u[f] += length * (gradient[f] / largest);
    double top = -std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < u.size(); ++f)
      if (varies(f)) top = std::max(top, u[f]);
    for (std::size_t f = 0; f < u.size(); ++f)
      if (varies(f)) u[f] = std::max(u[f] - top, lowest);
  }

  static LogWeights rounded(std::span<const double> u) {
    LogWeights logs(u.size());
    for (std::size_t f = 0; f < u.size(); ++f)
      logs[f] = static_cast<LogWeight>(std::floor(u[f] + 0.5));
    return logs;
  }

  // Those of least hash64(seed, round, step, arrival), by arrival; the round is the number of arrivals.
  std::vector<std::uint32_t> rows_of_step(int step) const {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed(rows_.size());
    for (std::uint32_t i = 0; i < keyed.size(); ++i)
      keyed[i] = {hash64(seed_, seen_, step, given_.arrivals[i]), i};
    const std::size_t n = std::min(forgets_ ? rows_per_step / 2 : rows_per_step, keyed.size() / 7);
    std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(n) - 1,
                     keyed.end());
    std::vector<std::uint32_t> chosen;
    for (std::size_t i = 0; i < n; ++i) chosen.push_back(keyed[i].second);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  // All rows, by the moments of those that are learned from.
  void standardise(const Params& params) {
    std::vector<double> scale = weights_of(base_);
    for (double& value : scale) value = std::sqrt(value);
    std::vector<double> x(D_);
    standardised_.reserve(given_.size() * D_);
    for (const std::byte* position : given_.positions) {
      to_doubles({position, params.element_type}, D_, x.data());
      for (std::size_t f = 0; f < D_; ++f) {
        const double z = (x[f] - moments_.means[f]) * scale[f];
        standardised_.push_back(
            std::isnan(z) ? 0.0F : static_cast<float>(std::clamp(z, -farthest, farthest)));
      }
    }
    for (std::size_t i = 0; i < cut_; ++i) rows_.add({position(i), D_});
  }

  const float* position(std::size_t i) const { return standardised_.data() + i * D_; }

  bool varies(std::size_t f) const { return moments_.variances[f] > 0.0; }

  // Weights of raw features, of a size at which squared distances are about 2. A constant feature,
  // of which nothing is known, gets the least of the others' (see least_log_weight).
  LogWeights scaled(const LogWeights& u) const {
    LogWeights logs(u.size());
    double sum = 0.0;
    for (std::size_t f = 0; f < u.size(); ++f) {
      logs[f] = base_[f] + u[f];
      const double importance = weight_of(logs[f]) * moments_.variances[f];
      if (std::isfinite(importance)) sum += importance;
    }
    const LogWeight size = sum > 0.0 ? log_weight_of(std::min(sum, 1e300)) : 0;
    LogWeights varying;
    for (std::size_t f = 0; f < logs.size(); ++f) {
      logs[f] = clamped(logs[f] - size);
      if (varies(f)) varying.push_back(logs[f]);
    }
    for (std::size_t f = 0; f < logs.size(); ++f)
      if (!varies(f)) logs[f] = least_log_weight(varying);
    return is_plain(logs) ? LogWeights{} : logs;
  }

  // Of weights of raw features, on the newest rows; they are compared as standardised ones too.
  double validation_error(LogWeights logs) const {
    logs.resize(D_);  // zeros are the plain metric
    for (std::size_t f = 0; f < D_; ++f) logs[f] = clamped(logs[f] - base_[f]);
    std::vector<Estimated> queries;
    for (std::size_t i = rows_.size(); i < given_.size(); ++i) queries.push_back({position(i)});
    const std::vector<Nearby> near = nearest_rows(weights_of(logs), queries, rows_, n_threads_);
    double error = 0.0;
    for (std::size_t i = 0; i < near.size(); ++i)
      error += labels_.error(near[i], given_.labels[cut_ + i], nullptr);
    return error;
  }

  const WeightRows& given_;
  const Arrival seen_;
  const std::uint64_t seed_;
  const std::size_t D_;  // features
  const bool forgets_;
  const std::size_t n_threads_;
  const std::size_t cut_;  // from here on they are for validation
  const LabelEstimates labels_;
  const Moments moments_;            // of the rows that are learned from
  LogWeights base_;                  // of 1 / variance; 0 for a constant feature
  std::vector<float> standardised_;  // all of the rows, D_ values each
  StandardisedRows rows_;            // those before cut_
};

}  // namespace

Moments moments(const Params& params, std::size_t n,
                const std::function<const std::byte*(std::size_t)>& row) {
  const std::size_t D = params.n_features;
  Moments out{std::vector<double>(D, 0.0), std::vector<double>(D, 0.0)};
  std::vector<double> x(D);
  const auto for_each = [&](auto&& f) {
    for (std::size_t i = 0; i < n; ++i) {
      to_doubles({row(i), params.element_type}, D, x.data());
      for (std::size_t j = 0; j < D; ++j) f(j);
    }
  };
  const auto count = static_cast<double>(n);
  for_each([&](std::size_t j) { out.means[j] += x[j]; });
  for (double& mean : out.means) mean /= count;
  for_each([&](std::size_t j) {
    const double apart = x[j] - out.means[j];
    out.variances[j] += apart * apart;
  });
  for (double& variance : out.variances)
    variance = std::isfinite(variance) ? variance / count : std::numeric_limits<double>::infinity();
  return out;
}

WeightRows::WeightRows(const Window& window, std::size_t n_rows) : arrivals(window.last(n_rows)) {
  for (const Arrival a : arrivals) {
    positions.push_back(window.row(a));
    labels.push_back(window.label(a));
  }
}

WeightRows::WeightRows(const Window& window, const Reservoir& reservoir, const ExampleStore& store,
                       std::size_t n_rows, std::uint64_t seed) {
  std::vector<Reservoir::Member> chosen;  // a slot: of the reservoir
  const std::vector<Arrival> last = window.last(n_rows / 2);
  for (const Arrival a : last) chosen.push_back({hash64(seed, a), a, nothing});
  const auto members = reservoir.members();
  for (const Reservoir::Member& member : members.first(std::min(n_rows / 2, members.size())))
    if (member.slot != nothing && !std::binary_search(last.begin(), last.end(), member.arrival))
      chosen.push_back(member);
  std::sort(chosen.begin(), chosen.end());
  for (const Reservoir::Member& one : chosen) {
    const bool is_last = one.slot == nothing;
    arrivals.push_back(one.arrival);
    positions.push_back(is_last ? window.row(one.arrival) : store.row(one.slot));
    labels.push_back(is_last ? window.label(one.arrival) : store.label(one.slot));
  }
}

LogWeights learn_weights(const WeightRows& rows, Arrival seen, const Params& params,
                         const LogWeights& in_use, std::size_t n_threads) {
  return WeightLearning(rows, seen, params, n_threads).choose(in_use);
}

}  // namespace boundary_forest
