// Labels estimated by the labels of the nearest rows, and how the error depends on the distances: what
// weights are learned by (weight_learning.cpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "adapt/standardised_rows.hpp"
#include "base/types.hpp"
#include "concurrency/thread_pool.hpp"

namespace boundary_forest {

inline constexpr std::size_t n_near = 10;  // neighbours that estimate a label

// The nearest rows of a query, by (distance, arrival). Squares are not negative, so that the bits of a
// float32 are ordered as it is: both together are one number.
class Nearby {
 public:
  Nearby() { std::fill_n(keys_, n_near, key(std::numeric_limits<float>::infinity(), nothing)); }

  float reduced(std::size_t j) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(keys_[j] >> 32));
  }
  std::uint32_t row(std::size_t j) const { return static_cast<std::uint32_t>(keys_[j]); }
  float farthest() const { return reduced(n_near - 1); }

  void consider(float reduced, std::uint32_t row) {
    const std::uint64_t candidate = key(reduced, row);
    if (candidate >= keys_[n_near - 1]) return;
    std::size_t place = n_near - 1;
    for (; place > 0 && candidate < keys_[place - 1]; --place) keys_[place] = keys_[place - 1];
    keys_[place] = candidate;
  }

 private:
  static std::uint64_t key(float reduced, std::uint32_t row) {
    return std::uint64_t{std::bit_cast<std::uint32_t>(reduced)} << 32 | row;
  }

  std::uint64_t keys_[n_near];
};

// A row to be estimated, which is not its own neighbour if it is among the rows.
struct Estimated {
  const float* x;
  std::uint32_t row = nothing;
};

// The rows nearest to each query, by weighted distances. Some queries go together, so that rows stay in
// cache meanwhile.
inline std::vector<Nearby> nearest_rows(std::span<const double> weights,
                                        std::span<const Estimated> queries,
                                        const StandardisedRows& rows, std::size_t n_threads) {
  constexpr std::size_t together = 10;
  constexpr std::size_t tile = StandardisedRows::tile;
  std::vector<float> scales;
  for (const double weight : weights) scales.push_back(static_cast<float>(std::sqrt(weight)));
  const StandardisedRows weighted = rows.scaled(scales);
  std::vector<float> x;
  for (const Estimated& query : queries)
    for (std::size_t f = 0; f < scales.size(); ++f) x.push_back(query.x[f] * scales[f]);
  std::vector<Nearby> near(queries.size());
  parallel_for((queries.size() + together - 1) / together, n_threads, [&](std::size_t part) {
    const std::size_t end = std::min((part + 1) * together, queries.size());
    float reduced[tile];
    for (std::size_t begin = 0; begin < rows.size(); begin += tile) {
      for (std::size_t i = part * together; i < end; ++i) {
        std::uint64_t left =
            weighted.compare(x.data() + i * scales.size(), begin, near[i].farthest(), reduced);
        for (; left != 0; left &= left - 1) {
          const auto j = static_cast<std::uint32_t>(std::countr_zero(left));
          const auto row = static_cast<std::uint32_t>(begin) + j;
          if (row != queries[i].row) near[i].consider(reduced[j], row);
        }
      }
    }
  });
  return near;
}

// The labels of the rows that are learned from, and estimates of others by them.
class LabelEstimates {
 public:
  LabelEstimates(const Params& params, std::span<const double* const> labels)
      : classes_(params.estimator == Estimator::shepard_vote),
        length_(params.label_length),
        exponent_(length_, 0),
        mean_(length_, 0.0),
        scale_(length_, 0.0) {
    if (!classes_) standardise(labels);
    for (const double* label : labels)
      for (std::size_t c = 0; c < length_; ++c) known_.push_back(seen(label, c));
  }

  // The squared error of the kernel estimate of `label`. With `pulls`, pulls[j] becomes by how much
  // less the error is for less weight on the distance to neighbour j.
  double error(const Nearby& near, const double* label, double* pulls) const {
    double shares[n_near];
    double steepness[n_near];
    weigh(near, shares, steepness);
    double error = 0.0;
    double together = 0.0;  // the sum of wrong * estimate over the classes
    double wrong[n_near];   // by neighbour: of its class
    if (classes_) {
      error = class_errors(near, shares, label, wrong, together);
    } else {
      std::fill_n(wrong, n_near, 0.0);
      for (std::size_t c = 0; c < length_; ++c) {
        double estimate = 0.0;
        for (std::size_t j = 0; j < n_near; ++j) estimate += shares[j] * of(near, j, c);
        const double difference = estimate - seen(label, c);
        error += difference * difference;
        together += difference * estimate;
        for (std::size_t j = 0; j < n_near; ++j) wrong[j] += difference * of(near, j, c);
      }
    }
    if (pulls != nullptr)
      for (std::size_t j = 0; j < n_near; ++j)
        pulls[j] = (wrong[j] - together) * shares[j] * steepness[j];
    return error;
  }

 private:
  // Of any size, and still with a variance that a double holds.
  double moderate(const double* label, std::size_t c) const {
    return std::ldexp(label[c], -exponent_[c]);
  }
  double seen(const double* label, std::size_t c) const {
    return classes_ ? label[c] : (moderate(label, c) - mean_[c]) * scale_[c];
  }

  void standardise(std::span<const double* const> labels) {
    const auto for_each = [&](auto&& f) {
      for (const double* label : labels)
        for (std::size_t c = 0; c < length_; ++c) f(label, c);
    };
    std::vector<double> largest(length_, 0.0);
    for_each([&](const double* label, std::size_t c) {
      largest[c] = std::max(largest[c], std::fabs(label[c]));
    });
    for (std::size_t c = 0; c < length_; ++c) std::frexp(largest[c], &exponent_[c]);
    const auto n = static_cast<double>(labels.size());
    for_each([&](const double* label, std::size_t c) { mean_[c] += moderate(label, c); });
    for (double& mean : mean_) mean /= n;
    for_each([&](const double* label, std::size_t c) {
      const double apart = moderate(label, c) - mean_[c];
      scale_[c] += apart * apart;
    });
    for (double& scale : scale_) scale = scale > 0.0 ? 1.0 / std::sqrt(scale / n) : 0.0;
  }
  double of(const Nearby& near, std::size_t j, std::size_t c) const {
    return known_[near.row(j) * length_ + c];
  }

  // The kernel's shares, and how steeply it falls at each neighbour. If h is 0, the neighbours at
  // distance 0 alone count.
  static void weigh(const Nearby& near, double* shares, double* steepness) {
    const double h = near.reduced((n_near - 1) / 2);
    double sum = 0.0;
    for (std::size_t j = 0; j < n_near; ++j) {
      const double reduced = near.reduced(j);
      const double q = reduced == h ? 2.0 : 1.0 + reduced / h;
      shares[j] = h == 0.0 ? static_cast<double>(reduced == 0.0) : 1.0 / (q * q);
      steepness[j] = h == 0.0 || std::isinf(reduced) ? 0.0 : 2.0 / (h * q);
      sum += shares[j];
    }
    for (std::size_t j = 0; j < n_near; ++j) shares[j] /= sum;
  }

  double class_errors(const Nearby& near, const double* shares, const double* label, double* wrong,
                      double& together) const {
    std::size_t n_classes = 0;
    double codes[n_near];  // in order of appearance
    double estimates[n_near];
    std::size_t place[n_near];
    for (std::size_t j = 0; j < n_near; ++j) {
      const double code = of(near, j, 0);
      place[j] = static_cast<std::size_t>(std::find(codes, codes + n_classes, code) - codes);
      if (place[j] == n_classes) {
        codes[n_classes] = code;
        estimates[n_classes++] = 0.0;
      }
      estimates[place[j]] += shares[j];
    }
    double error = std::find(codes, codes + n_classes, *label) == codes + n_classes ? 1.0 : 0.0;
    double differences[n_near];
    for (std::size_t c = 0; c < n_classes; ++c) {
      differences[c] = estimates[c] - (codes[c] == *label ? 1.0 : 0.0);
      error += differences[c] * differences[c];
      together += differences[c] * estimates[c];
    }
    for (std::size_t j = 0; j < n_near; ++j) wrong[j] = differences[place[j]];
    return error;
  }

  bool classes_;
  std::size_t length_;
  std::vector<int> exponent_;  // of the largest number of each output
  std::vector<double> mean_;
  std::vector<double> scale_;
  std::vector<double> known_;
};

}  // namespace boundary_forest
