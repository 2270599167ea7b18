// Randomness as a function of what it is for, not of when it is drawn: hash64(seed, tree, ...).
//
// A keyed hash instead of a stream of draws is what makes the forest independent of batches,
// threads and the order in which children are looked at (promise 2). reference/ has the same
// functions.
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace boundary_forest {

// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that mixes every
// bit.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// Absorbs one word into a running hash.
constexpr std::uint64_t absorb(std::uint64_t hash, std::uint64_t word) {
  return mix64((hash + 0x9E3779B97F4A7C15ULL) ^ word);
}

template <class... Words>
constexpr std::uint64_t hash64(Words... words) {
  std::uint64_t hash = 0;
  ((hash = absorb(hash, static_cast<std::uint64_t>(words))), ...);
  return hash;
}

// A random order of 0 .. n-1 that belongs to one tree (Fisher-Yates).
inline std::vector<std::uint32_t> shuffled(std::uint32_t n, std::uint64_t seed,
                                           std::uint64_t tree) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t j = n; j > 1; --j) {
    const auto pick = static_cast<std::uint32_t>(hash64(seed, tree, j) % j);
    std::swap(order[j - 1], order[pick]);
  }
  return order;
}

// The fingerprint of a row: where it is not zero, and the values there as doubles. So a row has the
// same fingerprint in whatever element type it arrives, and after features were added that are zero.
template <class T>
std::uint64_t row_fingerprint(const T* row, std::size_t n, std::uint64_t hash = 0) {
  for (std::size_t i = 0; i < n; ++i)
    if (row[i] != T{0})
      hash = absorb(absorb(hash, i), std::bit_cast<std::uint64_t>(static_cast<double>(row[i])));
  return hash;
}

}  // namespace boundary_forest
