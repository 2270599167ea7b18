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

#include "kernel.hpp"

namespace boundary_forest::kernels {
namespace {

#define BF_INLINE inline __attribute__((always_inline))

constexpr std::size_t n_lanes = 16;

template <class A>
struct Vector {
  typedef A type __attribute__((vector_size(n_lanes * sizeof(A))));
};
template <class A>
using Lanes = typename Vector<A>::type;

// What lanes hold: integers for uint8 rows, float32 for float32, double else.
template <class Q, class R>
using Sum = std::conditional_t<
    std::is_same_v<Q, std::uint8_t> && std::is_same_v<R, std::uint8_t>, std::int32_t,
    std::conditional_t<std::is_same_v<Q, float> && std::is_same_v<R, float>, float, double>>;

template <class A, class T>
BF_INLINE Lanes<A> load(const T* from) {
  Lanes<T> raw;
  __builtin_memcpy(&raw, from, sizeof raw);
  return __builtin_convertvector(raw, Lanes<A>);
}

// The last few features, filled up with zeros, which add nothing to any formula.
template <class A, class T>
BF_INLINE Lanes<A> load_some(const T* from, std::size_t n) {
  Lanes<A> lanes{};
  for (std::size_t l = 0; l < n; ++l) lanes[l] = static_cast<A>(from[l]);
  return lanes;
}

template <class A>
BF_INLINE Lanes<A> magnitude(Lanes<A> x) {
  return x < 0 ? -x : x;
}

// Integer lanes are emptied before they can overflow: 16384 * 255 * 255 < 2^31.
constexpr std::size_t segment = n_lanes * 16384;

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

// Folds 16 -> 8 -> 4 -> 2 -> 1.
template <class Fold, class A>
BF_INLINE double reduce(Lanes<A> lanes) {
  A values[n_lanes];
  __builtin_memcpy(values, &lanes, sizeof lanes);
  if constexpr (std::is_integral_v<A> && std::is_same_v<Fold, Add>) {
    std::int64_t sum = 0;
    for (const A value : values) sum += value;
    return static_cast<double>(sum);
  } else {
    for (std::size_t half = n_lanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) values[l] = Fold::combine(values[l], values[l + half]);
    return static_cast<double>(values[0]);
  }
}

// Folds term(q, r) over all features.
template <class A, class Fold, class Q, class R, class Term>
BF_INLINE double fold(const Q* q, const R* r, std::size_t n, Term term) {
  double total = 0.0;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::is_integral_v<A> && n - begin > segment ? begin + segment : n;
    Lanes<A> lanes{};
    std::size_t i = begin;
    for (; i + n_lanes <= end; i += n_lanes)
      lanes = Fold::combine(lanes, term(load<A>(q + i), load<A>(r + i)));
    if (i < end)
      lanes =
          Fold::combine(lanes, term(load_some<A>(q + i, end - i), load_some<A>(r + i, end - i)));
    const double part = reduce<Fold, A>(lanes);
    if (begin == 0 && end == n) return part;
    total = Fold::combine(total, part);
    if (end == n) return total;
    begin = end;
  }
}

template <class Q, class R>
BF_INLINE double dot(const Q* q, const R* r, std::size_t n) {
  using A = Sum<Q, R>;
  return fold<A, Add>(q, r, n, [](Lanes<A> x, Lanes<A> y) { return x * y; });
}

// 1 - cos, exactly 0 for equal rows: sqrt(a * a) is a. A row of zeros is at 1 from all others.
BF_INLINE double cosine_distance(double qr, double qq, double rr) {
  if (qq == 0.0 || rr == 0.0) return qq == rr ? 0.0 : 1.0;
  double norms = __builtin_sqrt(qq * rr);
  if (!(norms > 0.0 && norms <= __DBL_MAX__)) norms = __builtin_sqrt(qq) * __builtin_sqrt(rr);
  const double distance = 1.0 - qr / norms;
  return distance < 0.0 ? 0.0 : distance;
}

template <Formula formula, class Q, class R>
BF_INLINE double reduced_distance(const Q* q, const R* r, std::size_t n, double p, double qq) {
  using A = Sum<Q, R>;
  if constexpr (formula == Formula::euclidean)
    return fold<A, Add>(q, r, n, [](Lanes<A> x, Lanes<A> y) { return (x - y) * (x - y); });
  if constexpr (formula == Formula::manhattan)
    return fold<A, Add>(q, r, n, [](Lanes<A> x, Lanes<A> y) { return magnitude<A>(x - y); });
  if constexpr (formula == Formula::chebyshev)
    return fold<A, Max>(q, r, n, [](Lanes<A> x, Lanes<A> y) { return magnitude<A>(x - y); });
  if constexpr (formula == Formula::hamming)
    return fold<A, Add>(
        q, r, n, [](Lanes<A> x, Lanes<A> y) { return x != y ? Lanes<A>{} + A{1} : Lanes<A>{}; });
  if constexpr (formula == Formula::canberra)
    return fold<double, Add>(q, r, n, [](Lanes<double> x, Lanes<double> y) {
      const Lanes<double> size = magnitude<double>(x) + magnitude<double>(y);
      return size == 0.0 ? Lanes<double>{} : magnitude<double>(x - y) / size;
    });
  if constexpr (formula == Formula::minkowski)
    return fold<double, Add>(q, r, n, [p](Lanes<double> x, Lanes<double> y) {
      Lanes<double> powers = magnitude<double>(x - y);
      for (std::size_t l = 0; l < n_lanes; ++l) powers[l] = __builtin_pow(powers[l], p);
      return powers;
    });
  if constexpr (formula == Formula::cosine) return cosine_distance(dot(q, r, n), qq, dot(r, r, n));
  if constexpr (formula == Formula::inner_product) return -dot(q, r, n);
}

// Rows are far apart in memory; the next one is asked for while this one is being summed.
BF_INLINE void prefetch_row(const std::byte* row, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

template <Formula formula, class Q, class R>
void kernel(const std::byte* query, const std::byte* const* rows, std::size_t n,
            std::size_t n_features, double p, double* out) {
  const Q* q = reinterpret_cast<const Q*>(query);
  double qq = 0.0;
  if constexpr (formula == Formula::cosine) qq = dot(q, q, n_features);
  for (std::size_t j = 0; j < n; ++j) {
    if (j + 1 < n) prefetch_row(rows[j + 1], n_features * sizeof(R));
    const R* r = reinterpret_cast<const R*>(rows[j]);
    const double value = reduced_distance<formula>(q, r, n_features, p, qq);
    out[j] = value == value ? value : __builtin_inf();  // sums that overflowed both ways are far
  }
}

template <Formula formula>
Kernel kernel_for(ElementType stored, ElementType query) {
  const bool wide = query == ElementType::float64;
  if (stored == ElementType::uint8)
    return wide ? kernel<formula, double, std::uint8_t>
                : kernel<formula, std::uint8_t, std::uint8_t>;
  if (stored == ElementType::float32)
    return wide ? kernel<formula, double, float> : kernel<formula, float, float>;
  return kernel<formula, double, double>;
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
    default:
      return kernel_for<Formula::inner_product>(stored, query);
  }
}

#undef BF_INLINE

}  // namespace
}  // namespace boundary_forest::kernels
