// Kernels for AVX2: the portable ones compiled for it, and by hand the one that the compiler does
// not find: squared differences of bytes, 32 at a time. Integer sums come out the same in any
// order.
#include <immintrin.h>

#include "lanes.hpp"

namespace boundary_forest::kernels {
namespace {

// |a - b| of 32 bytes, squared and summed into 8 lanes of 32 bits.
inline __m256i add_squares(__m256i sum, __m256i a, __m256i b) {
  const __m256i difference = _mm256_or_si256(_mm256_subs_epu8(a, b), _mm256_subs_epu8(b, a));
  const __m256i low = _mm256_unpacklo_epi8(difference, _mm256_setzero_si256());
  const __m256i high = _mm256_unpackhi_epi8(difference, _mm256_setzero_si256());
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, low));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(high, high));
}

inline __m256i load32(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

inline __m256i load_some32(const std::uint8_t* from, std::size_t n) {
  alignas(32) std::uint8_t bytes[32] = {};
  __builtin_memcpy(bytes, from, n);
  return load32(bytes);
}

inline std::int64_t sum_of(__m256i lanes) {
  alignas(32) std::uint32_t values[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(values), lanes);
  std::int64_t sum = 0;
  for (const std::uint32_t value : values) sum += value;
  return sum;
}

void squared_euclidean_uint8(const std::byte* query, const std::byte* const* rows, std::size_t n,
                             std::size_t n_features, double, double* out) {
  const auto* q = reinterpret_cast<const std::uint8_t*>(query);
  for (std::size_t j = 0; j < n; ++j) {
    if (j + 1 < n) prefetch_row(rows[j + 1], n_features);
    const auto* r = reinterpret_cast<const std::uint8_t*>(rows[j]);
    std::int64_t total = 0;
    for (std::size_t begin = 0; begin < n_features; begin += segment) {
      const std::size_t end = n_features - begin > segment ? begin + segment : n_features;
      __m256i sum = _mm256_setzero_si256();
      std::size_t i = begin;
      for (; i + 32 <= end; i += 32) sum = add_squares(sum, load32(q + i), load32(r + i));
      if (i < end) sum = add_squares(sum, load_some32(q + i, end - i), load_some32(r + i, end - i));
      total += sum_of(sum);
    }
    out[j] = static_cast<double>(total);
  }
}

}  // namespace

Kernel avx2_kernel(Formula formula, ElementType stored, ElementType query) {
  if (formula == Formula::euclidean && stored == ElementType::uint8 && query == stored)
    return squared_euclidean_uint8;
  return kernel_for(formula, stored, query);
}

}  // namespace boundary_forest::kernels
