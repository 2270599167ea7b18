// A float16, IEEE 754's binary16, in which rows may be stored. It is not computed with: it becomes
// the float32 that has its value, exactly.
//
// Written out because not every compiler has such a type. What the kernels call is always inlined
// (see kernels/lanes.hpp), and no denormal float32 is made on the way: a library may have set the
// processor to take those for zero.
#pragma once

#include <cstdint>

namespace boundary_forest {

class Half {
 public:
  Half() = default;
  // Digits that do not fit are cut off; the value must be within +-65504.
  constexpr explicit Half(double value) : bits_(bits_of(static_cast<float>(value))) {}

  __attribute__((always_inline)) constexpr explicit operator float() const {
    const std::uint32_t magnitude = bits_ & 0x7FFFU;
    const std::uint32_t sign = (bits_ & 0x8000U) << 16;
    const float size =
        magnitude < 0x400U
            ? __builtin_bit_cast(float, (magnitude << 13) + (113U << 23)) - 0x1p-14F  // subnormal
            : __builtin_bit_cast(float,
                                 (magnitude << 13) + ((magnitude < 0x7C00U ? 112U : 224U) << 23));
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, size) | sign);
  }
  __attribute__((always_inline)) constexpr explicit operator double() const {
    return static_cast<double>(static_cast<float>(*this));
  }

  friend constexpr bool operator==(Half a, Half b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }

 private:
  static constexpr std::uint16_t bits_of(float value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    const std::uint32_t size = bits & 0x7FFFFFFFU;
    if (size >= (113U << 23)) return static_cast<std::uint16_t>(sign | (size - (112U << 23)) >> 13);
    // In units of the least number that is above zero, of which there are fewer than 1024.
    const float units = __builtin_bit_cast(float, size) * 0x1p24F;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(units));
  }

  std::uint16_t bits_;
};

}  // namespace boundary_forest
