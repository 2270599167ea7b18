// Rows times directions: where many rows lie along each of a few axes (projection.hpp).
//
// Each sum goes over the features in their order, first within blocks of sum_block, then over the blocks. Sums
// stand side by side in a register, so no lane is ever added to another, and all instruction sets round alike.
//
// Like lanes.hpp, this is compiled once for each instruction set.
#pragma once

#include <algorithm>
#include <cstddef>

#include "distance/kernels/kernel.hpp"
#include "distance/kernels/registers.hpp"

namespace boundary_forest::kernels {
namespace {

// R rows and the 16 directions of one panel.
template <std::size_t R>
BF_INLINE void project_panel(const float* rows, std::size_t n_features, const float* panel,
                             float* out, std::size_t width) {
  using V = Lanes<float>::Register;
  constexpr std::size_t n_registers = Lanes<float>::n_registers;
  constexpr std::size_t lanes = Lanes<float>::per_register;
  V totals[R][n_registers] = {};
  for (std::size_t begin = 0; begin < n_features; begin += sum_block) {
    const std::size_t end = std::min(n_features, begin + sum_block);
    V sums[R][n_registers] = {};
    for (std::size_t f = begin; f < end; ++f) {
      V directions[n_registers];
      BF_UNROLL for (std::size_t j = 0; j < n_registers; ++j)
          __builtin_memcpy(&directions[j], panel + f * n_lanes + j * lanes, sizeof directions[j]);
      BF_UNROLL for (std::size_t i = 0; i < R; ++i)
          BF_UNROLL for (std::size_t j = 0; j < n_registers; ++j) sums[i][j] +=
          directions[j] * rows[i * n_features + f];
    }
    for (std::size_t i = 0; i < R; ++i)
      for (std::size_t j = 0; j < n_registers; ++j) totals[i][j] += sums[i][j];
  }
  for (std::size_t i = 0; i < R; ++i)
    for (std::size_t j = 0; j < n_registers; ++j)
      __builtin_memcpy(out + i * width + j * lanes, &totals[i][j], sizeof totals[i][j]);
}

void project(const float* rows, std::size_t n, std::size_t n_features, const float* panels,
             std::size_t n_panels, float* out) {
  // As many rows at once as have their sums in registers.
  constexpr std::size_t at_once = Lanes<float>::n_registers == 1   ? 8
                                  : Lanes<float>::n_registers == 2 ? 4
                                                                   : 2;
  const std::size_t width = n_panels * n_lanes;
  for (std::size_t p = 0; p < n_panels; ++p) {
    const float* panel = panels + p * n_features * n_lanes;
    std::size_t i = 0;
    for (; i + at_once <= n; i += at_once)
      project_panel<at_once>(rows + i * n_features, n_features, panel,
                             out + i * width + p * n_lanes, width);
    for (; i < n; ++i)
      project_panel<1>(rows + i * n_features, n_features, panel, out + i * width + p * n_lanes,
                       width);
  }
}

}  // namespace
}  // namespace boundary_forest::kernels
