// The rows that weights are learned from, as float32, and their weighted distances to others.
//
// If they are short, rows are kept by columns, in tiles, so that one row's distances to a tile are
// computed side by side; the sums are those of the metric, lane for lane. Long ones go to the metric.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "boundary_forest/metric.hpp"

namespace boundary_forest {

class StandardisedRows {
 public:
  static constexpr std::size_t tile = 64;  // rows

  explicit StandardisedRows(std::size_t n_features) : D_(n_features) {}

  std::size_t size() const { return n_; }

  void add(std::span<const float> row) {
    if (!is_tiled()) {
      values_.insert(values_.end(), row.begin(), row.end());
    } else {
      if (n_ % tile == 0) values_.resize(values_.size() + tile * D_, 0.0F);
      float* first = values_.data() + n_ / tile * tile * D_ + n_ % tile;
      for (std::size_t f = 0; f < D_; ++f) first[f * tile] = row[f];
    }
    ++n_;
  }

  // Distances by some weights. The rows must not change meanwhile.
  class Weighted {
   public:
    Weighted(const StandardisedRows& rows, std::span<const double> weights) : all_(rows) {
      for (const double weight : weights) scales_.push_back(static_cast<float>(std::sqrt(weight)));
      if (rows.is_tiled()) return;
      metric_ = make_weighted_metric(weights, ElementType::float32);
      for (std::size_t i = 0; i < rows.n_; ++i)
        pointers_.push_back(reinterpret_cast<const std::byte*>(rows.values_.data() + i * rows.D_));
    }

    // Sums of ((x - y) scale)^2 for the rows y from `begin` on, which begins a tile; returns how many.
    std::size_t distances(const float* x, std::size_t begin, double* sums) const {
      const std::size_t n = std::min(tile, all_.n_ - begin);
      if (metric_)
        metric_->distances({reinterpret_cast<const std::byte*>(x), ElementType::float32},
                           pointers_.data() + begin, n, sums);
      else
        all_.sum_tile(x, scales_, begin, sums);
      return n;
    }

   private:
    const StandardisedRows& all_;
    std::vector<float> scales_;
    std::unique_ptr<Metric> metric_;
    std::vector<const std::byte*> pointers_;
  };

 private:
  static constexpr std::size_t n_lanes = 16;

  bool is_tiled() const { return D_ <= 2 * n_lanes; }

  void sum_tile(const float* x, std::span<const float> scales, std::size_t begin,
                double* sums) const {
    float lanes[n_lanes][tile];  // those that have features
    const float* column = values_.data() + begin * D_;
    for (std::size_t f = 0; f < D_; ++f, column += tile) {
      float* lane = lanes[f % n_lanes];
      const float x_f = x[f];
      const float scale = scales[f];
      if (f < n_lanes) std::fill_n(lane, tile, 0.0F);
      for (std::size_t j = 0; j < tile; ++j) {
        const float part = (x_f - column[j]) * scale;
        lane[j] += part * part;
      }
    }
    for (std::size_t half = n_lanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half && l + half < D_; ++l)  // the others are zero
        for (std::size_t j = 0; j < tile; ++j) lanes[l][j] += lanes[l + half][j];
    std::copy_n(lanes[0], tile, sums);
  }

  std::size_t D_;
  std::size_t n_ = 0;
  std::vector<float> values_;
};

}  // namespace boundary_forest
