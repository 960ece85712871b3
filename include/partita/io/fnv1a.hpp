// SPDX-License-Identifier: Apache-2.0
#pragma once
/// FNV-1a of 64 bits.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace partita::io {

/// A checksum of bytes in their order: h = (h xor byte) p, from an offset. Each step is a bijection of h, so
/// that a change of one byte is always detected; it does not protect from forgery. Local. Source: Fowler,
/// Noll, Vo; draft-eastlake-fnv.
class fnv1a_64 {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) hash_ = (hash_ ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  }

  /// In 16 hexadecimal digits.
  std::string text() const {
    std::string digits(16, '0');
    for (std::size_t k = 0; k < 16; ++k) digits[k] = "0123456789abcdef"[hash_ >> (60 - 4 * k) & 15];
    return digits;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace partita::io
