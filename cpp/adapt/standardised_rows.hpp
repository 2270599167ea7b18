// The rows that weights are learned from, as float32, and their distances to others.
//
// They are kept by columns, in tiles, so that one row's distances to a tile are computed side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "distance/kernels/kernel.hpp"

namespace boundary_forest {

class StandardisedRows {
 public:
  static constexpr std::size_t tile = 32;  // rows

  explicit StandardisedRows(std::size_t n_features) : D_(n_features) {}

  std::size_t size() const { return n_; }

  void add(std::span<const float> row) {
    if (n_ % tile == 0) values_.resize(values_.size() + tile * D_, 0.0F);
    float* first = values_.data() + n_ / tile * tile * D_ + n_ % tile;
    for (std::size_t f = 0; f < D_; ++f) first[f * tile] = row[f];
    ++n_;
  }

  // The same rows, each feature times a scale.
  StandardisedRows scaled(std::span<const float> scales) const {
    StandardisedRows out = *this;
    float* column = out.values_.data();
    for (std::size_t begin = 0; begin < n_; begin += tile)
      for (std::size_t f = 0; f < D_; ++f, column += tile)
        for (std::size_t j = 0; j < tile; ++j) column[j] *= scales[f];
    return out;
  }

  // sums[j] becomes the squared distance from x to row begin + j, where `begin` begins a tile.
  // Returns, as bit j, whether it is not above `bound`.
  std::uint64_t compare(const float* x, std::size_t begin, float bound, float* sums) const {
    const std::uint64_t near = kernels::instruction_set().columns.compare(
        x, {values_.data() + begin * D_, tile, D_}, bound, sums);
    return n_ - begin < tile ? near & ((std::uint64_t{1} << (n_ - begin)) - 1) : near;
  }

 private:
  std::size_t D_;
  std::size_t n_ = 0;
  std::vector<float> values_;
};

}  // namespace boundary_forest
