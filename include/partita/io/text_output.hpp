// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Writes files of lines.

#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "partita/io/whole_file.hpp"

namespace partita::io::detail {

/// Appends a number, with the fewest digits that give the same number again.
template <class T>
void append_number(std::string& text, T number) {
  std::array<char, 32> digits;
  text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

/// Calls take(std::string_view) for pieces of `text` and then of the lines 0 to count - 1, in their order.
/// append(text, k) adds line k to the next piece.
template <class Append, class Take>
void for_pieces(std::string text, std::size_t count, const Append& append, const Take& take) {
  for (std::size_t k = 0; k < count; ++k) {
    append(text, k);
    if (text.size() < std::size_t{1} << 16) continue;
    take(std::string_view(text));
    text.clear();
  }
  take(std::string_view(text));
}

/// Writes these pieces to the file `path`, as write_whole_file does.
template <class Append>
void write_lines(const std::filesystem::path& path, const std::string& text, std::size_t count,
                 const Append& append) {
  write_whole_file(path, [&](const auto& write) {
    for_pieces(text, count, append, [&](std::string_view piece) { write(std::as_bytes(std::span(piece))); });
  });
}

}  // namespace partita::io::detail
