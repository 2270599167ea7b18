// Rows as bytes, and which of a node's children may be closest to each of many queries.
//
// Squared distances between codes are whole numbers, |q|^2 + |r|^2 - 2 q.r, so any order of
// summation gives the same, and products of bytes are what processors are fastest at. For uint8
// rows the codes are the rows. For floats they are a filter: rows are at least as far apart as
// their codes, but for the rounding.
//
// One factor of each product is signed, as the instructions want it: with q' = q - 128,
// |q - r|^2 = |q|^2 + sum r (r - 256) - 2 q'.r.
//
// Like lanes.hpp, this is compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "distance/kernels/kernel.hpp"
#include "distance/kernels/lanes.hpp"

namespace boundary_forest::kernels {
namespace {

constexpr std::size_t tile_rows = 4;
constexpr std::size_t tile_queries = 4;

// out[i * most_coded_rows + j] = q'_i . r_j for M queries and 4 rows.
#if defined(__AVX512VNNI__)

BF_INLINE __m128i sums_of(__m512i a, __m512i b, __m512i c, __m512i d) {
  const auto halve = [](__m512i x) __attribute__((always_inline)) {
    return _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  };
  const __m256i ab = _mm256_hadd_epi32(halve(a), halve(b));
  const __m256i cd = _mm256_hadd_epi32(halve(c), halve(d));
  const __m256i abcd = _mm256_hadd_epi32(ab, cd);
  return _mm_add_epi32(_mm256_castsi256_si128(abcd), _mm256_extracti128_si256(abcd, 1));
}

template <std::size_t M>
BF_INLINE void dots(const CodedQuery* queries, const std::uint8_t* rows, std::size_t stride,
                    std::int32_t* out) {
  __m512i sums[M][tile_rows] = {};
  for (std::size_t at = 0; at < stride; at += 64) {
    __m512i r[tile_rows];
    for (std::size_t j = 0; j < tile_rows; ++j) r[j] = _mm512_loadu_si512(rows + j * stride + at);
    for (std::size_t i = 0; i < M; ++i) {
      const __m512i q = _mm512_loadu_si512(queries[i].codes + at);
      for (std::size_t j = 0; j < tile_rows; ++j)
        sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], r[j], q);
    }
  }
  for (std::size_t i = 0; i < M; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * most_coded_rows),
                     sums_of(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
}

#elif defined(__AVX2__)

BF_INLINE __m128i sums_of(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i abcd = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
  return _mm_add_epi32(_mm256_castsi256_si128(abcd), _mm256_extracti128_si256(abcd, 1));
}

// Two queries at a time: more sums than that do not fit into the registers.
template <std::size_t M>
BF_INLINE void dots(const CodedQuery* queries, const std::uint8_t* rows, std::size_t stride,
                    std::int32_t* out) {
  constexpr std::size_t at_once = M < 2 ? M : 2;
  for (std::size_t first = 0; first < M; first += at_once) {
    __m256i sums[at_once][tile_rows] = {};
    for (std::size_t at = 0; at < stride; at += 16) {
      __m256i q[at_once];
      for (std::size_t i = 0; i < at_once; ++i)
        q[i] = _mm256_cvtepi8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(queries[first + i].codes + at)));
      for (std::size_t j = 0; j < tile_rows; ++j) {
        const __m256i r = _mm256_cvtepu8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + j * stride + at)));
        for (std::size_t i = 0; i < at_once; ++i)
          sums[i][j] = _mm256_add_epi32(sums[i][j], _mm256_madd_epi16(q[i], r));
      }
    }
    for (std::size_t i = 0; i < at_once; ++i)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + (first + i) * most_coded_rows),
                       sums_of(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  }
}

#else

template <std::size_t M>
BF_INLINE void dots(const CodedQuery* queries, const std::uint8_t* rows, std::size_t stride,
                    std::int32_t* out) {
  for (std::size_t i = 0; i < M; ++i)
    for (std::size_t j = 0; j < tile_rows; ++j) {
      std::int32_t sum = 0;
      for (std::size_t at = 0; at < stride; ++at)
        sum += std::int32_t{queries[i].codes[at]} * std::int32_t{rows[j * stride + at]};
      out[i * most_coded_rows + j] = sum;
    }
}

#endif

// Bit j is set where flags[j] is 1; flags beyond n are 0.
BF_INLINE std::uint64_t mask_of(const std::uint8_t* flags, std::size_t n) {
  std::uint64_t mask = 0;
  for (std::size_t j = 0; j < n; j += 8) {
    std::uint64_t eight;
    __builtin_memcpy(&eight, flags + j, sizeof eight);
    mask |= (eight * 0x0102040810204080U >> 56) << j;
  }
  return mask;
}

template <std::size_t M>
BF_INLINE void compare_some(const CodedQuery* queries, const CodedRows& rows, std::int32_t* squares,
                            std::uint64_t* closest) {
  for (std::size_t j = 0; j < rows.n; j += tile_rows)
    dots<M>(queries, rows.codes + j * rows.stride, rows.stride, squares + j);
  for (std::size_t i = 0; i < M; ++i, squares += most_coded_rows) {
    std::int32_t least = 0x7FFFFFFF;
    for (std::size_t j = 0; j < rows.n; ++j) {
      squares[j] = queries[i].square + rows.terms[j] - 2 * squares[j];
      least = squares[j] < least ? squares[j] : least;
    }
    alignas(64) std::uint8_t flags[most_coded_rows] = {};
    for (std::size_t j = 0; j < rows.n; ++j) flags[j] = squares[j] == least;
    closest[i] = mask_of(flags, rows.n);
  }
}

void compare(const CodedQuery* queries, std::size_t m, const CodedRows& rows, std::int32_t* squares,
             std::uint64_t* closest) {
  std::size_t i = 0;
  for (; i + tile_queries <= m; i += tile_queries)
    compare_some<tile_queries>(queries + i, rows, squares + i * most_coded_rows, closest + i);
  for (; i < m; ++i) compare_some<1>(queries + i, rows, squares + i * most_coded_rows, closest + i);
}

std::uint64_t within(const std::int32_t* squares, std::size_t n, float reach, const float* errors) {
  alignas(64) std::uint8_t flags[most_coded_rows] = {};
  for (std::size_t j = 0; j < n; ++j) {
    const float limit = reach + errors[j];
    flags[j] = static_cast<float>(squares[j]) <= limit * limit;
  }
  return mask_of(flags, n);
}

// x / step - low is rounded by at most 2^-24 of itself (2^-53 for float64), as step is a power of
// two; that and the rounding of the sums are covered by what is added in the end. x * scale - low is
// computed in float64, as x * scale is rounded too.
template <class T, bool weighted, class Element>
BF_INLINE float encode(const Element* row, std::size_t n, const Coding& coding,
                       std::uint8_t* codes) {
  using V = typename Lanes<T>::Register;
  constexpr std::size_t width = Lanes<T>::per_register;
  using Integers = typename Vector<std::int32_t, width>::type;
  using Bytes = typename Vector<std::uint8_t, width>::type;
  const T scale = static_cast<T>(1.0 / coding.step);
  const T low = static_cast<T>(coding.low);
  V sums{};
  const auto code = [&](const V& x, const V& scale, const V& low) __attribute__((always_inline)) {
    const V y = x * scale - low;
    const V above = y < 0 ? V{} : y;
    const V inside = above > 255 ? V{} + 255 : above;
    const Integers c = __builtin_convertvector(inside + T(0.5), Integers);
    const V rest = inside - __builtin_convertvector(c, V);
    sums += rest * rest;
    return __builtin_convertvector(c, Bytes);
  };
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
    const V x = load<T>(row + i, 0);
    Bytes bytes;
    if constexpr (weighted)
      bytes = code(x, load<T>(coding.scales + i, 0), load<T>(coding.lows + i, 0));
    else
      bytes = code(x, V{} + scale, V{} + low);
    __builtin_memcpy(codes + i, &bytes, sizeof bytes);
  }
  if (i < n) {
    V x{};
    V scales = V{} + scale;
    V lows{};
    for (std::size_t l = 0; i + l < n; ++l) {
      x[l] = static_cast<T>(row[i + l]);
      if constexpr (weighted) scales[l] = coding.scales[i + l];
      lows[l] = weighted ? static_cast<T>(coding.lows[i + l]) : low;
    }
    const Bytes bytes = code(x, scales, lows);  // 0 and no rest beyond n
    for (std::size_t l = 0; i + l < n; ++l) codes[i + l] = bytes[l];
  }
  T sum = 0;
  for (std::size_t l = 0; l < width; ++l) sum += sums[l];
  const float error = __builtin_sqrtf(static_cast<float>(sum)) * 1.001F;
  return error + 4e-5F * __builtin_sqrtf(static_cast<float>(n));
}

template <class T, class Element>
BF_INLINE float encode_as(const std::byte* row, std::size_t n, const Coding& coding,
                          std::uint8_t* codes) {
  const auto* elements = reinterpret_cast<const Element*>(row);
  return coding.scales != nullptr ? encode<double, true>(elements, n, coding, codes)
                                  : encode<T, false>(elements, n, coding, codes);
}

float encode_row(const std::byte* row, ElementType type, std::size_t n, const Coding& coding,
                 std::uint8_t* codes) {
  switch (type) {
    case ElementType::uint8:
      if (coding.scales != nullptr)
        return encode<double, true>(reinterpret_cast<const std::uint8_t*>(row), n, coding, codes);
      __builtin_memcpy(codes, row, n);
      return 0.0F;
    case ElementType::int8:
      // Rows are their own codes but for 128, where the coding is this one.
      if (coding.scales == nullptr && coding.step == 1.0 && coding.low == -128.0) {
        for (std::size_t i = 0; i < n; ++i)
          codes[i] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(row[i]) ^ 0x80U);
        return 0.0F;
      }
      return encode_as<float, std::int8_t>(row, n, coding, codes);
    case ElementType::float16:
      return encode_as<float, Half>(row, n, coding, codes);
    case ElementType::float32:
      return encode_as<float, float>(row, n, coding, codes);
    case ElementType::float64:
      return encode_as<double, double>(row, n, coding, codes);
  }
  __builtin_unreachable();
}

std::int32_t row_term(const std::uint8_t* codes, std::size_t stride) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < stride; ++i)
    sum += std::int32_t{codes[i]} * (std::int32_t{codes[i]} - 256);
  return sum;
}

constexpr CodeKernels code_kernels = {encode_row, row_term, compare, within};

}  // namespace
}  // namespace boundary_forest::kernels
