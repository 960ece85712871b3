// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A number format of 2 bytes, to store and send what is computed with as float.

#include <bit>
#include <cstdint>
#include <type_traits>

namespace partita::base {

/// The upper 16 bits of a float: its sign, its exponent and 7 bits of its fraction, so that numbers of every
/// magnitude are kept to 2^-8 of it, less exactly where they are subnormal. Every bfloat16 is a float; there
/// is no arithmetic but that of float.
class bfloat16 {
 public:
  /// Uninitialised.
  bfloat16() = default;
  /// The nearest to x, of two equally near ones that whose last bit is 0; an infinity from 2^128 - 2^119 on,
  /// and a NaN for a NaN.
  explicit constexpr bfloat16(float x) : bits_(rounded(std::bit_cast<std::uint32_t>(x))) {}

  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 x(0.0F);
    x.bits_ = bits;
    return x;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

 private:
  static constexpr std::uint16_t rounded(std::uint32_t x) {
    const std::uint32_t nearest = (x + 0x7fffU + (x >> 16 & 1U)) >> 16, quiet = x >> 16 | 0x40U;
    return static_cast<std::uint16_t>((x & 0x7fffffffU) > 0x7f800000U ? quiet : nearest);
  }

  std::uint16_t bits_;
};

static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);

}  // namespace partita::base
