// Weights of features as integers: logarithms in sixteenths of an octave.
//
// Learned weights must be the same bits everywhere (promise 2), so nothing here uses the C library's
// exp or log: a weight is table[u mod 16] * 2^(u div 16), and the logarithm of a number is found by
// comparing it with the table. reference/weights.py has the same table.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace boundary_forest {

using LogWeight = std::int32_t;             // in sixteenths of an octave
using LogWeights = std::vector<LogWeight>;  // one for each feature

inline constexpr LogWeight per_octave = 16;

// 2^(j / 32): even entries are the table of weights, odd ones where rounding changes.
inline constexpr double powers_of_two[] = {
    1.0,
    1.0218971486541166,
    1.0442737824274138,
    1.0671404006768237,
    1.0905077326652577,
    1.1143867425958924,
    1.1387886347566916,
    1.1637248587775775,
    1.189207115002721,
    1.215247359980469,
    1.241857812073484,
    1.2690509571917332,
    1.2968395546510096,
    1.3252366431597413,
    1.3542555469368927,
    1.383909881963832,
    1.4142135623730951,
    1.4451808069770467,
    1.4768261459394993,
    1.5091644275934228,
    1.5422108254079407,
    1.5759808451078865,
    1.6104903319492543,
    1.645755478153965,
    1.681792830507429,
    1.718619298122478,
    1.7562521603732995,
    1.7947090750031072,
    1.8340080864093424,
    1.8741676341103,
    1.9152065613971474,
    1.9571441241754002,
};

inline double weight_of(LogWeight u) {
  const int octave = (u >= 0 ? u : u - (per_octave - 1)) / per_octave;
  return std::ldexp(powers_of_two[2 * (u - octave * per_octave)], octave);
}

// The logarithm nearest to that of x > 0, which must be finite.
inline LogWeight log_weight_of(double x) {
  int exponent = 0;
  const double mantissa = 2.0 * std::frexp(x, &exponent);  // in [1, 2)
  LogWeight u = 0;
  while (u < per_octave && mantissa >= powers_of_two[2 * u + 1]) ++u;
  return (exponent - 1) * per_octave + u;
}

// Learned ones stay within 2^-190 and 2^190.
inline constexpr LogWeight most_log_weight = 190 * per_octave;

// All weights are 1, as without weights.
inline bool is_plain(std::span<const LogWeight> logs) {
  return std::all_of(logs.begin(), logs.end(), [](LogWeight log) { return log == 0; });
}

// What a feature gets that has been constant so far: so a forest that is widened has the weights that
// it would have if the new features had been zero from the start.
inline LogWeight least_log_weight(std::span<const LogWeight> logs) {
  return logs.empty() ? 0 : *std::min_element(logs.begin(), logs.end());
}

inline std::vector<double> weights_of(std::span<const LogWeight> logs) {
  std::vector<double> weights(logs.size());
  std::transform(logs.begin(), logs.end(), weights.begin(), weight_of);
  return weights;
}

}  // namespace boundary_forest
