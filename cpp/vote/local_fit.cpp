#include "vote/local_fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/cholesky.hpp"
#include "distance/kernels/kernel.hpp"
#include "distance/metric.hpp"

namespace boundary_forest {
namespace {

constexpr double share_of_scores = 8.0;

}  // namespace

std::string name_of(const Expert& expert) {
  const std::string power = std::to_string(expert.power);
  std::string penalty = std::to_string(expert.penalty);
  penalty.erase(penalty.find_last_not_of("0.") + 1);
  switch (expert.kind) {
    case Expert::Kind::mean:
      return "mean";
    case Expert::Kind::shepard:
      return "shepard(power=" + power + ")";
    case Expert::Kind::ridge:
      return "ridge(power=" + power + ", penalty=" + penalty + ")";
    case Expert::Kind::scored_ridge:
      return "scored_ridge(power=" + power + ", penalty=" + penalty + ")";
    case Expert::Kind::linear:
      return "linear";
    case Expert::Kind::quadratic:
      return "quadratic";
  }
  __builtin_unreachable();
}

void LocalFit::begin(const Position& query, std::span<const Leaf> v) {
  query_ = query;
  ends_.clear();
  counts_.clear();
  end_of_tree_.clear();
  is_measured_ = has_products_ = false;
  weighed_ = prepared_ = -1;
  const std::size_t size = std::bit_ceil(2 * v.size());
  place_of_end_.assign(size, nothing);
  for (const Leaf& v_i : v) {
    std::size_t i = v_i.example % size;
    while (place_of_end_[i] != nothing && ends_[place_of_end_[i]] != v_i.example)
      i = (i + 1) % size;
    if (place_of_end_[i] == nothing) {
      place_of_end_[i] = static_cast<std::uint32_t>(ends_.size());
      ends_.push_back(v_i.example);
      counts_.push_back(0.0);
    }
    counts_[place_of_end_[i]] += 1.0;
    end_of_tree_.push_back(place_of_end_[i]);
  }
}

void LocalFit::begin_with_scores(LocalFit& positions, std::span<const double> relative,
                                 std::size_t n_scores) {
  positions.measure();
  ends_ = positions.ends_;
  counts_ = positions.counts_;
  end_of_tree_ = positions.end_of_tree_;
  is_measured_ = true;
  has_products_ = false;
  weighed_ = prepared_ = -1;
  const std::size_t n = ends_.size();
  double of_positions = 0.0;
  double of_scores = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double* z = relative.data() + i * n_scores;
    of_positions += positions.squares_[i];
    of_scores += lane_dot(z, z, n_scores);
  }
  const double factor = std::sqrt(share_of_scores * of_positions / of_scores);
  if (!std::isfinite(factor)) n_scores = 0;  // they are all equal, or too large
  D_ = positions.D_ + n_scores;
  differences_.resize(n * D_);
  double* to = differences_.data();
  for (std::size_t i = 0; i < n; ++i) {
    const double* z = positions.differences_.data() + i * positions.D_;
    to = std::copy_n(z, positions.D_, to);
    for (std::size_t c = 0; c < n_scores; ++c) *to++ = relative[i * n_scores + c] * factor;
  }
  measure_squares();
}

std::span<const double> LocalFit::coefficients(const Expert& expert) {
  if (expert.kind == Expert::Kind::mean) {
    const auto n = static_cast<double>(end_of_tree_.size());
    coefficients_.resize(ends_.size());
    for (std::size_t i = 0; i < ends_.size(); ++i) coefficients_[i] = counts_[i] / n;
    return coefficients_;
  }
  measure();
  weigh(expert.power);
  if (expert.kind == Expert::Kind::shepard || least_ == 0.0) return weights_;
  prepare(expert.power);
  return fit_ridge(expert.penalty) ? coefficients_ : weights_;
}

void LocalFit::measure() {
  if (is_measured_) return;
  is_measured_ = true;
  const std::size_t n = ends_.size();
  const std::size_t n_features = store_.n_features();
  std::vector<double>& query = rhs_;
  query.resize(n_features);
  to_doubles(query_, n_features, query.data());
  differences_.resize(n * n_features);
  differs_.assign(n_features, 0);
  std::uint64_t* differs = differs_.data();
  for (std::size_t i = 0; i < n; ++i) {
    double* z = differences_.data() + i * n_features;
    to_doubles({store_.row(ends_[i]), store_.element_type()}, n_features, z);
    for (std::size_t f = 0; f < n_features; ++f) z[f] -= query[f];
    for (std::size_t f = 0; f < scales_.size(); ++f) z[f] *= scales_[f];
    // Of 0 alone, no bit but the sign is set; z[f] != 0.0 is no value for a register of several.
    for (std::size_t f = 0; f < n_features; ++f)
      differs[f] |= std::bit_cast<std::uint64_t>(z[f]) << 1;
  }
  leave_out_equal_features();
  measure_squares();
}

void LocalFit::measure_squares() {
  const std::size_t n = ends_.size();
  squares_.resize(n);
  least_ = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    const double* z = differences_.data() + i * D_;
    const double square = lane_dot(z, z, D_);
    squares_[i] = square >= 0.0 ? square : std::numeric_limits<double>::infinity();  // NaN is far
    least_ = std::min(least_, squares_[i]);
  }
}

void LocalFit::leave_out_equal_features() {
  const std::size_t n_features = store_.n_features();
  kept_.clear();
  for (std::uint32_t f = 0; f < n_features; ++f)
    if (differs_[f] != 0) kept_.push_back(f);
  D_ = kept_.size();
  if (D_ == n_features) return;
  double* to = differences_.data();
  for (std::size_t i = 0; i < ends_.size(); ++i)
    for (const std::uint32_t f : kept_) *to++ = differences_[i * n_features + f];
}

void LocalFit::weigh(std::uint8_t power) {
  if (weighed_ == power) return;
  weighed_ = power;
  const std::size_t n = ends_.size();
  weights_.resize(n);
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    double ratio = squares_[i] == least_ ? 1.0 : least_ / squares_[i];
    if (power == 1) ratio = std::sqrt(ratio);
    if (power == 4) ratio *= ratio;
    if (power == 0 && least_ > 0.0) ratio = 1.0;
    weights_[i] = counts_[i] * ratio;
    sum += weights_[i];
  }
  for (double& weight : weights_) weight /= sum;
}

// Everything but the penalty.
void LocalFit::prepare(std::uint8_t power) {
  if (prepared_ == power) return;
  prepared_ = power;
  const std::size_t n = ends_.size();
  roots_.resize(n);
  for (std::size_t i = 0; i < n; ++i) roots_[i] = std::sqrt(weights_[i]);
  if (in_space_of_ends())
    prepare_in_space_of_ends();
  else
    prepare_in_space_of_features();
  const std::size_t size = size_of_system();
  double trace = 0.0;
  for (std::size_t j = 0; j < size; ++j) trace += gram_[j * size + j];
  scale_ = trace / static_cast<double>(D_);
}

void LocalFit::prepare_in_space_of_features() {
  const std::size_t n = ends_.size();
  centre_.assign(D_, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    add_multiple(centre_.data(), weights_[i], differences_.data() + i * D_, D_);
  rows_.resize(n * D_);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t f = 0; f < D_; ++f)
      rows_[i * D_ + f] = roots_[i] * (differences_[i * D_ + f] - centre_[f]);
  gram_.assign(D_ * D_, 0.0);
  kernels::instruction_set().add_outer_products(rows_.data(), n, D_, gram_.data());
}

// S S' and S centre follow from the products of the examples' positions, which serve every power.
void LocalFit::prepare_in_space_of_ends() {
  const std::size_t n = ends_.size();
  if (!has_products_) {
    has_products_ = true;
    rows_.resize(D_ * n);
    constexpr std::size_t at_once = 8;  // features, as a line of the cache has them
    for (std::size_t begin = 0; begin < D_; begin += at_once)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t f = begin; f < std::min(D_, begin + at_once); ++f)
          rows_[f * n + i] = differences_[i * D_ + f];
    products_.assign(n * n, 0.0);
    kernels::instruction_set().add_outer_products(rows_.data(), D_, n, products_.data());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < i; ++j) products_[i * n + j] = products_[j * n + i];
  }
  centre_.assign(n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    add_multiple(centre_.data(), weights_[i], products_.data() + i * n, n);
  double square = 0.0;  // of the centre
  for (std::size_t i = 0; i < n; ++i) square += weights_[i] * centre_[i];
  gram_.resize(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j)
      gram_[i * n + j] =
          roots_[i] * roots_[j] * (((products_[i * n + j] - centre_[i]) - centre_[j]) + square);
  for (std::size_t i = 0; i < n; ++i) centre_[i] = roots_[i] * (centre_[i] - square);
}

// Returns false where numbers are too large or all examples lie at one place: then the mean must do.
bool LocalFit::fit_ridge(double penalty) {
  if (!(scale_ > 0.0) || !std::isfinite(scale_)) return false;
  const std::size_t n = ends_.size();
  const std::size_t size = size_of_system();
  system_ = gram_;
  for (std::size_t j = 0; j < size; ++j) system_[j * size + j] += penalty * scale_;
  if (!cholesky(system_.data(), size)) return false;
  rhs_ = centre_;
  solve(system_.data(), size, rhs_.data());
  coefficients_.resize(n);
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double part =
        in_space_of_ends() ? rhs_[i] : lane_dot(rows_.data() + i * D_, rhs_.data(), D_);
    coefficients_[i] = weights_[i] - roots_[i] * part;
    sum += coefficients_[i];
  }
  return std::isfinite(sum);
}

}  // namespace boundary_forest
