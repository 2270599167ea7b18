// Distances from one row to a tile of others that are kept by columns, side by side.
//
// The sums are those of lanes.hpp, lane for lane: lane l adds features l, l + 16, ... in order, then
// 16 -> 8 -> 4 -> 2 -> 1. See lanes.hpp for why all is in an unnamed namespace.
#pragma once

#include "lanes.hpp"

namespace boundary_forest::kernels {
namespace {

using Floats = Lanes<float>::Register;

// Bit j: !(sums[j] > bound).
BF_INLINE std::uint32_t not_above(const Floats& sums, float bound) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)sums, _mm512_set1_ps(bound), _CMP_NGT_UQ);
#elif defined(__AVX2__)
  return static_cast<std::uint32_t>(
      _mm256_movemask_ps(_mm256_cmp_ps((__m256)sums, _mm256_set1_ps(bound), _CMP_NGT_UQ)));
#else
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < Lanes<float>::per_register; ++j)
    bits |= std::uint32_t{!(sums[j] > bound)} << j;
  return bits;
#endif
}

std::uint32_t compare_tile(const float* x, const float* columns, std::size_t n, float bound,
                           float* sums) {
  constexpr std::size_t width = Lanes<float>::per_register;
  const std::size_t n_used = n < n_lanes ? n : n_lanes;
  std::uint32_t near = 0;
  for (std::size_t part = 0; part < rows_per_tile; part += width) {
    Floats lanes[n_lanes];
    for (std::size_t l = 0; l < n_used; ++l) {
      Floats lane{};
      for (std::size_t f = l; f < n; f += n_lanes) {
        Floats y;
        __builtin_memcpy(&y, columns + f * rows_per_tile + part, sizeof y);
        const Floats apart = x[f] - y;
        lane += apart * apart;
      }
      lanes[l] = lane;
    }
    for (std::size_t half = n_lanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half && l + half < n_used; ++l) lanes[l] += lanes[l + half];
    __builtin_memcpy(sums + part, lanes, sizeof lanes[0]);
    near |= not_above(lanes[0], bound) << part;
  }
  return near;
}

}  // namespace
}  // namespace boundary_forest::kernels
