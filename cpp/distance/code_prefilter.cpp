#include "distance/code_prefilter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "concurrency/thread_pool.hpp"
#include "distance/distance_cache.hpp"

namespace boundary_forest {

using kernels::code_width;

namespace {

// How sums of squares in the stored type round, where squares underflow, and from where they may
// overflow.
struct SumLimits {
  double rounding;
  double tiny;
  double farthest;
};

SumLimits limits_of_sums(ElementType stored, bool weighted) {
  constexpr SumLimits in_float32 = {0x1p-24, 0x1p-63, 1e18};
  constexpr SumLimits in_float64 = {0x1p-53, 0x1p-500, 1e150};
  switch (stored) {
    case ElementType::int8:
    case ElementType::float16:
    case ElementType::float32:
      return in_float32;
    case ElementType::uint8:  // without weights, queries that are not bytes are compared in double
      return weighted ? in_float32 : in_float64;
    case ElementType::float64:
      return in_float64;
  }
  __builtin_unreachable();
}

bool is_byte(ElementType type) { return type == ElementType::uint8 || type == ElementType::int8; }

// Rows and queries are far apart in memory; the next one is prefetched while this one is in use.
void prefetch(const std::byte* row, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

// The bit of the least of some squares, the first among equals.
std::uint64_t least_of(const std::int32_t* squares, std::uint64_t among) {
  int least = std::countr_zero(among);
  for (std::uint64_t left = among & (among - 1); left != 0; left &= left - 1) {
    const int j = std::countr_zero(left);
    if (squares[j] < squares[least]) least = j;
  }
  return std::uint64_t{1} << least;
}

}  // namespace

CodePrefilter::CodePrefilter(const Metric& d, const QueryRows& block, ElementType stored,
                             std::span<const double> scales)
    : d_(d),
      block_(block),
      kernels_(kernels::instruction_set().codes),
      plain_(d, block),
      stored_(stored),
      n_features_(block.n_features()),
      stride_((n_features_ + code_width - 1) / code_width * code_width),
      exact_(is_byte(stored) && scales.empty()),
      by_directions_(d.compares_directions()),
      codes_(block.size() * stride_),
      squares_(block.size()),
      errors_(block.size()) {
  for (std::size_t i = 0; i < block.size(); ++i)
    exact_ = exact_ && block.position(i).type == stored;
  if (by_directions_) zeros_.resize(n_features_ * sizeof(double));
  if (stored == ElementType::int8) coding_.low = -128.0;
  if (!is_byte(stored) || !scales.empty()) choose_coding(scales);

  bound_sums(!scales.empty());
  std::vector<std::uint8_t> codes(stride_);
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Position& query = block.position(i);
    double squared_length = 1.0;
    if (by_directions_) squared_lengths(query.type, &query.data, 1, &squared_length);
    errors_[i] = encode(query, squared_length, codes.data()) + tiny_;
    std::int32_t square = 0;
    for (std::size_t f = 0; f < n_features_; ++f) {
      square += std::int32_t{codes[f]} * std::int32_t{codes[f]};
      codes_[i * stride_ + f] = static_cast<std::int8_t>(codes[f] - 128);
    }
    squares_[i] = square;
  }
}

CodePrefilter::CodePrefilter(const Metric& d, const QueryRows& block, ElementType stored,
                             std::shared_ptr<const RowSketches> sketches, std::size_t n_threads)
    : d_(d),
      block_(block),
      sketches_(std::move(sketches)),
      kernels_(kernels::instruction_set().codes),
      plain_(d, block),
      stored_(stored),
      n_features_(block.n_features()),
      stride_(sizeof(Sketch)),
      exact_(false),
      by_directions_(false),
      codes_(block.size() * stride_),
      squares_(block.size()),
      errors_(block.size()) {
  coding_.step = sketches_->coder().step();
  bound_sums(false);
  sketch_block(n_threads);
}

// How the distances that the metric sums may differ from the true ones: a sum of D / 16 terms and four more
// additions, each term rounded up to five times before it.
void CodePrefilter::bound_sums(bool weighted) {
  const SumLimits sums = limits_of_sums(stored_, weighted);
  const auto D = static_cast<double>(n_features_);
  slack_ = static_cast<float>(1.0 + 2.0 * (D / 16 + 8) * sums.rounding + 1e-5);
  tiny_ = static_cast<float>(std::sqrt(D) * sums.tiny / coding_.step);
  const double of_sum = 2.0 * (D / 16 + 8) * sums.rounding + 1e-12;  // relative, generously
  uncertain_ = 2.0 * of_sum;
  direction_error_ = static_cast<float>(of_sum / coding_.step +
                                        std::sqrt(D) * (std::abs(coding_.low) + 256.0) * 0x1p-22);
  farthest_ = static_cast<float>(std::min(sums.farthest / coding_.step, 1e37));
}

// |row|^2, with errors as the metric's sums have them.
void CodePrefilter::squared_lengths(ElementType type, const std::byte* const* rows, std::size_t n,
                                    double* out) const {
  const auto kernel = kernels::instruction_set().table(kernels::Formula::euclidean, type, type);
  kernel(zeros_.data(), rows, n, n_features_, {}, out);
}

// Of the row divided by its length, if directions are compared. The length is rounded, so that codes are of a row
// that is longer or shorter by a tiny part of itself; so is step times length, which is no power of two.
float CodePrefilter::encode(const Position& row, double squared_length, std::uint8_t* codes) const {
  if (!by_directions_) return kernels_.encode(row.data, row.type, n_features_, coding_, codes);
  const bool has_direction = squared_length >= 1e-25 && squared_length <= 1e30;
  kernels::Coding coding = coding_;
  if (has_direction) coding.step *= std::sqrt(squared_length);
  const float error = kernels_.encode(row.data, row.type, n_features_, coding, codes);
  return has_direction ? error + direction_error_ : std::numeric_limits<float>::infinity();
}

// The Euclidean distance, in steps, of the farthest row that may be at this reduced distance.
double CodePrefilter::longest_to_matter(double bound) const {
  return std::sqrt(by_directions_ ? 2.0 * (bound + uncertain_) : bound) / coding_.step;
}

// The codes of the block's rows: those of stored rows are there already.
void CodePrefilter::sketch_block(std::size_t n_threads) {
  constexpr std::size_t at_once = 32;
  const bool is_stored = block_.slot(0) != nothing;
  parallel_for((block_.size() + at_once - 1) / at_once, n_threads, [&](std::size_t task) {
    const std::size_t begin = task * at_once;
    const std::size_t n = std::min(at_once, block_.size() - begin);
    Sketch own[at_once];
    Sketch* out[at_once];
    for (std::size_t i = 0; i < n; ++i) out[i] = own + i;
    if (!is_stored) sketches_->coder().encode(&block_.position(begin), n, out);
    for (std::size_t i = 0; i < n; ++i) {
      const Sketch& sketch = is_stored ? (*sketches_)[block_.slot(begin + i)] : own[i];
      std::int32_t sum = 0;
      std::int8_t* codes = codes_.data() + (begin + i) * stride_;
      for (std::size_t c = 0; c < Sketch::n_codes; ++c) {
        sum += sketch.codes[c];
        codes[c] =
            static_cast<std::int8_t>(sketch.codes[c] - 128);  // no row has codes where none are
      }
      squares_[begin + i] = sketch.term + 256 * sum;
      errors_[begin + i] = sketch.error + tiny_;
    }
  });
}

// Coarse steps reach over all values, fine ones round less; outliers are often better cut off. The
// step is chosen that keeps the most of the distances between a few rows of the block. With weights
// they are scaled and centred first, as features may lie anywhere.
void CodePrefilter::choose_coding(std::span<const double> scales) {
  const std::size_t n = std::min(block_.size(), std::size_t{24});
  std::vector<double> rows(n * n_features_);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = rows.data() + i * n_features_;
    to_doubles(block_.position(i * block_.size() / n), n_features_, row);
    if (!by_directions_) continue;
    const double length = std::sqrt(std::inner_product(row, row + n_features_, row, 0.0));
    for (std::size_t f = 0; f < n_features_ && length > 0.0; ++f) row[f] /= length;
  }
  for (std::size_t i = 0; i < rows.size() && !scales.empty(); ++i)
    rows[i] *= scales[i % n_features_];
  // Values beyond this are coded like those at it, and must not spoil the step for the other rows:
  // with it, low, 1 / step and the codes' limits are floats.
  constexpr double farthest_coded = 0x1p80;
  for (double& x : rows) x = std::clamp(x, -farthest_coded, farthest_coded);
  std::vector<double> centres(n_features_, 0.0);
  for (std::size_t f = 0; f < n_features_ && !scales.empty(); ++f) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = rows[i * n_features_ + f];
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(values.begin(), middle, values.end());
    centres[f] = *middle;
    for (std::size_t i = 0; i < n; ++i) rows[i * n_features_ + f] -= centres[f];
  }
  const auto [least, greatest] = std::minmax_element(rows.begin(), rows.end());
  double mean = 0.0;
  for (const double x : rows) mean += x / static_cast<double>(rows.size());

  // So that low stays below 2^22.
  const double largest = std::max(std::abs(*least), std::abs(*greatest));
  const double finest = std::max(largest * 0x1p-21, 0x1p-60);
  int exponent = 0;
  std::frexp(std::clamp(*greatest / 255.0 - *least / 255.0, finest, 0x1p60), &exponent);
  const double widest = std::ldexp(1.0, exponent);

  kernels::Coding best{widest, std::floor(*least / widest)};
  double most_kept = -1.0;
  std::vector<std::uint8_t> codes(2 * n_features_);
  for (double step = widest; step >= finest && step >= widest / 256; step /= 2) {
    const double first = std::floor(*least / step);
    const kernels::Coding coding{
        step, step == widest ? first : std::max(first, std::round(mean / step) - 128.0)};
    double kept = 0.0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      float errors = 0.0F;
      for (std::size_t j = 0; j < 2; ++j)
        errors += kernels_.encode(
            reinterpret_cast<const std::byte*>(rows.data() + (i + j) * n_features_),
            ElementType::float64, n_features_, coding, codes.data() + j * n_features_);
      double apart = 0.0;
      double coded_apart = 0.0;
      for (std::size_t f = 0; f < n_features_; ++f) {
        const double x = rows[i * n_features_ + f] / step - rows[(i + 1) * n_features_ + f] / step;
        const double c = codes[f] - codes[n_features_ + f];
        apart += x * x;
        coded_apart += c * c;
      }
      if (apart > 0.0) kept += std::max(0.0, std::sqrt(coded_apart) - errors) / std::sqrt(apart);
    }
    if (kept <= most_kept) continue;
    most_kept = kept;
    best = coding;
  }
  coding_ = best;
  if (scales.empty()) return;
  feature_scales_.resize(n_features_);
  feature_lows_.resize(n_features_);
  for (std::size_t f = 0; f < n_features_; ++f) {
    const double low = centres[f] / best.step + best.low;
    if (!(std::abs(low) < 0x1p30)) continue;  // x * scale would be too coarse: codes leave it out
    feature_scales_[f] = scales[f] / best.step;
    feature_lows_[f] = low;
  }
  coding_.scales = feature_scales_.data();
  coding_.lows = feature_lows_.data();
}

std::size_t CodePrefilter::filter(std::span<const std::uint32_t> queries, const Rows& rows,
                                  std::span<double> bounds, Workspace& workspace,
                                  std::span<std::uint64_t> closest) const {
  const std::size_t m = queries.size();
  const std::size_t row_bytes = n_features_ * size_of(stored_);
  if (!exact_ && !sketches_ && (m < worth_coding || rows.size() * row_bytes < worth_coding_bytes))
    return plain_.filter(queries, rows, bounds, workspace, closest);

  std::int32_t terms[most_rows];
  float errors[most_rows];
  workspace.rows.resize(most_rows * stride_ + code_width);
  void* aligned = workspace.rows.data();
  std::size_t room = workspace.rows.size();
  std::align(code_width, most_rows * stride_, aligned, room);
  const kernels::CodedRows coded{static_cast<std::uint8_t*>(aligned), terms, rows.size(), stride_};
  code_rows(rows, coded, errors);

  constexpr std::size_t at_once = 16;
  kernels::CodedQuery coded_queries[at_once];
  std::int32_t squares[at_once * most_rows];
  std::uint64_t closest_codes[at_once];
  std::size_t evaluations = 0;
  for (std::size_t begin = 0; begin < m; begin += at_once) {
    const std::size_t count = std::min(at_once, m - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t query = queries[begin + i];
      coded_queries[i] = {codes_.data() + query * stride_, squares_[query]};
    }
    kernels_.compare(coded_queries, count, coded, squares, closest_codes);
    if (exact_) evaluations += count * rows.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = begin + i;
      const std::int32_t* of_query = squares + i * most_rows;
      double& bound = bounds[number];
      closest[number] = 0;
      if (!exact_) {
        if (number + 1 < m) prefetch(block_.position(queries[number + 1]).data, row_bytes);
        if (i + 1 < count) prefetch(rows.data[std::countr_zero(closest_codes[i + 1])], row_bytes);
        evaluations += consider_possible(rows, queries[number], of_query, closest_codes[i], errors,
                                         workspace.known, bound, closest[number]);
        continue;
      }
      const double reduced = of_query[std::countr_zero(closest_codes[i])];
      if (stored_ == ElementType::int8 && reduced >= 0x1p24) {
        // From there on float32 has not every whole number, and rows of int8 are compared as float32.
        if (bound >= 0x1p24)
          consider_rows(rows, queries[number], ~std::uint64_t{0} >> (most_rows - rows.size()),
                        nullptr, bound, closest[number]);
        continue;
      }
      if (reduced > bound) continue;
      bound = reduced;
      closest[number] = closest_codes[i];
    }
  }
  return evaluations;
}

void CodePrefilter::code_rows(const Rows& rows, const kernels::CodedRows& coded,
                              float* errors) const {
  const std::size_t row_bytes = n_features_ * size_of(stored_);
  double lengths[most_rows];  // squared
  if (by_directions_) squared_lengths(stored_, rows.data.data(), rows.size(), lengths);
  for (std::size_t j = 0; j < rows.size(); ++j) {
    std::uint8_t* codes = coded.codes + j * stride_;
    if (sketches_) {
      // With what stands behind the codes: queries have zeros there.
      const Sketch& sketch = (*sketches_)[rows.slots[j]];
      std::memcpy(codes, &sketch, sizeof sketch);
      coded.terms[j] = sketch.term;
      errors[j] = sketch.error;
      continue;
    }
    if (j + 1 < rows.size()) prefetch(rows.data[j + 1], row_bytes);
    errors[j] = encode({rows.data[j], stored_}, by_directions_ ? lengths[j] : 1.0, codes);
    std::fill(codes + n_features_, codes + stride_, std::uint8_t{0});
    coded.terms[j] = kernels_.row_term(codes, stride_);
  }
}

// The rows of a mask, by their distances; returns how many they are.
std::size_t CodePrefilter::consider_rows(const Rows& rows, std::uint32_t query, std::uint64_t mask,
                                         DistanceCache* known, double& bound,
                                         std::uint64_t& closest) const {
  std::uint32_t numbers[most_rows];
  const std::byte* left[most_rows];
  double reduced[most_rows];
  std::uint32_t n = 0;
  for (; mask != 0; mask &= mask - 1, ++n) {
    numbers[n] = static_cast<std::uint32_t>(std::countr_zero(mask));
    left[n] = rows.data[numbers[n]];
  }
  if (n > 0) d_.distances(block_.position(query), left, n, reduced);
  for (std::uint32_t j = 0; j < n; ++j) {
    consider(numbers[j], reduced[j], bound, closest);
    if (known != nullptr) known->put(rows.slots[numbers[j]], reduced[j]);
  }
  return n;
}

// The rows that may be closer than the bound, a few at a time, by their codes; returns how many distances that took.
std::size_t CodePrefilter::consider_possible(const Rows& rows, std::uint32_t query,
                                             const std::int32_t* squares,
                                             std::uint64_t closest_codes, const float* errors,
                                             DistanceCache* known, double& bound,
                                             std::uint64_t& closest) const {
  const auto possible = [&] {
    const double reach = longest_to_matter(bound);
    if (!(reach <= farthest_)) return ~std::uint64_t{0} >> (most_rows - rows.size());
    return kernels_.within(squares, rows.size(),
                           static_cast<float>(reach) * slack_ + errors_[query], errors);
  };
  if (!sketches_) {
    // Codes of all features leave so few beside the closest that their order is not worth finding.
    const std::uint64_t first = closest_codes & -closest_codes;
    const std::size_t n_first = consider_rows(rows, query, first, nullptr, bound, closest);
    return n_first + consider_rows(rows, query, possible() & ~first, nullptr, bound, closest);
  }
  std::uint64_t others = possible();
  if (known != nullptr) {
    const double before = bound;
    for (std::uint64_t left = others; left != 0; left &= left - 1) {
      const auto j = static_cast<std::uint32_t>(std::countr_zero(left));
      double reduced = 0.0;
      if (!known->find(rows.slots[j], reduced)) continue;
      consider(j, reduced, bound, closest);
      others &= ~(std::uint64_t{1} << j);
    }
    if (bound < before) others &= possible();
  }
  std::size_t n = 0;
  std::size_t at_once = 1;  // then as many as the kernels of distances have at once
  for (; others != 0; at_once = 4) {
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < at_once && (others & ~next) != 0; ++i)
      next |= least_of(squares, others & ~next);
    const double before = bound;
    n += consider_rows(rows, query, next, known, bound, closest);
    others &= ~next;
    if (others != 0 && bound < before) others &= possible();
    // The beginnings: the processor sees then what is read.
    for (std::uint64_t left = others; left != 0; left &= left - 1)
      prefetch(rows.data[static_cast<std::size_t>(std::countr_zero(left))], 2 * cache_line);
  }
  return n;
}

}  // namespace boundary_forest
