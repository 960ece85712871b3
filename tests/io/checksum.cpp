// SPDX-License-Identifier: Apache-2.0
// CRC-32C: known values, pieces, and errors that it must find.
#include "partita/io/checksum.hpp"

#include <doctest/doctest.h>
#include <string>

namespace test_checksum {

using namespace partita;

std::uint32_t checksum(const std::string& text, std::uint32_t before = 0) {
  return io::crc32c(std::as_bytes(std::span(text)), before);
}

TEST_CASE("CRC-32C: the values of RFC 3720, appendix B.4") {
  CHECK(checksum("") == 0);
  CHECK(checksum("123456789") == 0xE3069283u);
  CHECK(checksum(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(checksum(std::string(32, '\xff')) == 0x62A8AB43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  CHECK(checksum(ascending) == 0x46DD794Eu);
}

TEST_CASE("CRC-32C: of pieces, and of a text with one bit changed") {
  std::string text = "each piece goes on where the one before has ended";
  const std::uint32_t whole = checksum(text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(checksum(text.substr(cut), checksum(text.substr(0, cut))) == whole);
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    CHECK(checksum(text) != whole);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace test_checksum
