// The portable kernels: every formula, over 16 lanes.
//
// Written with the vector extensions of GCC and Clang, which any instruction set can carry out and
// which say exactly which additions happen in which lane; the compiler maps 16 lanes to what the
// target has. Each instruction set includes this file in a translation unit of its own. All is in
// an unnamed namespace and calls no inline function from elsewhere, so that the linker can never
// put code made for one processor where another one needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "distance/kernels/bytes.hpp"
#include "distance/kernels/kernel.hpp"
#include "distance/kernels/power.hpp"
#include "distance/kernels/registers.hpp"

namespace boundary_forest::kernels {
namespace {

// What lanes hold: integers for uint8 rows; float32 for float32, and for int8 and float16 as what they
// are then; double else.
template <class T>
constexpr bool is_as_float32 =
    std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, std::int8_t>;
template <class Q, class R>
using Sum =
    std::conditional_t<std::is_same_v<Q, std::uint8_t> && std::is_same_v<R, std::uint8_t>,
                       std::int32_t,
                       std::conditional_t<is_as_float32<Q> && is_as_float32<R>, float, double>>;

template <class V>
BF_INLINE V magnitude(V x) {
  return x < 0 ? -x : x;
}

struct Add {
  template <class A>
  static BF_INLINE A combine(A a, A b) {
    return a + b;
  }
};

struct Max {
  template <class A>
  static BF_INLINE A combine(A a, A b) {
    return a > b ? a : b;
  }
};

// Folds n registers into one: register j with j + n / 2, and so on.
template <class Fold, std::size_t n, std::size_t j = 0, std::size_t stride = 1, class V>
BF_INLINE V fold_registers(const V* registers) {
  if constexpr (stride == n)
    return registers[j];
  else
    return Fold::combine(fold_registers<Fold, n, j, 2 * stride>(registers),
                         fold_registers<Fold, n, j + stride, 2 * stride>(registers));
}

// Folds the n values of a vector: n -> n / 2 -> ... -> 1. Taken apart by shuffling: a copy of its
// halves would have the compiler keep the vector in memory all along.
template <class Fold, class V, std::size_t... l>
BF_INLINE auto fold_vector(V v, std::index_sequence<l...>) {
  constexpr std::size_t half = sizeof...(l);
  if constexpr (half == 1)
    return Fold::combine(v[0], v[1]);
  else
    return fold_vector<Fold>(Fold::combine(__builtin_shufflevector(v, v, l...),
                                           __builtin_shufflevector(v, v, (half + l)...)),
                             std::make_index_sequence<half / 2>());
}

// out[c] = term(q, r[c]) folded over all features, for C rows at once: an addition has to wait for
// the one before it in its lane, but not for those of other rows.
//
// Bytes: in integers, where any order gives the same sum, so the compiler may choose it; 32-bit
// sums are emptied before they overflow: 32768 * 255 * 255 < 2^31.
template <class Fold, class Segment>
BF_INLINE double fold_segments(std::size_t n, Segment segment) {
  constexpr std::size_t longest = 32768;
  std::int64_t total = 0;
  for (std::size_t begin = 0; begin < n; begin += longest) {
    const std::size_t length = n - begin > longest ? longest : n - begin;
    total = Fold::combine(total, std::int64_t{segment(begin, length)});
  }
  return static_cast<double>(total);
}

template <class Fold, std::size_t C, class Q, class R, class Term>
BF_INLINE void fold_bytes(const Q* q, const R* const* r, std::size_t n, Term term, double* out) {
  for (std::size_t c = 0; c < C; ++c)
    out[c] = fold_segments<Fold>(n, [&](std::size_t begin, std::size_t length) {
      std::int32_t part = 0;
      for (std::size_t i = begin; i < begin + length; ++i)
        part = Fold::combine(part, term(std::int32_t{q[i]}, std::int32_t{r[c][i]}, i));
      return part;
    });
}

// Floats: in lanes, then 16 -> 8 -> 4 -> 2 -> 1. A term may ask for the place of its features: `at`
// loads what belongs to them from another row.
template <class A>
struct Place {
  std::size_t i;     // of the first of 16 features
  std::size_t r;     // the register
  std::size_t left;  // features from i on

  BF_INLINE typename Lanes<A>::Register at(const A* row) const {
    return left >= n_lanes ? load<A>(row + i, r) : load_some<A>(row + i, r, left);
  }
};

template <class A, class Fold, std::size_t C, class Q, class R, class Term>
BF_INLINE void fold_lanes(const Q* q, const R* const* r, std::size_t n, Term term, double* out) {
  constexpr std::size_t n_registers = Lanes<A>::n_registers;
  typename Lanes<A>::Register lanes[C][n_registers] = {};
  std::size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) BF_UNROLL for (std::size_t j = 0; j < n_registers; ++j) {
      const auto x = load<A>(q + i, j);
      BF_UNROLL for (std::size_t c = 0; c < C; ++c) lanes[c][j] =
          Fold::combine(lanes[c][j], term(x, load<A>(r[c] + i, j), Place<A>{i, j, n_lanes}));
    }
  if (i < n) BF_UNROLL for (std::size_t j = 0; j < n_registers; ++j) {
      const auto x = load_some<A>(q + i, j, n - i);
      BF_UNROLL for (std::size_t c = 0; c < C; ++c) lanes[c][j] = Fold::combine(
          lanes[c][j], term(x, load_some<A>(r[c] + i, j, n - i), Place<A>{i, j, n - i}));
    }
  BF_UNROLL for (std::size_t c = 0; c < C; ++c) {
    constexpr auto half = std::make_index_sequence<Lanes<A>::per_register / 2>();
    out[c] =
        static_cast<double>(fold_vector<Fold>(fold_registers<Fold, n_registers>(lanes[c]), half));
  }
}

template <class A, class Fold, std::size_t C, class Q, class R, class Term>
BF_INLINE void fold(const Q* q, const R* const* r, std::size_t n, Term term, double* out) {
  if constexpr (std::is_integral_v<A>)
    fold_bytes<Fold, C>(q, r, n, term, out);
  else
    fold_lanes<A, Fold, C>(q, r, n, term, out);
}

template <class A, class Q, class R>
BF_INLINE double dot(const Q* q, const R* r, std::size_t n) {
  double out;
  fold<A, Add, 1>(q, &r, n, [](auto x, auto y, auto) { return x * y; }, &out);
  return out;
}

template <class Q, class R>
BF_INLINE bool same_rows(const Q* q, const R* r, std::size_t n) {
  std::size_t i = 0;
  while (i < n && static_cast<double>(q[i]) == static_cast<double>(r[i])) ++i;
  return i == n;
}

// 1 - cos, exactly 0 for equal rows, also where their squares over- or underflow. A row of zeros is
// at 1 from all others.
template <class A, class Q, class R>
BF_INLINE double cosine_distance(const Q* q, const R* r, std::size_t n, double qq) {
  const double qr = dot<A>(q, r, n);
  const double rr = dot<A>(r, r, n);
  if (!(qq > 0.0 && rr > 0.0 && qq <= __DBL_MAX__ && rr <= __DBL_MAX__))
    return same_rows(q, r, n) ? 0.0 : qq == 0.0 || rr == 0.0 ? 1.0 : __builtin_inf();
  if (qr == qq && qq == rr) return 0.0;
  double norms = __builtin_sqrt(qq * rr);
  if (!(norms > 0.0 && norms <= __DBL_MAX__)) norms = __builtin_sqrt(qq) * __builtin_sqrt(rr);
  const double distance = 1.0 - qr / norms;
  return distance < 0.0 ? 0.0 : distance;
}

// Reduced distances from q to C rows, summed in A.
template <Formula formula, class A, std::size_t C, class Q, class R>
BF_INLINE void summed_distances(const Q* q, const R* const* r, std::size_t n,
                                const Arguments& arguments, double qq, double* out) {
  if constexpr (formula == Formula::euclidean && std::is_integral_v<A>)
    for (std::size_t c = 0; c < C; ++c)
      out[c] = fold_segments<Add>(n, [&](std::size_t begin, std::size_t length) {
        return squared_distance(q + begin, r[c] + begin, length);
      });
  if constexpr (formula == Formula::euclidean && !std::is_integral_v<A>)
    fold<A, Add, C>(q, r, n, [](auto x, auto y, auto) { return (x - y) * (x - y); }, out);
  if constexpr (formula == Formula::weighted_euclidean) {
    // Scaled before it is squared: weights of very small or large features would leave float32.
    using F = std::conditional_t<std::is_integral_v<A>, float, A>;
    const auto* scales = [&] {
      if constexpr (std::is_same_v<F, float>)
        return arguments.scales32;
      else
        return arguments.scales64;
    }();
    fold<F, Add, C>(
        q, r, n,
        [scales](auto x, auto y, auto place) {
          const auto apart = (x - y) * place.at(scales);
          return apart * apart;
        },
        out);
  }
  if constexpr (formula == Formula::manhattan)
    fold<A, Add, C>(q, r, n, [](auto x, auto y, auto) { return magnitude(x - y); }, out);
  if constexpr (formula == Formula::chebyshev)
    fold<A, Max, C>(q, r, n, [](auto x, auto y, auto) { return magnitude(x - y); }, out);
  if constexpr (formula == Formula::hamming)
    fold<A, Add, C>(
        q, r, n,
        [](auto x, auto y, auto) {
          const decltype(x) zero{};
          return x != y ? zero + 1 : zero;
        },
        out);
  if constexpr (formula == Formula::canberra)
    fold<double, Add, C>(
        q, r, n,
        [](auto x, auto y, auto) {
          const auto size = magnitude(x) + magnitude(y);
          return size == 0.0 ? decltype(x){} : magnitude(x - y) / size;
        },
        out);
  if constexpr (formula == Formula::minkowski)
    fold<double, Add, C>(
        q, r, n,
        [&](auto x, auto y, auto) {
          auto powers = magnitude(x - y);
          for (std::size_t l = 0; l < sizeof powers / sizeof powers[0]; ++l)
            powers[l] = power(powers[l], arguments.p);
          return powers;
        },
        out);
  if constexpr (formula == Formula::cosine)
    for (std::size_t c = 0; c < C; ++c) out[c] = cosine_distance<A>(q, r[c], n, qq);
  if constexpr (formula == Formula::inner_product) {
    fold<A, Add, C>(q, r, n, [](auto x, auto y, auto) { return x * y; }, out);
    for (std::size_t c = 0; c < C; ++c) out[c] = -out[c];
  }
}

// The formulas whose terms are whole numbers >= 0 for rows of bytes.
constexpr bool has_whole_terms(Formula formula) {
  return formula == Formula::euclidean || formula == Formula::manhattan ||
         formula == Formula::chebyshev || formula == Formula::hamming;
}

// Likewise, in whatever is fastest. Rows of int8 are compared as float32; but as long as no sum of
// whole numbers is beyond 2^24, float32 has them all, and integers give the same. A sum in float32 that
// is beyond cannot come back, so that the integers tell whether it is.
template <Formula formula, std::size_t C, class Q, class R>
BF_INLINE void reduced_distances(const Q* q, const R* const* r, std::size_t n,
                                 const Arguments& arguments, double qq, double* out) {
  constexpr bool bytes = std::is_same_v<Q, std::int8_t> && std::is_same_v<R, std::int8_t>;
  if constexpr (bytes && has_whole_terms(formula)) {
    summed_distances<formula, std::int32_t, C>(q, r, n, arguments, qq, out);
    for (std::size_t c = 0; c < C; ++c)
      if (out[c] > 0x1p24) summed_distances<formula, float, 1>(q, r + c, n, arguments, qq, out + c);
  } else {
    summed_distances<formula, Sum<Q, R>, C>(q, r, n, arguments, qq, out);
  }
}

// Rows are far apart in memory; the next ones are asked for while these are being summed.
BF_INLINE void prefetch_rows(const std::byte* const* rows, std::size_t n, std::size_t bytes) {
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(rows[j] + at);
}

template <Formula formula, class Q, class R>
void kernel(const std::byte* query, const std::byte* const* rows, std::size_t n,
            std::size_t n_features, const Arguments& arguments, double* out) {
  // As many sums as fit into the registers.
  constexpr std::size_t at_once = Lanes<Sum<Q, R>>::n_registers > 2 ? 2 : 4;
  if constexpr (std::is_same_v<Q, Half>) {
    constexpr std::size_t room = 2048;  // features
    if (n >= 2 * at_once && n_features <= room) {
      alignas(64) float floats[room];
      std::size_t i = 0;
      for (; i + n_lanes <= n_features; i += n_lanes)
        BF_UNROLL for (std::size_t j = 0; j < Lanes<float>::n_registers; ++j) {
          const auto x = load<float>(reinterpret_cast<const Half*>(query) + i, j);
          __builtin_memcpy(floats + i + j * Lanes<float>::per_register, &x, sizeof x);
        }
      for (; i < n_features; ++i)
        floats[i] = static_cast<float>(reinterpret_cast<const Half*>(query)[i]);
      return kernel<formula, float, R>(reinterpret_cast<const std::byte*>(floats), rows, n,
                                       n_features, arguments, out);
    }
  }
  const Q* q = reinterpret_cast<const Q*>(query);
  const auto* r = reinterpret_cast<const R* const*>(rows);
  double qq = 0.0;
  if constexpr (formula == Formula::cosine) qq = dot<Sum<Q, R>>(q, q, n_features);
  std::size_t j = 0;
  for (; j + at_once <= n; j += at_once) {
    const std::size_t left = n - j - at_once;
    prefetch_rows(rows + j + at_once, left < at_once ? left : at_once, n_features * sizeof(R));
    reduced_distances<formula, at_once>(q, r + j, n_features, arguments, qq, out + j);
  }
  for (; j < n; ++j) reduced_distances<formula, 1>(q, r + j, n_features, arguments, qq, out + j);
  for (j = 0; j < n; ++j)  // sums that overflowed both ways are far
    out[j] = out[j] == out[j] ? out[j] : __builtin_inf();
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
