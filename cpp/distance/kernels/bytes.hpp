// The squared Euclidean distance between rows of bytes, in integers: any order gives the same sum.
//
// |q - r| comes from two saturating subtractions, and pairs of its squares from one multiplication
// of 16-bit numbers. Signed bytes are moved by 128 first, which changes no difference. Like lanes.hpp, this is compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace boundary_forest::kernels {
namespace {

// n is at most 32768, so that a sum fits into 32 bits.
#if defined(__AVX512VNNI__)

template <class Byte>
inline std::int32_t squared_distance(const Byte* q, const Byte* r, std::size_t n) {
  const auto moved = [](__m512i x) __attribute__((always_inline)) {
    return std::is_signed_v<Byte> ? _mm512_xor_si512(x, _mm512_set1_epi8(-128)) : x;
  };
  const __m512i zero = _mm512_setzero_si512();
  __m512i low = zero;
  __m512i high = zero;
  for (std::size_t i = 0; i < n; i += 64) {
    const std::uint64_t inside = n - i >= 64 ? ~0ULL : (1ULL << (n - i)) - 1;
    const __m512i x = moved(_mm512_maskz_loadu_epi8(inside, q + i));
    const __m512i y = moved(_mm512_maskz_loadu_epi8(inside, r + i));
    const __m512i apart = _mm512_or_si512(_mm512_subs_epu8(x, y), _mm512_subs_epu8(y, x));
    const __m512i apart_low = _mm512_unpacklo_epi8(apart, zero);
    const __m512i apart_high = _mm512_unpackhi_epi8(apart, zero);
    low = _mm512_dpwssd_epi32(low, apart_low, apart_low);
    high = _mm512_dpwssd_epi32(high, apart_high, apart_high);
  }
  return _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
}

#elif defined(__AVX2__)

template <class Byte>
inline std::int32_t squared_distance(const Byte* q, const Byte* r, std::size_t n) {
  const auto moved = [](__m256i x) __attribute__((always_inline)) {
    return std::is_signed_v<Byte> ? _mm256_xor_si256(x, _mm256_set1_epi8(-128)) : x;
  };
  const auto as_pairs = [](__m128i x) __attribute__((always_inline)) {
    return std::is_signed_v<Byte> ? _mm_cvtepi8_epi16(x) : _mm_cvtepu8_epi16(x);
  };
  const __m256i zero = _mm256_setzero_si256();
  __m256i low = zero;
  __m256i high = zero;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i x = moved(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + i)));
    const __m256i y = moved(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(r + i)));
    const __m256i apart = _mm256_or_si256(_mm256_subs_epu8(x, y), _mm256_subs_epu8(y, x));
    const __m256i apart_low = _mm256_unpacklo_epi8(apart, zero);
    const __m256i apart_high = _mm256_unpackhi_epi8(apart, zero);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(apart_low, apart_low));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(apart_high, apart_high));
  }
  const __m256i both = _mm256_add_epi32(low, high);
  __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  for (; i + 8 <= n; i += 8) {
    const __m128i x = as_pairs(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + i)));
    const __m128i y = as_pairs(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(r + i)));
    const __m128i apart = _mm_sub_epi16(x, y);
    sums = _mm_add_epi32(sums, _mm_madd_epi16(apart, apart));
  }
  sums = _mm_hadd_epi32(sums, sums);
  std::int32_t sum = _mm_extract_epi32(sums, 0) + _mm_extract_epi32(sums, 1);
  for (; i < n; ++i) sum += (q[i] - r[i]) * (q[i] - r[i]);
  return sum;
}

#else

template <class Byte>
inline std::int32_t squared_distance(const Byte* q, const Byte* r, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (q[i] - r[i]) * (q[i] - r[i]);
  return sum;
}

#endif

}  // namespace
}  // namespace boundary_forest::kernels
