// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A checksum of bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace partita::io {

namespace detail {

/// Table k has the remainders of a byte followed by k zero bytes.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_crc32c_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) * 0x82F63B78u);
    tables[0][byte] = remainder;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}

inline constexpr std::array<std::array<std::uint32_t, 256>, 8> crc32c_tables = make_crc32c_tables();

}  // namespace detail

/// CRC-32C (Castagnoli) of `bytes`, eight at a time; `before` is the checksum of the bytes before them. Any
/// burst error of up to 32 bits changes it. Source: Kounavis, Berry, "A Systematic Approach to Building High
/// Performance Software-Based CRC Generators", ISCC (2005).
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const auto& t = detail::crc32c_tables;
  std::uint32_t crc = ~before;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    word ^= crc;
    crc = t[7][word & 255] ^ t[6][word >> 8 & 255] ^ t[5][word >> 16 & 255] ^ t[4][word >> 24 & 255] ^
          t[3][word >> 32 & 255] ^ t[2][word >> 40 & 255] ^ t[1][word >> 48 & 255] ^ t[0][word >> 56];
  }
  for (; at < bytes.size(); ++at)
    crc = (crc >> 8) ^ t[0][(crc ^ std::to_integer<std::uint32_t>(bytes[at])) & 255];
  return ~crc;
}

}  // namespace partita::io
