// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The lines of a Matrix Market file after its header: one entry per line.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/base/triplet.hpp"
#include "partita/io/market_header.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"
#include "partita/memory/large_pages.hpp"

namespace partita::io {

/// Types as which the values of a Matrix Market file can be read.
template <class T>
concept market_value = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t>;

namespace detail {

/// The entries of a range of lines. `count` excludes their mirror images.
template <class T>
struct market_part {
  std::vector<triplet<T>> entries;
  global_index count = 0;
};

/// Parses the lines after the header.
template <market_value T>
class market_body {
 public:
  explicit market_body(const market_header& header) : header_(header) {}

  bool is_array() const { return header_.format == market_format::array; }

  /// Adds a block's entries; those of an array get no places yet. Returns whether there may be more.
  bool parse(market_part<T>& part, const text_block& block) const {
    if (part.entries.capacity() == 0) reserve(part.entries, room(block.range.size()));
    if (is_array())
      parse_lines<true, false>(part, block);
    else if (header_.field == market_field::pattern)
      parse_lines<false, true>(part, block);
    else
      parse_lines<false, false>(part, block);
    return part.count <= header_.count;
  }

  /// Sets the places of the values of an array, column by column, and mirrors them.
  void place(std::vector<triplet<T>>& values) const {
    const bool all = header_.symmetry == market_symmetry::general;
    const global_index below = header_.symmetry == market_symmetry::skew_symmetric ? 1 : 0;
    global_index row = all ? 0 : below, col = 0;
    const std::size_t count = values.size();
    if (!all) values.reserve(2 * count);
    for (std::size_t e = 0; e < count; ++e) {
      values[e].row = row, values[e].col = col;
      if (!all && row != col) values.push_back({col, row, mirrored(values[e].value)});
      if (++row == header_.shape.rows) ++col, row = all ? 0 : col + below;
    }
  }

 private:
  bool is_skew() const { return header_.symmetry == market_symmetry::skew_symmetric; }
  T mirrored(T value) const { return is_skew() ? -value : value; }

  /// The entries that `bytes` of the text can hold, at most as many as the header says.
  std::size_t room(global_index bytes) const {
    const global_index shortest = is_array() ? 2 : header_.field == market_field::pattern ? 4 : 6;
    const auto most = static_cast<std::size_t>(std::min(header_.count, bytes / shortest + 1));
    return header_.symmetry == market_symmetry::general ? most : 2 * most;
  }

  /// Asks for large pages; without them a fifth of the time is spent on page faults.
  static void reserve(std::vector<triplet<T>>& entries, std::size_t count) {
    entries.reserve(count);
    memory::ask_for_large_pages(entries.data(), count * sizeof(triplet<T>));
  }

  std::errc take_value(const char*& at, const char* end, T& value) const {
    if constexpr (std::floating_point<T>)
      if (header_.field == market_field::real) return take_real(at, end, value);
    std::int64_t whole = 0;
    [[maybe_unused]] const char* again = at;
    const std::errc status = take_integer(at, whole);
    if constexpr (std::floating_point<T>)  // of unsigned-integer, say
      if (status == std::errc::result_out_of_range) {
        const std::errc rounded = take_real(again, end, value);
        return again == at ? rounded : status;
      }
    value = static_cast<T>(whole);
    if constexpr (std::integral<T>)
      if (value != whole || (is_skew() && value == std::numeric_limits<T>::min()))  // which has no negative
        return std::errc::result_out_of_range;
    return status;
  }

  /// The numbers of a line, and nothing else.
  template <bool Array, bool Pattern>
  std::errc take_line(const char*& at, const char* end, triplet<T>& entry) const {
    std::errc status{};
    const auto next = [&](auto take) {
      if (status == std::errc{}) status = take();
      if (status == std::errc{} && !skip_blanks(at) && !at_line_end(at)) status = std::errc::invalid_argument;
    };
    if constexpr (!Array) {
      next([&] { return take_integer(at, entry.row); });
      next([&] { return take_integer(at, entry.col); });
    }
    if constexpr (!Pattern) next([&] { return take_value(at, end, entry.value); });
    return status == std::errc{} && !at_line_end(at) ? std::errc::invalid_argument : status;
  }

  template <bool Array, bool Pattern>
  void parse_lines(market_part<T>& part, const text_block& block) const {
    const matrix_shape shape = header_.shape;
    const bool mirrors = header_.symmetry != market_symmetry::general, skew = is_skew();
    const char* const end = block.lines.data() + block.lines.size();
    for (const char* at = block.lines.data(); at != end;) {
      const char* const line = at;
      skip_blanks(at);
      if (*at == '%' || at_line_end(at)) {
        at = std::find(at, end, '\n') + 1;
        continue;
      }
      triplet<T> entry{0, 0, 1};
      if (const std::errc status = take_line<Array, Pattern>(at, end, entry); status != std::errc{})
        refuse_line(block, line, status);
      at += *at == '\r' ? 2 : 1;
      if constexpr (!Array) {
        if (entry.row < 1 || entry.row > shape.rows || entry.col < 1 || entry.col > shape.cols ||
            (skew && entry.row == entry.col && entry.value != 0))
          refuse_place(block, line, entry);
        --entry.row, --entry.col;
      }
      ++part.count;
      if (!Array && skew && entry.row == entry.col) continue;  // a zero, which some write
      part.entries.push_back(entry);
      if (!Array && mirrors && entry.row != entry.col)
        part.entries.push_back({entry.col, entry.row, mirrored(entry.value)});
    }
  }

  [[noreturn]] void refuse_line(const text_block& block, const char* line, std::errc status) const {
    const auto begin = static_cast<std::size_t>(line - block.lines.data());
    std::string_view shown = block.lines.substr(begin, block.lines.find('\n', begin) - begin);
    if (shown.ends_with('\r')) shown.remove_suffix(1);
    if (status == std::errc::result_out_of_range)
      throw malformed_line(block.position + begin, out_of_range(shown));
    const char* const expected = is_array()                               ? "a value"
                                 : header_.field == market_field::pattern ? "a row and a column"
                                                                          : "a row, a column and a value";
    throw malformed_line(block.position + begin,
                         "expected " + std::string(expected) + ", found " + quoted(shown));
  }

  std::string out_of_range(std::string_view line) const {
    const std::string index = is_array() ? "" : too_large(first_words(line));
    return index.empty() ? "a number is out of range: " + quoted(line) : index;
  }
  /// The row and the column.
  static std::string_view first_words(std::string_view line) {
    std::size_t end = std::min(line.find_first_not_of(" \t"), line.size());
    for (int word = 0; word < 2; ++word) {
      end = std::min(line.find_first_of(" \t", end), line.size());
      end = std::min(line.find_first_not_of(" \t", end), line.size());
    }
    return line.substr(0, end);
  }

  [[noreturn]] void refuse_place(const text_block& block, const char* line, const triplet<T>& entry) const {
    const auto begin = static_cast<std::size_t>(line - block.lines.data());
    const auto is_of = [](global_index k, global_index size) { return k >= 1 && k <= size; };
    const bool inside = is_of(entry.row, header_.shape.rows) && is_of(entry.col, header_.shape.cols);
    throw malformed_line(block.position + begin,
                         inside ? "a skew-symmetric matrix has no entries on its diagonal"
                                : "entry (" + std::to_string(entry.row) + ", " + std::to_string(entry.col) +
                                      ") is outside a matrix of " + to_string(header_.shape));
  }

  market_header header_;
};

}  // namespace detail

}  // namespace partita::io
