// SPDX-License-Identifier: Apache-2.0
#pragma once
// Floating-point numbers of 16 bits: IEEE's, and the upper half of a float.
#include <bit>
#include <cmath>
#include <cstdint>

namespace emulator::ptx {

/// 1 bit of sign, 5 of exponent, 10 of fraction.
struct half {
  /// To the nearest, ties to even.
  static std::uint16_t of(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    const float size = std::fabs(x);
    if (std::isnan(x)) return 0x7fff;
    if (size >= 65520.f) return static_cast<std::uint16_t>(sign | 0x7c00);
    if (size < 0x1p-14f)
      return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(size * 0x1p24f)));
    std::uint32_t rounded = std::bit_cast<std::uint32_t>(size);
    rounded += 0xfff + (rounded >> 13 & 1);
    return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
  }
  static float number(std::uint16_t h) {
    const float sign = (h & 0x8000) != 0 ? -1.f : 1.f;
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-24f;
    if (exponent == 31) return fraction == 0 ? sign * HUGE_VALF : std::bit_cast<float>(0x7fffffffu);
    return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
};

/// 1 bit of sign, 8 of exponent, 7 of fraction.
struct brain_half {
  /// To the nearest, ties to even.
  static std::uint16_t of(float x) {
    if (std::isnan(x)) return 0x7fff;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  static float number(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
};

}  // namespace emulator::ptx
