// The portable kernels: every formula, over 16 lanes (lanes.hpp).
//
// Like lanes.hpp, this is compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "distance/kernels/bytes.hpp"
#include "distance/kernels/kernel.hpp"
#include "distance/kernels/lanes.hpp"
#include "distance/kernels/power.hpp"
#include "distance/kernels/registers.hpp"

namespace boundary_forest::kernels {
namespace {

constexpr auto is_different = [](auto x, auto y, auto) __attribute__((always_inline)) {
  const decltype(x) zero{};
  return x != y ? zero + 1 : zero;
};

template <class A, class Q, class R, class How>
BF_INLINE double dot(const Q* q, const R* r, std::size_t n, const How& how) {
  double out;
  fold<A, Add, 1>(q, &r, n, how, [](auto x, auto y, auto) { return x * y; }, &out);
  return out;
}

template <class A, class Q, class R, class How>
BF_INLINE bool same_rows(const Q* q, const R* r, std::size_t n, const How& how) {
  double n_different;
  fold<A, Max, 1>(q, &r, n, how, is_different, &n_different);
  return n_different == 0.0;
}

// 1 - cos, exactly 0 for equal rows, also where their squares over- or underflow. A row of zeros is
// at 1 from all others.
template <class A, class Q, class R, class How>
BF_INLINE double cosine_distance(const Q* q, const R* r, std::size_t n, const How& how, double qq,
                                 double qr, double rr) {
  if (!(qq > 0.0 && rr > 0.0 && qq <= __DBL_MAX__ && rr <= __DBL_MAX__))
    return same_rows<A>(q, r, n, how) ? 0.0 : qq == 0.0 || rr == 0.0 ? 1.0 : __builtin_inf();
  if (qr == qq && qq == rr) return 0.0;
  double norms = __builtin_sqrt(qq * rr);
  if (!(norms > 0.0 && norms <= __DBL_MAX__)) norms = __builtin_sqrt(qq) * __builtin_sqrt(rr);
  const double distance = 1.0 - qr / norms;
  return distance < 0.0 ? 0.0 : distance;
}

// Reduced distances from q to C rows, summed in A.
template <Formula formula, class A, std::size_t C, class Q, class R, class How>
BF_INLINE void summed_distances(const Q* q, const R* const* r, std::size_t n,
                                const Arguments& arguments, const How& how, double qq,
                                double* out) {
  if constexpr (formula == Formula::euclidean && std::is_integral_v<A>)
    for (std::size_t c = 0; c < C; ++c)
      out[c] = fold_segments<Add>(n, [&](std::size_t begin, std::size_t length) {
        return squared_distance(q + begin, r[c] + begin, length);
      });
  if constexpr (formula == Formula::euclidean && !std::is_integral_v<A>)
    fold<A, Add, C>(q, r, n, how, [](auto x, auto y, auto) { return (x - y) * (x - y); }, out);
  if constexpr (formula == Formula::weighted_euclidean) {
    // Scaled before it is squared: weights of very small or large features would leave float32.
    const auto* scales = [&] {
      if constexpr (std::is_same_v<A, float>)
        return arguments.scales32;
      else
        return arguments.scales64;
    }();
    fold<A, Add, C>(
        q, r, n, how,
        [scales](auto x, auto y, auto place) {
          const auto apart = (x - y) * place.at(scales);
          return apart * apart;
        },
        out);
  }
  if constexpr (formula == Formula::manhattan)
    fold<A, Add, C>(q, r, n, how, [](auto x, auto y, auto) { return magnitude(x - y); }, out);
  if constexpr (formula == Formula::chebyshev)
    fold<A, Max, C>(q, r, n, how, [](auto x, auto y, auto) { return magnitude(x - y); }, out);
  if constexpr (formula == Formula::hamming) fold<A, Add, C>(q, r, n, how, is_different, out);
  if constexpr (formula == Formula::canberra)
    fold<A, Add, C>(
        q, r, n, how,
        [](auto x, auto y, auto) {
          const auto size = magnitude(x) + magnitude(y);
          return size == 0.0 ? decltype(x){} : magnitude(x - y) / size;
        },
        out);
  if constexpr (formula == Formula::minkowski)
    fold<A, Add, C>(
        q, r, n, how,
        [&](auto x, auto y, auto) {
          auto powers = magnitude(x - y);
          for (std::size_t l = 0; l < sizeof powers / sizeof powers[0]; ++l)
            powers[l] = power(powers[l], arguments.p);
          return powers;
        },
        out);
  if constexpr (formula == Formula::cosine) {
    double qr[C];
    double rr[C];
    fold<A, Add, C>(q, r, n, how, [](auto x, auto y, auto) { return x * y; }, qr);
    fold<A, Add, C>(q, r, n, how, [](auto, auto y, auto) { return y * y; }, rr);
    for (std::size_t c = 0; c < C; ++c)
      out[c] = cosine_distance<A>(q, r[c], n, how, qq, qr[c], rr[c]);
  }
  if constexpr (formula == Formula::inner_product) {
    fold<A, Add, C>(q, r, n, how, [](auto x, auto y, auto) { return x * y; }, out);
    for (std::size_t c = 0; c < C; ++c) out[c] = -out[c];
  }
}

// Rows are far apart in memory; the next ones are prefetched while these are being summed.
BF_INLINE void prefetch_rows(const std::byte* const* rows, std::size_t n, std::size_t bytes) {
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(rows[j] + at);
}

template <Formula formula, class A, class Q, class R, class How>
BF_INLINE void all_distances(const std::byte* query, const std::byte* const* rows, std::size_t n,
                             std::size_t n_features, const Arguments& arguments, const How& how,
                             double* out) {
  // As many sums as fit into the registers.
  constexpr std::size_t at_once = Lanes<A>::n_registers > 2 ? 2 : 4;
  const Q* q = reinterpret_cast<const Q*>(query);
  const auto* r = reinterpret_cast<const R* const*>(rows);
  double qq = 0.0;
  if constexpr (formula == Formula::cosine)
    qq = dot<A>(q, q, n_features, How{how.query, how.query});
  std::size_t j = 0;
  for (; j + at_once <= n; j += at_once) {
    const std::size_t left = n - j - at_once;
    prefetch_rows(rows + j + at_once, left < at_once ? left : at_once, n_features * sizeof(R));
    summed_distances<formula, A, at_once>(q, r + j, n_features, arguments, how, qq, out + j);
  }
  for (; j < n; ++j)
    summed_distances<formula, A, 1>(q, r + j, n_features, arguments, how, qq, out + j);
  for (j = 0; j < n; ++j)  // sums that overflowed both ways are far
    out[j] = out[j] == out[j] ? out[j] : __builtin_inf();
}

// Writes whole registers: `out` has room for a multiple of 16.
template <class T, class A>
void convert(const std::byte* row, std::size_t begin, std::size_t n, A* out) {
  const T* from = reinterpret_cast<const T*>(row) + begin;
  for (std::size_t i = 0; i < n; i += n_lanes)
    for (std::size_t j = 0; j < Lanes<A>::n_registers; ++j) {
      const auto x = load_some<A>(from + i, j, n - i);
      __builtin_memcpy(out + i + j * Lanes<A>::per_register, &x, sizeof x);
    }
}

// The pairs of types that have kernels of their own, because they are common and conversion would cost them
// time: bytes, which are summed in integers, the types in which embeddings are kept, and queries of float64
// in a forest of float32.
template <Formula formula, class Q, class R>
constexpr bool has_own_kernel() {
  constexpr bool of_embeddings = formula == Formula::euclidean || formula == Formula::cosine ||
                                 formula == Formula::inner_product;
  constexpr bool in_double = formula == Formula::canberra || formula == Formula::minkowski;
  if (std::is_same_v<Q, std::uint8_t> && std::is_same_v<R, std::uint8_t>) return !in_double;
  if (std::is_same_v<Q, std::int8_t> && std::is_same_v<R, std::int8_t>)
    return of_embeddings || formula == Formula::manhattan || formula == Formula::chebyshev ||
           formula == Formula::hamming;
  constexpr bool is_double_to_float = std::is_same_v<Q, double> && std::is_same_v<R, float>;
  constexpr bool is_float_to_half = std::is_same_v<Q, float> && std::is_same_v<R, Half>;
  return (is_double_to_float || is_float_to_half) &&
         (of_embeddings || formula == Formula::weighted_euclidean);
}

// What the kernels of other types sum in.
template <Formula formula, class Q, class R>
using ConvertedSum =
    std::conditional_t<formula == Formula::canberra || formula == Formula::minkowski ||
                           std::is_same_v<Q, double> || std::is_same_v<R, double>,
                       double, float>;

template <Formula formula, class A>
__attribute__((noinline)) void converted_distances(const Conversion<A>& how, const std::byte* query,
                                                   const std::byte* const* rows, std::size_t n,
                                                   std::size_t n_features,
                                                   const Arguments& arguments, double* out) {
  all_distances<formula, A, A, A>(query, rows, n, n_features, arguments, how, out);
}

template <Formula formula, class Q, class R>
void converted_kernel(const std::byte* query, const std::byte* const* rows, std::size_t n,
                      std::size_t n_features, const Arguments& arguments, double* out) {
  using A = ConvertedSum<formula, Q, R>;
  const Conversion<A> how{convert<Q, A>, convert<R, A>};
  converted_distances<formula, A>(how, query, rows, n, n_features, arguments, out);
}

template <Formula formula, class Q, class R>
void kernel(const std::byte* query, const std::byte* const* rows, std::size_t n,
            std::size_t n_features, const Arguments& arguments, double* out) {
  if constexpr (std::is_same_v<Q, Half> && has_own_kernel<formula, float, R>()) {
    // The query is converted once for all rows.
    constexpr std::size_t room = 2048;  // features
    if (n_features > room)
      return converted_kernel<formula, Q, R>(query, rows, n, n_features, arguments, out);
    alignas(64) float floats[room];
    convert<Half, float>(query, 0, n_features, floats);
    return kernel<formula, float, R>(reinterpret_cast<const std::byte*>(floats), rows, n,
                                     n_features, arguments, out);
  } else if constexpr (std::is_same_v<Q, R> && std::is_same_v<Q, ConvertedSum<formula, Q, R>>) {
    return all_distances<formula, Q, Q, R>(query, rows, n, n_features, arguments, AsTheyAre{}, out);
  } else if constexpr (!has_own_kernel<formula, Q, R>()) {
    return converted_kernel<formula, Q, R>(query, rows, n, n_features, arguments, out);
  } else if constexpr (std::is_same_v<Q, std::uint8_t>) {
    // Weighted bytes are summed in float32.
    using A = std::conditional_t<formula == Formula::weighted_euclidean, float, std::int32_t>;
    return all_distances<formula, A, Q, R>(query, rows, n, n_features, arguments, AsTheyAre{}, out);
  } else if constexpr (std::is_same_v<Q, std::int8_t> && formula != Formula::cosine &&
                       formula != Formula::inner_product) {
    // Compared as float32; but as long as no sum of whole numbers >= 0 is beyond 2^24, float32 holds
    // them all, and integers give the same. A sum in float32 that is beyond cannot come back, so that
    // the integers tell whether it is.
    all_distances<formula, std::int32_t, Q, R>(query, rows, n, n_features, arguments, AsTheyAre{},
                                               out);
    for (std::size_t j = 0; j < n; ++j)
      if (out[j] > 0x1p24)
        converted_kernel<formula, Q, R>(query, rows + j, 1, n_features, arguments, out + j);
  } else {
    using A = ConvertedSum<formula, Q, R>;
    return all_distances<formula, A, Q, R>(query, rows, n, n_features, arguments, AsTheyAre{}, out);
  }
}

template <Formula formula>
Kernel kernel_for(ElementType stored, ElementType query) {
  const bool wide = query == ElementType::float64;
  const bool single = query == ElementType::float32;  // else of the stored rows' own type
  switch (stored) {
    case ElementType::uint8:
      return wide ? kernel<formula, double, std::uint8_t>
                  : kernel<formula, std::uint8_t, std::uint8_t>;
    case ElementType::int8:
      return wide     ? kernel<formula, double, std::int8_t>
             : single ? kernel<formula, float, std::int8_t>
                      : kernel<formula, std::int8_t, std::int8_t>;
    case ElementType::float16:
      return wide     ? kernel<formula, double, Half>
             : single ? kernel<formula, float, Half>
                      : kernel<formula, Half, Half>;
    case ElementType::float32:
      return wide ? kernel<formula, double, float> : kernel<formula, float, float>;
    case ElementType::float64:
      return kernel<formula, double, double>;
  }
  __builtin_unreachable();
}

inline Kernel kernel_for(Formula formula, ElementType stored, ElementType query) {
  switch (formula) {
    case Formula::euclidean:
      return kernel_for<Formula::euclidean>(stored, query);
    case Formula::manhattan:
      return kernel_for<Formula::manhattan>(stored, query);
    case Formula::chebyshev:
      return kernel_for<Formula::chebyshev>(stored, query);
    case Formula::minkowski:
      return kernel_for<Formula::minkowski>(stored, query);
    case Formula::cosine:
      return kernel_for<Formula::cosine>(stored, query);
    case Formula::hamming:
      return kernel_for<Formula::hamming>(stored, query);
    case Formula::canberra:
      return kernel_for<Formula::canberra>(stored, query);
    case Formula::inner_product:
      return kernel_for<Formula::inner_product>(stored, query);
    case Formula::weighted_euclidean:
      return kernel_for<Formula::weighted_euclidean>(stored, query);
  }
  __builtin_unreachable();
}

}  // namespace
}  // namespace boundary_forest::kernels
