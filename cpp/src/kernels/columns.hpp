// Squared distances from one row to others that are kept by columns, side by side.
//
// The sums are those of lanes.hpp, lane for lane: lane l adds features l, l + 16, ... in order, then
// 16 -> 8 -> 4 -> 2 -> 1. See lanes.hpp for why all is in an unnamed namespace.
#pragma once

#include "lanes.hpp"

namespace boundary_forest::kernels {
namespace {

// Bit j: !(sums[j] > bound).
template <class T, class V>
BF_INLINE std::uint64_t not_above(const V& sums, T bound) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_cmp_ps_mask((__m512)sums, _mm512_set1_ps(bound), _CMP_NGT_UQ);
  else
    return _mm512_cmp_pd_mask((__m512d)sums, _mm512_set1_pd(bound), _CMP_NGT_UQ);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    return static_cast<std::uint64_t>(
        _mm256_movemask_ps(_mm256_cmp_ps((__m256)sums, _mm256_set1_ps(bound), _CMP_NGT_UQ)));
  else
    return static_cast<std::uint64_t>(
        _mm256_movemask_pd(_mm256_cmp_pd((__m256d)sums, _mm256_set1_pd(bound), _CMP_NGT_UQ)));
#else
  std::uint64_t bits = 0;
  for (std::size_t j = 0; j < Lanes<T>::per_register; ++j)
    bits |= static_cast<std::uint64_t>(!(sums[j] > bound)) << j;
  return bits;
#endif
}

template <bool weighted, class T>
BF_INLINE std::uint64_t compare_columns(const T* x, const T* scales, const Columns<T>& rows,
                                        T bound, T* sums) {
  using V = typename Lanes<T>::Register;
  constexpr std::size_t width = Lanes<T>::per_register;
  const std::size_t n = rows.n_features;
  const std::size_t n_used = n < n_lanes ? n : n_lanes;
  std::uint64_t near = 0;
  for (std::size_t part = 0; part < rows.n; part += width) {
    V lanes[n_lanes];
    for (std::size_t l = 0; l < n_used; ++l) {
      V lane{};
      for (std::size_t f = l; f < n; f += n_lanes) {
        V y;
        __builtin_memcpy(&y, rows.values + f * rows.n + part, sizeof y);
        V apart = x[f] - y;
        if constexpr (weighted) apart *= scales[f];
        lane += apart * apart;
      }
      lanes[l] = lane;
    }
    for (std::size_t half = n_lanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half && l + half < n_used; ++l) lanes[l] += lanes[l + half];
    __builtin_memcpy(sums + part, lanes, sizeof lanes[0]);
    near |= not_above<T>(lanes[0], bound) << part;
  }
  return near;
}

template <class T>
std::uint64_t compare_columns(const T* x, const T* scales, const Columns<T>& rows, T bound,
                              T* sums) {
  return scales == nullptr ? compare_columns<false>(x, scales, rows, bound, sums)
                           : compare_columns<true>(x, scales, rows, bound, sums);
}

constexpr ColumnKernels column_kernels = {compare_columns<float>, compare_columns<double>};

}  // namespace
}  // namespace boundary_forest::kernels
