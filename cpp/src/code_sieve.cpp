#include "code_sieve.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace boundary_forest {

using kernels::code_width;

CodeSieve::CodeSieve(const Metric& d, const QueryRows& block, ElementType stored)
    : d_(d),
      block_(block),
      kernels_(kernels::instruction_set().codes),
      plain_(d, block),
      stored_(stored),
      n_features_(block.n_features()),
      stride_((n_features_ + code_width - 1) / code_width * code_width),
      exact_(stored == ElementType::uint8),
      codes_(block.size() * stride_),
      squares_(block.size()),
      errors_(block.size()) {
  for (std::size_t i = 0; i < block.size(); ++i)
    exact_ = exact_ && block.position(i).type == stored;
  if (stored != ElementType::uint8) coding_ = choose_coding();

  // A sum of D / 16 terms and four more additions, each term rounded three times before it.
  const bool single = stored == ElementType::float32;
  const double rounding = single ? 0x1p-24 : 0x1p-53;
  const auto D = static_cast<double>(n_features_);
  slack_ = static_cast<float>(1.0 + 2.0 * (D / 16 + 8) * rounding + 1e-5);
  tiny_ = static_cast<float>(std::sqrt(D) * (single ? 0x1p-63 : 0x1p-500) / coding_.step);
  farthest_ = static_cast<float>(std::min((single ? 1e18 : 1e150) / coding_.step, 1e37));

  std::vector<std::uint8_t> codes(stride_);
  for (std::size_t i = 0; i < block.size(); ++i) {
    errors_[i] = encode(i, codes.data()) + tiny_;
    std::int32_t square = 0;
    for (std::size_t f = 0; f < n_features_; ++f) {
      square += std::int32_t{codes[f]} * std::int32_t{codes[f]};
      codes_[i * stride_ + f] = static_cast<std::int8_t>(codes[f] - 128);
    }
    squares_[i] = square;
  }
}

float CodeSieve::encode(std::size_t query, std::uint8_t* codes) const {
  const Position& position = block_.position(query);
  return kernels_.encode(position.data, position.type, n_features_, coding_, codes);
}

// The step that leaves the least error in the middle one of a few rows. Wide enough for all values
// is often too wide: a few outliers, which then keep an error of their own, are better cut off.
kernels::Coding CodeSieve::choose_coding() const {
  constexpr std::size_t few = 32;
  const std::size_t n = std::min(block_.size(), few);
  std::vector<std::size_t> sample(n);
  for (std::size_t i = 0; i < n; ++i) sample[i] = i * block_.size() / n;
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  double sum = 0.0;
  std::vector<double> x(n_features_);
  for (const std::size_t i : sample) {
    to_doubles(block_.position(i), n_features_, x.data());
    for (const double value : x) {
      least = std::min(least, value);
      greatest = std::max(greatest, value);
      sum += value / static_cast<double>(n * n_features_);
    }
  }
  const double largest = std::max(std::abs(least), std::abs(greatest));
  const double width = std::max(greatest - least, 0x1p-60);
  // So that low stays below 2^22 and 1 / step a float.
  const double finest = std::max(largest * 0x1p-21, 0x1p-60);
  int exponent = 0;
  std::frexp(std::min(std::max(width / 255.0, finest), 0x1p60), &exponent);
  const double widest = std::ldexp(1.0, exponent);
  kernels::Coding best{widest, std::floor(least / widest)};
  double best_error = std::numeric_limits<double>::infinity();
  std::vector<std::uint8_t> codes(stride_);
  std::vector<double> errors(n);
  for (double step = widest; step >= finest && step >= widest / 64; step /= 2) {
    const double low = step == widest
                           ? best.low
                           : std::max(std::round(sum / step) - 128.0, std::floor(least / step));
    const kernels::Coding coding{step, low};
    for (std::size_t j = 0; j < n; ++j) {
      const Position& position = block_.position(sample[j]);
      errors[j] =
          step * kernels_.encode(position.data, position.type, n_features_, coding, codes.data());
    }
    std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(n / 2),
                     errors.end());
    if (errors[n / 2] >= best_error) continue;
    best_error = errors[n / 2];
    best = coding;
  }
  return best;
}

std::size_t CodeSieve::sift(std::span<const std::uint32_t> queries,
                            std::span<const std::byte* const> rows, std::span<double> bounds,
                            Workspace& workspace, std::vector<Candidate>& found) const {
  const std::size_t m = queries.size();
  const std::size_t n = rows.size();
  if (!exact_ && m < worth_coding) return plain_.sift(queries, rows, bounds, workspace, found);

  std::int32_t terms[most_rows];
  float errors[most_rows];
  const std::size_t room = most_rows * stride_ + code_width;
  if (workspace.rows.size() < room) workspace.rows.resize(room);
  auto address = reinterpret_cast<std::uintptr_t>(workspace.rows.data());
  address = (address + code_width - 1) / code_width * code_width;
  const kernels::CodedRows coded{reinterpret_cast<std::uint8_t*>(address), terms, errors, n,
                                 stride_};
  const std::size_t row_bytes = n_features_ * size_of(stored_);
  for (std::size_t j = 0; j < n; ++j) {
    if (j + 1 < n)
      for (std::size_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(rows[j + 1] + at);
    std::uint8_t* codes = coded.codes + j * stride_;
    errors[j] = kernels_.encode(rows[j], stored_, n_features_, coding_, codes);
    std::fill(codes + n_features_, codes + stride_, std::uint8_t{0});
    terms[j] = kernels_.row_term(codes, stride_);
  }

  constexpr std::size_t at_once = 64;
  kernels::CodedQuery coded_queries[at_once];
  std::uint64_t masks[at_once];
  std::int32_t least[at_once];
  std::size_t evaluations = 0;
  for (std::size_t begin = 0; begin < m; begin += at_once) {
    const std::size_t count = std::min(at_once, m - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t query = queries[begin + i];
      coded_queries[i] = {codes_.data() + query * stride_, squares_[query], errors_[query],
                          static_cast<float>(std::sqrt(bounds[begin + i]) / coding_.step)};
    }
    if (exact_) {
      kernels_.closest(coded_queries, count, coded, masks, least);
      for (std::size_t i = 0; i < count; ++i) {
        const double reduced = least[i];
        if (reduced > bounds[begin + i]) continue;
        bounds[begin + i] = reduced;
        for (std::uint64_t mask = masks[i]; mask != 0; mask &= mask - 1)
          found.push_back({static_cast<std::uint32_t>(begin + i),
                           static_cast<std::uint32_t>(std::countr_zero(mask)), reduced});
      }
      evaluations += count * n;
    } else {
      kernels_.possible(coded_queries, count, coded, slack_, farthest_, masks);
      for (std::size_t i = 0; i < count; ++i) {
        const std::byte* left[most_rows];
        std::uint32_t numbers[most_rows];
        double reduced[most_rows];
        std::uint32_t n_left = 0;
        for (std::uint64_t mask = masks[i]; mask != 0; mask &= mask - 1) {
          numbers[n_left] = static_cast<std::uint32_t>(std::countr_zero(mask));
          left[n_left] = rows[numbers[n_left]];
          ++n_left;
        }
        if (n_left == 0) continue;
        d_.distances(block_.position(queries[begin + i]), left, n_left, reduced);
        evaluations += n_left;
        for (std::uint32_t j = 0; j < n_left; ++j) {
          if (reduced[j] > bounds[begin + i]) continue;
          bounds[begin + i] = reduced[j];
          found.push_back({static_cast<std::uint32_t>(begin + i), numbers[j], reduced[j]});
        }
      }
    }
  }
  return evaluations;
}

}  // namespace boundary_forest
