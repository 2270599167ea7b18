// Rows of float32 by columns, in tiles, so that one row's distances to a tile are computed side by side.
// The sums are those of the weighted Euclidean kernel (kernels/lanes.hpp), lane for lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace boundary_forest {

class StandardisedRows {
 public:
  static constexpr std::size_t tile = 64;  // rows

  explicit StandardisedRows(std::size_t n_features) : D_(n_features) {}

  std::size_t size() const { return n_; }

  void add(std::span<const float> row) {
    if (n_ % tile == 0) values_.resize(values_.size() + tile * D_, 0.0F);
    float* first = values_.data() + n_ / tile * tile * D_ + n_ % tile;
    for (std::size_t f = 0; f < D_; ++f) first[f * tile] = row[f];
    ++n_;
  }

  // Sums of ((x - y) scale)^2 for the rows y of the tile that begins with row `begin`.
  void distances(const float* x, std::span<const float> scales, std::size_t begin,
                 float* sums) const {
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

 private:
  static constexpr std::size_t n_lanes = 16;

  std::size_t D_;
  std::size_t n_ = 0;
  std::vector<float> values_;
};

}  // namespace boundary_forest
