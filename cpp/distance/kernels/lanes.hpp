// Sums over 16 lanes, of which the kernels consist.
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

#include "distance/kernels/registers.hpp"

namespace boundary_forest::kernels {
namespace {

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

// How a row of another type becomes one of A, exactly: features [begin, begin + n) of it. So one
// kernel for each type of sums serves all types of rows, but for those that have one of their own.
template <class A>
using Convert = void (*)(const std::byte* row, std::size_t begin, std::size_t n, A* out);

template <class A>
struct Conversion {
  Convert<A> query;
  Convert<A> row;
};

// Rows are of the types that the kernel names.
struct AsTheyAre {
  std::nullptr_t query = nullptr;
  std::nullptr_t row = nullptr;
};

// Features. Those of all rows that are compared together fit into the cache.
constexpr std::size_t converted_at_once = 256;

// The lanes of C rows with the features from number `first` on added.
template <class A, std::size_t C>
using RowLanes = typename Lanes<A>::Register[C][Lanes<A>::n_registers];

template <class A, class Fold, std::size_t C, class Q, class R, class Term>
BF_INLINE void add_lanes(const Q* q, const R* const* r, std::size_t first, std::size_t n, Term term,
                         RowLanes<A, C>& lanes) {
  constexpr std::size_t n_registers = Lanes<A>::n_registers;
  std::size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) BF_UNROLL for (std::size_t j = 0; j < n_registers; ++j) {
      const auto x = load<A>(q + i, j);
      BF_UNROLL for (std::size_t c = 0; c < C; ++c) lanes[c][j] = Fold::combine(
          lanes[c][j], term(x, load<A>(r[c] + i, j), Place<A>{first + i, j, n_lanes}));
    }
  if (i < n) BF_UNROLL for (std::size_t j = 0; j < n_registers; ++j) {
      const auto x = load_some<A>(q + i, j, n - i);
      BF_UNROLL for (std::size_t c = 0; c < C; ++c) lanes[c][j] = Fold::combine(
          lanes[c][j], term(x, load_some<A>(r[c] + i, j, n - i), Place<A>{first + i, j, n - i}));
    }
}

template <class A, class Fold, std::size_t C, class Q, class R, class How, class Term>
BF_INLINE void fold_lanes(const Q* q, const R* const* r, std::size_t n, const How& how, Term term,
                          double* out) {
  RowLanes<A, C> lanes = {};
  if constexpr (std::is_same_v<How, AsTheyAre>) {
    add_lanes<A, Fold, C>(q, r, 0, n, term, lanes);
  } else {
    alignas(64) A converted[1 + C][converted_at_once];
    const A* rows[C];
    for (std::size_t c = 0; c < C; ++c) rows[c] = converted[1 + c];
    for (std::size_t first = 0; first < n; first += converted_at_once) {
      const std::size_t length = n - first < converted_at_once ? n - first : converted_at_once;
      how.query(reinterpret_cast<const std::byte*>(q), first, length, converted[0]);
      for (std::size_t c = 0; c < C; ++c)
        how.row(reinterpret_cast<const std::byte*>(r[c]), first, length, converted[1 + c]);
      add_lanes<A, Fold, C>(converted[0], rows, first, length, term, lanes);
    }
  }
  BF_UNROLL for (std::size_t c = 0; c < C; ++c) {
    constexpr auto half = std::make_index_sequence<Lanes<A>::per_register / 2>();
    out[c] = static_cast<double>(
        fold_vector<Fold>(fold_registers<Fold, Lanes<A>::n_registers>(lanes[c]), half));
  }
}

template <class A, class Fold, std::size_t C, class Q, class R, class How, class Term>
BF_INLINE void fold(const Q* q, const R* const* r, std::size_t n, const How& how, Term term,
                    double* out) {
  if constexpr (std::is_integral_v<A>)
    fold_bytes<Fold, C>(q, r, n, term, out);
  else
    fold_lanes<A, Fold, C>(q, r, n, how, term, out);
}

}  // namespace
}  // namespace boundary_forest::kernels
