// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Tables of numbers in text, separated by commas.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"

namespace partita::io {

/// Numbers in rows of equal length.
template <class T>
struct number_table {
  global_index rows = 0;
  global_index cols = 0;
  std::vector<T> values;  ///< [rows, cols], row-major
};

namespace detail {

/// Parses lines of as many numbers as the first line that is not blank.
template <class T>
class csv_lines {
 public:
  explicit csv_lines(const text_source& text) {
    for_blocks(text, {0, static_cast<global_index>(text.size())}, [&](const text_block& block) {
      for (std::size_t begin = 0, next; cols_ == 0 && begin < block.lines.size(); begin = next) {
        next = block.lines.find('\n', begin) + 1;
        const char* at = block.lines.data() + begin;
        skip_blanks(at);
        if (!at_line_end(at))
          cols_ = 1 + std::count(block.lines.data() + begin, block.lines.data() + next, ',');
      }
      return cols_ == 0;
    });
  }

  global_index cols() const { return cols_; }

  bool operator()(std::vector<T>& values, const text_block& block) const {
    if (values.empty())  // a number has one byte at least behind it
      values.reserve(std::min(expected_lines(block) * static_cast<std::size_t>(cols_),
                              static_cast<std::size_t>(block.range.size()) + 1));
    const char* const end = block.lines.data() + block.lines.size();
    for (const char* at = block.lines.data(); at != end;) {
      const char* const line = at;
      skip_blanks(at);
      for (global_index col = 0; col < cols_ && !(col == 0 && at_line_end(at)); ++col) {
        if (col > 0 && *at++ != ',') refuse_line(block, line);
        skip_blanks(at);
        T value{};
        if (!take(at, end, value)) refuse_line(block, line);
        values.push_back(value);
        skip_blanks(at);
      }
      if (!at_line_end(at)) refuse_line(block, line);
      at += *at == '\r' ? 2 : 1;
    }
    return true;
  }

 private:
  static bool take(const char*& at, const char* end, T& value) {
    if constexpr (std::integral<T>) {
      return take_integer(at, value) == std::errc{};
    } else {
      if (*at != ',' && !at_line_end(at)) return take_real(at, end, value) == std::errc{};
      value = std::numeric_limits<T>::quiet_NaN();
      return true;
    }
  }

  [[noreturn]] void refuse_line(const text_block& block, const char* line) const {
    const auto begin = static_cast<std::size_t>(line - block.lines.data());
    std::string_view shown = block.lines.substr(begin, block.lines.find('\n', begin) - begin);
    if (shown.ends_with('\r')) shown.remove_suffix(1);
    throw malformed_line(block.position + begin,
                         "expected " + std::to_string(cols_) + (std::integral<T> ? " whole" : "") +
                             (cols_ == 1 ? " number" : " numbers") +
                             (cols_ == 1 ? "" : " and commas between") + ", found " + quoted(shown));
  }

  global_index cols_ = 0;
};

}  // namespace detail

/// The table in `text`, which `name` denotes in messages: numbers with commas between them, in each line as
/// many as in the first; nothing between two commas, nan and infinite values are read where T is real. Blank
/// lines are skipped. Each of `threads` threads parses a range of the lines, and the result is the same for
/// any number of them. Local. Throws input_error naming file and line where one is malformed.
template <class T>
requires std::same_as<T, std::int64_t> || std::floating_point<T> number_table<T> parse_csv(
    std::string_view text, const std::string& name, int threads = 1) {
  const text_source source(text, name);
  const detail::csv_lines<T> lines(source);
  auto parsed = parse_ranges<std::vector<T>>(
      source, 0, threads,
      [&](std::vector<T>& values, const text_block& block) { return lines(values, block); });
  std::size_t size = 0;
  for (const auto& [range, values, stopped] : parsed) {
    if (stopped) fail_at(source, *stopped);
    size += values.size();
  }
  number_table<T> table{0, lines.cols(), std::move(parsed.front().part)};
  table.values.reserve(size);
  for (auto& [range, values, stopped] : std::span(parsed).subspan(1)) {
    table.values.insert(table.values.end(), values.begin(), values.end());
    values = {};
  }
  if (table.cols > 0) table.rows = static_cast<global_index>(size) / table.cols;
  return table;
}

}  // namespace partita::io
