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
#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

// 16 lanes as the registers that hold them. One vector of 16 would say the same, but compilers keep
// vectors that are wider than a register in memory.
template <class A>
struct Lanes {
  static constexpr std::size_t per_register = register_bytes / sizeof(A);
  static constexpr std::size_t n_registers = n_lanes / per_register;
  typedef A Register __attribute__((vector_size(register_bytes)));

  Register registers[n_registers];
};

// What lanes hold: integers for uint8 rows, float32 for float32, double else.
template <class Q, class R>
using Sum = std::conditional_t<
    std::is_same_v<Q, std::uint8_t> && std::is_same_v<R, std::uint8_t>, std::int32_t,
    std::conditional_t<std::is_same_v<Q, float> && std::is_same_v<R, float>, float, double>>;

template <class A, class T>
BF_INLINE Lanes<A> load(const T* from) {
  typedef T Part __attribute__((vector_size(Lanes<A>::per_register * sizeof(T))));
  Lanes<A> lanes;
  for (std::size_t r = 0; r < Lanes<A>::n_registers; ++r) {
    Part part;
    __builtin_memcpy(&part, from + r * Lanes<A>::per_register, sizeof part);
    lanes.registers[r] = __builtin_convertvector(part, typename Lanes<A>::Register);
  }
  return lanes;
}

// The last few features, filled up with zeros, which add nothing to any formula.
template <class A, class T>
BF_INLINE Lanes<A> load_some(const T* from, std::size_t n) {
  constexpr std::size_t width = Lanes<A>::per_register;
  typedef T Part __attribute__((vector_size(width * sizeof(T))));
  Lanes<A> lanes{};
  for (std::size_t r = 0; r < Lanes<A>::n_registers; ++r) {
    const std::size_t begin = r * width;
    if (begin >= n) break;
    Part part{};
    if (begin + width <= n) {
      __builtin_memcpy(&part, from + begin, sizeof part);
    } else {
      for (std::size_t l = 0; l < width; ++l)
        if (begin + l < n) part[l] = from[begin + l];
    }
    lanes.registers[r] = __builtin_convertvector(part, typename Lanes<A>::Register);
  }
  return lanes;
}

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

// Folds term(q, r) over all features. Bytes: in integers, where any order gives the same sum, so
// the compiler may choose it; 32-bit sums are emptied before they overflow: 32768 * 255 * 255 <
// 2^31.
template <class Fold, class Q, class R, class Term>
BF_INLINE double fold_bytes(const Q* q, const R* r, std::size_t n, Term term) {
  constexpr std::size_t segment = 32768;
  std::int64_t total = 0;
  for (std::size_t begin = 0; begin < n; begin += segment) {
    const std::size_t end = n - begin > segment ? begin + segment : n;
    std::int32_t part = 0;
    for (std::size_t i = begin; i < end; ++i)
      part = Fold::combine(part, term(std::int32_t{q[i]}, std::int32_t{r[i]}));
    total = Fold::combine(total, std::int64_t{part});
  }
  return static_cast<double>(total);
}

// Floats: in lanes, then 16 -> 8 -> 4 -> 2 -> 1.
template <class A, class Fold, class Q, class R, class Term>
BF_INLINE double fold_lanes(const Q* q, const R* r, std::size_t n, Term term) {
  Lanes<A> lanes{};
  const auto add = [&](const Lanes<A>& x, const Lanes<A>& y) __attribute__((always_inline)) {
    for (std::size_t j = 0; j < Lanes<A>::n_registers; ++j)
      lanes.registers[j] = Fold::combine(lanes.registers[j], term(x.registers[j], y.registers[j]));
  };
  std::size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) add(load<A>(q + i), load<A>(r + i));
  if (i < n) add(load_some<A>(q + i, n - i), load_some<A>(r + i, n - i));
  A values[n_lanes];
  __builtin_memcpy(values, lanes.registers, sizeof values);
  for (std::size_t half = n_lanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) values[l] = Fold::combine(values[l], values[l + half]);
  return static_cast<double>(values[0]);
}

template <class A, class Fold, class Q, class R, class Term>
BF_INLINE double fold(const Q* q, const R* r, std::size_t n, Term term) {
  if constexpr (std::is_integral_v<A>)
    return fold_bytes<Fold>(q, r, n, term);
  else
    return fold_lanes<A, Fold>(q, r, n, term);
}

template <class A, class Q, class R>
BF_INLINE double dot(const Q* q, const R* r, std::size_t n) {
  return fold<A, Add>(q, r, n, [](auto x, auto y) { return x * y; });
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

template <Formula formula, class Q, class R>
BF_INLINE double reduced_distance(const Q* q, const R* r, std::size_t n, double p, double qq) {
  using A = Sum<Q, R>;
  if constexpr (formula == Formula::euclidean)
    return fold<A, Add>(q, r, n, [](auto x, auto y) { return (x - y) * (x - y); });
  if constexpr (formula == Formula::manhattan)
    return fold<A, Add>(q, r, n, [](auto x, auto y) { return magnitude(x - y); });
  if constexpr (formula == Formula::chebyshev)
    return fold<A, Max>(q, r, n, [](auto x, auto y) { return magnitude(x - y); });
  if constexpr (formula == Formula::hamming)
    return fold<A, Add>(q, r, n, [](auto x, auto y) {
      const decltype(x) zero{};
      return x != y ? zero + 1 : zero;
    });
  if constexpr (formula == Formula::canberra)
    return fold<double, Add>(q, r, n, [](auto x, auto y) {
      const auto size = magnitude(x) + magnitude(y);
      return size == 0.0 ? decltype(x){} : magnitude(x - y) / size;
    });
  if constexpr (formula == Formula::minkowski)
    return fold<double, Add>(q, r, n, [p](auto x, auto y) {
      auto powers = magnitude(x - y);
      for (std::size_t l = 0; l < sizeof powers / sizeof powers[0]; ++l)
        powers[l] = __builtin_pow(powers[l], p);
      return powers;
    });
  if constexpr (formula == Formula::cosine) return cosine_distance<A>(q, r, n, qq);
  if constexpr (formula == Formula::inner_product) return -dot<A>(q, r, n);
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
  if constexpr (formula == Formula::cosine) qq = dot<Sum<Q, R>>(q, q, n_features);
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

}  // namespace
}  // namespace boundary_forest::kernels
