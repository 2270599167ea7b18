// Squared distances from one row to others that are kept by columns, side by side.
//
// The sums are those of lanes.hpp, lane for lane: lane l adds features l, l + 16, ... in order, then
// 16 -> 8 -> 4 -> 2 -> 1. See lanes.hpp for why all is in an unnamed namespace.
#pragma once

#include "distance/kernels/lanes.hpp"

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

// `some` registers of rows, side by side: what one has to wait for, another one does meanwhile.
template <class T, std::size_t some>
struct Side {
  typename Lanes<T>::Register registers[some];

  BF_INLINE void operator+=(const Side& other) {
    for (std::size_t r = 0; r < some; ++r) registers[r] += other.registers[r];
  }
};

// One row beside those of `rows` from `part` on.
template <class T>
struct Beside {
  const T* x;
  const T* scales;
  const Columns<T>& rows;
  std::size_t part;
};

template <bool weighted, std::size_t some, class T>
BF_INLINE Side<T, some> square(const Beside<T>& pair, std::size_t f) {
  using V = typename Lanes<T>::Register;
  const T* column = pair.rows.values + f * pair.rows.n + pair.part;
  Side<T, some> out;
  for (std::size_t r = 0; r < some; ++r) {
    V y;
    __builtin_memcpy(&y, column + r * Lanes<T>::per_register, sizeof y);
    V apart = pair.x[f] - y;
    if constexpr (weighted) apart *= pair.scales[f];
    out.registers[r] = apart * apart;
  }
  return out;
}

// With fewer features than lanes, lanes are compiled in steps of two, and the last one is left out at
// run time where there is no feature for it.
// Lanes l, l + stride, ... of the first n_used, folded. Each is summed when its turn comes, so that
// there are never more sums than registers.
template <bool weighted, std::size_t some, std::size_t n_used, std::size_t l = 0,
          std::size_t stride = 1, class T>
BF_INLINE Side<T, some> folded(const Beside<T>& pair) {
  if constexpr (stride >= n_lanes) {
    if (n_used < n_lanes && l + 1 == n_used && l >= pair.rows.n_features) return {};
    Side<T, some> lane = square<weighted, some>(pair, l);
    if constexpr (n_used == n_lanes)
      for (std::size_t f = l + n_lanes; f < pair.rows.n_features; f += n_lanes)
        lane += square<weighted, some>(pair, f);
    return lane;
  } else {
    auto sum = folded<weighted, some, n_used, l, 2 * stride>(pair);
    if constexpr (l + stride < n_used)
      sum += folded<weighted, some, n_used, l + stride, 2 * stride>(pair);
    return sum;
  }
}

// f(at, sums) for the sums of the rows from number `at` on, register by register.
template <bool weighted, std::size_t n_used, class T, class F>
BF_INLINE void for_each_sum(const T* x, const T* scales, const Columns<T>& rows, F&& f) {
  constexpr std::size_t width = Lanes<T>::per_register;
  std::size_t at = 0;
  for (; at + 2 * width <= rows.n; at += 2 * width) {
    const auto two = folded<weighted, 2, n_used>(Beside<T>{x, scales, rows, at});
    f(at, two.registers[0]);
    f(at + width, two.registers[1]);
  }
  if (at < rows.n) f(at, folded<weighted, 1, n_used>(Beside<T>{x, scales, rows, at}).registers[0]);
}

template <std::size_t n_used, class T>
std::uint64_t compare_columns(const T* x, const Columns<T>& rows, T bound, T* sums) {
  std::uint64_t near = 0;
  for_each_sum<false, n_used, T>(
      x, nullptr, rows, [&](std::size_t at, const auto& some) __attribute__((always_inline)) {
        __builtin_memcpy(sums + at, &some, sizeof some);
        near |= not_above<T>(some, bound) << at;
      });
  return near;
}

struct Min {
  template <class A>
  static BF_INLINE A combine(A a, A b) {
    return a < b ? a : b;
  }
};

template <bool weighted, std::size_t n_used, class T>
void closest_columns(const T* const* x, std::size_t m, const T* scales, const Columns<T>& rows,
                     double* bounds, std::uint64_t* closest) {
  using V = typename Lanes<T>::Register;
  constexpr std::size_t width = Lanes<T>::per_register;
  V sums[most_columned_rows / width];
  for (std::size_t i = 0; i < m; ++i) {
    V low = V{} + static_cast<T>(__builtin_inf());
    for_each_sum<weighted, n_used>(
        x[i], scales, rows, [&](std::size_t at, const V& some) __attribute__((always_inline)) {
          const V sum = some < __builtin_inf() ? some : V{} + static_cast<T>(__builtin_inf());
          sums[at / width] = sum;
          low = Min::combine(sum, low);
        });
    const T least = fold_vector<Min>(low, std::make_index_sequence<width / 2>());
    closest[i] = 0;
    if (!(least <= bounds[i])) continue;
    bounds[i] = least;
    for (std::size_t at = 0; at < rows.n; at += width)
      closest[i] |= not_above<T>(sums[at / width], least) << at;
  }
}

// By the number of lanes that are used: 2, 4, ..., 14, 15, 16. With 15 and 16, none is left out.
constexpr std::size_t lanes_of_step(std::size_t step) {
  return step < 7 ? 2 * (step + 1) : step + 8;
}
constexpr std::size_t step_of(std::size_t n_features) {
  return n_features < 15 ? (n_features - 1) / 2 : n_features < n_lanes ? 7 : 8;
}

template <bool weighted, class T, class Steps>
struct BySteps;
template <bool weighted, class T, std::size_t... step>
struct BySteps<weighted, T, std::index_sequence<step...>> {
  static constexpr ColumnKernels::Compare<T> compare[] = {
      compare_columns<lanes_of_step(step), T>...};
  static constexpr ColumnKernels::Closest<T> closest[] = {
      closest_columns<weighted, lanes_of_step(step), T>...};
};
template <bool weighted, class T>
using ColumnTable = BySteps<weighted, T, std::make_index_sequence<9>>;

template <class T>
std::uint64_t compare(const T* x, const Columns<T>& rows, T bound, T* sums) {
  return ColumnTable<false, T>::compare[step_of(rows.n_features)](x, rows, bound, sums);
}

template <class T>
void closest(const T* const* x, std::size_t m, const T* scales, const Columns<T>& rows,
             double* bounds, std::uint64_t* out) {
  const auto& by_lanes =
      scales == nullptr ? ColumnTable<false, T>::closest : ColumnTable<true, T>::closest;
  by_lanes[step_of(rows.n_features)](x, m, scales, rows, bounds, out);
}

constexpr ColumnKernels column_kernels = {register_bytes, compare<float>, closest<float>,
                                          closest<double>};

}  // namespace
}  // namespace boundary_forest::kernels
