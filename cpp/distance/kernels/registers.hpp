// 16 lanes in the registers that hold them, and how rows of every element type get there.
//
// int8 and float16 become float32 or double on the way, exactly. Like lanes.hpp, this is compiled once
// for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/half.hpp"

namespace boundary_forest::kernels {
namespace {

// With the checks of a sanitizer in every line, compilers take minutes for functions that are inlined whole
// and unrolled, and the kernels need not be fast there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BF_INLINE inline
#define BF_UNROLL
#else
#define BF_INLINE inline __attribute__((always_inline))
#define BF_UNROLL _Pragma("GCC unroll 16")
#endif

constexpr std::size_t n_lanes = 16;
#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

template <class T, std::size_t n>
struct Vector {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};

// 16 lanes in the registers that hold them. One vector of 16 would say the same, but compilers keep
// vectors that are wider than a register in memory.
template <class A>
struct Lanes {
  static constexpr std::size_t per_register = register_bytes / sizeof(A);
  static constexpr std::size_t n_registers = n_lanes / per_register;
  using Register = typename Vector<A, per_register>::type;
};

// What elements of type T lie in memory as.
template <class T>
using Raw = std::conditional_t<std::is_same_v<T, Half>, std::uint16_t, T>;

#if defined(__AVX2__) && !defined(__AVX512F__)
// The first n < 8 bytes or pairs of bytes, without reading beyond them: there is no masked load of
// those, and putting them into memory one by one would have the load of all wait.
template <std::size_t width, class Integer>
BF_INLINE typename Vector<Integer, width>::type load_few(const Integer* from, std::size_t n) {
  const auto up_to_3 = [](const Integer* from, std::size_t n) __attribute__((always_inline)) {
    std::uint64_t value = 0;
    if (n >= 2) __builtin_memcpy(&value, from, 2 * sizeof(Integer));
    if (n % 2 == 0) return value;
    const std::uint64_t last = static_cast<std::make_unsigned_t<Integer>>(from[n - 1]);
    return value | last << (n - 1) * 8 * sizeof(Integer);
  };
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if (n < 4) {
    low = up_to_3(from, n);
  } else {
    __builtin_memcpy(&low, from, 4 * sizeof(Integer));
    const std::uint64_t rest = up_to_3(from + 4, n - 4);
    if constexpr (sizeof(Integer) == 2)
      high = rest;
    else
      low |= rest << 32;
  }
  using Part = typename Vector<Integer, width>::type;
  if constexpr (sizeof(Part) == 16)
    return (Part)_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  else if constexpr (sizeof(Part) == 8)
    return __builtin_bit_cast(Part, low);
  else
    return __builtin_bit_cast(Part, static_cast<std::uint32_t>(low));
}
#endif

// The first n < width elements, filled up with zeros.
template <class T, std::size_t width>
BF_INLINE typename Vector<Raw<T>, width>::type load_part(const T* from, std::size_t n) {
  using Part = typename Vector<Raw<T>, width>::type;
  const auto* raw = reinterpret_cast<const Raw<T>*>(from);
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float> && width == 16)
    return (Part)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), from);
  if constexpr (std::is_same_v<T, double> && width == 8)
    return (Part)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << n) - 1), from);
  if constexpr (std::is_same_v<T, Half> && width == 16)
    return (Part)_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1U << n) - 1), from);
  if constexpr (std::is_same_v<T, Half> && width == 8)
    return (Part)_mm_maskz_loadu_epi16(static_cast<__mmask8>((1U << n) - 1), from);
  if constexpr (std::is_same_v<T, std::int8_t> && width == 16)
    return (Part)_mm_maskz_loadu_epi8(static_cast<__mmask16>((1U << n) - 1), from);
  if constexpr (std::is_same_v<T, std::int8_t> && width == 8)
    return __builtin_bit_cast(
        Part, _mm_cvtsi128_si64(_mm_maskz_loadu_epi8(static_cast<__mmask16>((1U << n) - 1), from)));
#elif defined(__AVX2__)
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  if constexpr (std::is_same_v<T, float> && width == 8)
    return (Part)_mm256_maskload_ps(
        from, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), places));
  if constexpr (std::is_same_v<T, double> && width == 4)
    return (Part)_mm256_maskload_pd(
        from, _mm256_cvtepi32_epi64(_mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(n)),
                                                    _mm256_castsi256_si128(places))));
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, std::int8_t>)
    return load_few<width>(raw, n);
#endif
  Part part{};
  for (std::size_t l = 0; l < width; ++l)
    if (l < n) part[l] = raw[l];
  return part;
}

// Integers of 32 bits that have the values of shorter ones. Compilers convert a register of those well
// if the processor has an instruction for it, and else one by one.
template <std::size_t width, class Integer>
BF_INLINE typename Vector<std::int32_t, width>::type widened(
    typename Vector<Integer, width>::type part) {
  using Integers = typename Vector<std::int32_t, width>::type;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<Integer, std::int8_t> && width == 16)
    return (Integers)_mm512_cvtepi8_epi32((__m128i)part);
#endif
#if defined(__AVX2__)
  if constexpr (std::is_same_v<Integer, std::int8_t> && width == 8)
    return (Integers)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(__builtin_bit_cast(long long, part)));
  if constexpr (std::is_same_v<Integer, std::int8_t> && width == 4)
    return (Integers)_mm_cvtepi8_epi32(_mm_cvtsi32_si128(__builtin_bit_cast(int, part)));
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  // Each gets zeros below it, and is then shifted down, with its sign if it has one.
  using Pairs = typename Vector<std::int16_t, 8>::type;
  using Bytes = typename Vector<std::int8_t, 16>::type;
  if constexpr (width == 4 && sizeof(Integer) == 2) {
    using Words = typename Vector<std::uint32_t, 4>::type;
    const typename Vector<std::int64_t, 2>::type both = {__builtin_bit_cast(std::int64_t, part), 0};
    return (
        Integers)((Words)__builtin_shufflevector(Pairs{}, (Pairs)both, 0, 8, 1, 9, 2, 10, 3, 11) >>
                  16);
  } else if constexpr (width == 4) {
    const Integers all = {__builtin_bit_cast(std::int32_t, part), 0, 0, 0};
    const auto pairs = (Pairs)__builtin_shufflevector(Bytes{}, (Bytes)all, 0, 16, 1, 17, 2, 18, 3,
                                                      19, 4, 20, 5, 21, 6, 22, 7, 23);
    return (Integers)__builtin_shufflevector(Pairs{}, pairs, 0, 8, 1, 9, 2, 10, 3, 11) >> 24;
  }
#endif
  return __builtin_convertvector(part, Integers);
}

// float16 as float32: what Half does for one number, or the processor's own instruction.
template <std::size_t width>
BF_INLINE typename Vector<float, width>::type floats_of(
    typename Vector<std::uint16_t, width>::type halves) {
  using Floats = typename Vector<float, width>::type;
#if defined(__F16C__)
#if defined(__AVX512F__)
  if constexpr (width == 16) return (Floats)_mm512_cvtph_ps((__m256i)halves);
#endif
  if constexpr (width == 8) return (Floats)_mm256_cvtph_ps((__m128i)halves);
  if constexpr (width == 4)
    return (Floats)_mm_cvtph_ps(_mm_cvtsi64_si128(__builtin_bit_cast(long long, halves)));
#else
  using Words = typename Vector<std::int32_t, width>::type;
  const Words words = widened<width, std::uint16_t>(halves);
  const Words magnitude = words & 0x7FFF;
  const Words sign = (words & 0x8000) << 16;
  const Words shifted = magnitude << 13;
  const Words normal = shifted + (112 << 23) + ((magnitude > 0x7BFF) & (112 << 23));
  const Floats subnormal = (Floats)(shifted + (113 << 23)) - 0x1p-14F;
  const Words is_subnormal = magnitude < 0x400;
  return (Floats)(((Words)subnormal & is_subnormal) | (normal & ~is_subnormal) | sign);
#endif
}

// A register of what lay in memory.
template <class A, class T, class Part>
BF_INLINE typename Lanes<A>::Register as_lanes(Part part) {
  constexpr std::size_t width = Lanes<A>::per_register;
  using Register = typename Lanes<A>::Register;
  if constexpr (std::is_same_v<T, Half>)
    return __builtin_convertvector(floats_of<width>(part), Register);
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return __builtin_convertvector((widened<width, std::int8_t>(part)), Register);
  else
    return __builtin_convertvector(part, Register);
}

// Register r of the 16 lanes that begin at `from`.
template <class A, class T>
BF_INLINE typename Lanes<A>::Register load(const T* from, std::size_t r) {
  typename Vector<Raw<T>, Lanes<A>::per_register>::type part;
  __builtin_memcpy(&part, from + r * Lanes<A>::per_register, sizeof part);
  return as_lanes<A, T>(part);
}

// Likewise where only n features are left, filled up with zeros, which add nothing to any formula.
template <class A, class T>
BF_INLINE typename Lanes<A>::Register load_some(const T* from, std::size_t r, std::size_t n) {
  constexpr std::size_t width = Lanes<A>::per_register;
  const std::size_t begin = r * width;
  if (begin + width <= n) return load<A>(from, r);
  if (begin >= n) return typename Lanes<A>::Register{};
  return as_lanes<A, T>(load_part<T, width>(from + begin, n - begin));
}

}  // namespace
}  // namespace boundary_forest::kernels
