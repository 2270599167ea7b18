// CRC-32 by carry-less multiplication: V. Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction" (Intel, 2009), with its constants for the polynomial 0x04C11DB7. Four
// registers are folded over 64 bytes at a time; one of them is then reduced.
#include "base/checksum.hpp"

#ifdef BOUNDARY_FOREST_X86
#include <immintrin.h>
#endif

namespace boundary_forest {
namespace {

std::uint32_t bit_by_bit(const std::byte* at, std::size_t n, std::uint32_t crc) {
  for (; n > 0; --n) {
    crc ^= static_cast<std::uint32_t>(*at++);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return crc;
}

#ifdef BOUNDARY_FOREST_X86
#define BF_CARRY_LESS __attribute__((target("pclmul,sse4.1")))

BF_CARRY_LESS __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

BF_CARRY_LESS __m128i fold(__m128i x, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(x, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// n is at least 64 and a multiple of 16.
BF_CARRY_LESS std::uint32_t by_folding(const std::byte* at, std::size_t n, std::uint32_t crc) {
  const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  __m128i x0 = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i x1 = load(at + 16);
  __m128i x2 = load(at + 32);
  __m128i x3 = load(at + 48);
  for (at += 64, n -= 64; n >= 64; at += 64, n -= 64) {
    x0 = fold(x0, by_64, load(at));
    x1 = fold(x1, by_64, load(at + 16));
    x2 = fold(x2, by_64, load(at + 32));
    x3 = fold(x3, by_64, load(at + 48));
  }
  x0 = fold(fold(fold(x0, by_16, x1), by_16, x2), by_16, x3);
  for (; n >= 16; at += 16, n -= 16) x0 = fold(x0, by_16, load(at));

  // 128 bits to 64, to 32, and Barrett's reduction.
  const __m128i low_halves = _mm_setr_epi32(~0, 0, ~0, 0);
  x0 = _mm_xor_si128(_mm_srli_si128(x0, 8), _mm_clmulepi64_si128(x0, by_16, 0x10));
  const __m128i by_4 = _mm_set_epi64x(0, 0x0163cd6124);
  x0 = _mm_xor_si128(_mm_srli_si128(x0, 4),
                     _mm_clmulepi64_si128(_mm_and_si128(x0, low_halves), by_4, 0x00));
  const __m128i polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(x0, low_halves), polynomial, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_halves), polynomial, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(x0, quotient), 1));
}
#endif

}  // namespace

bool has_fast_crc32() {
#ifdef BOUNDARY_FOREST_X86
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#else
  return false;
#endif
}

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  std::size_t folded = 0;
#ifdef BOUNDARY_FOREST_X86
  if (bytes.size() >= 64 && has_fast_crc32()) {
    folded = bytes.size() / 16 * 16;
    crc = by_folding(bytes.data(), folded, crc);
  }
#endif
  return ~bit_by_bit(bytes.data() + folded, bytes.size() - folded, crc);
}

}  // namespace boundary_forest
