// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Tables of numbers in text, separated by commas or as in edge lists.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

/// What separates the numbers of a line: a comma; or blanks, tabs, a comma or a semicolon, as in an edge
/// list, where lines that begin with #, % or // are comments.
enum class table_form { commas, edge_list };

namespace detail {

/// Whether the fields of a line are column names: none is a number, and at least one begins as a name.
inline bool are_column_names(std::string_view line) {
  bool any = false;
  const char* const end = line.data() + line.size();
  for (const char* at = line.data();; ++at) {
    skip_blanks(at);
    const char* rest = at;
    double number = 0;
    const bool is_number = take_real(rest, end, number) != std::errc::invalid_argument;
    if (is_number && (skip_blanks(rest), *rest == ',' || at_line_end(rest))) return false;
    const char first = *at;
    const bool is_name = ('a' <= first && first <= 'z') || ('A' <= first && first <= 'Z') || first == '_' ||
                         first == '"' || first == '\'';
    if (!is_name && first != ',' && !at_line_end(at)) return false;
    any |= is_name;
    at = std::find(at, end, ',');
    if (at == end) return any;
  }
}

/// Parses lines with as many numbers as the first line that is neither blank nor column names.
template <class T>
class csv_lines {
 public:
  explicit csv_lines(const text_source& text, table_form form = table_form::commas)
      : begin_(after_byte_order_mark(text)), is_list_(form == table_form::edge_list) {
    bool is_first = true;
    for_blocks(
        text, {static_cast<global_index>(begin_), static_cast<global_index>(text.size())},
        [&](const text_block& block) {
          for (std::size_t begin = 0, next; cols_ == 0 && begin < block.lines.size(); begin = next) {
            next = block.lines.find('\n', begin) + 1;
            const std::string_view line = block.lines.substr(begin, next - begin);
            if (is_skipped(line)) continue;
            const auto words = is_list_ ? words_of(line.substr(0, line.size() - 1), line.npos)
                                        : std::vector<std::string_view>();
            if (std::exchange(is_first, false) && (is_list_ ? are_names(words) : are_column_names(line)))
              begin_ = std::min(block.position + next, text.size());
            else
              cols_ = is_list_ ? std::ssize(words) : 1 + std::ranges::count(line, ',');
          }
          return cols_ == 0;
        });
  }

  global_index cols() const { return cols_; }
  /// The position of the first line that may have numbers.
  std::size_t begin() const { return begin_; }

  /// Whether a line has no row.
  bool is_skipped(std::string_view line) const {
    const char* at = line.data();
    skip_blanks(at);
    return is_list_ ? has_no_edge(at) : at_line_end(at);
  }

  bool operator()(std::vector<T>& values, const text_block& block) const {
    if (values.empty())  // each number is followed by at least one byte
      values.reserve(std::min(expected_lines(block) * static_cast<std::size_t>(cols_),
                              static_cast<std::size_t>(block.range.size()) + 1));
    const char* const end = block.lines.data() + block.lines.size();
    for (const char* at = block.lines.data(); at != end;) {
      const char* const line = at;
      skip_blanks(at);
      if (is_list_ && has_no_edge(at)) {
        at = std::find(at, end, '\n') + 1;
        continue;
      }
      for (global_index col = 0; col < cols_ && !(col == 0 && at_line_end(at)); ++col) {
        if (col > 0 && !is_list_ && *at++ != ',') refuse_line(block, line);
        skip_blanks(at);
        T value{};
        const char* const number = at;
        if (const std::errc status = take(at, end, value); status != std::errc{})
          refuse_line(block, line,
                      status == std::errc::result_out_of_range
                          ? std::string_view(number, static_cast<std::size_t>(at - number))
                          : "");
        values.push_back(value);
        if (!is_list_)
          skip_blanks(at);
        else if (!skip_separator(at) && !at_line_end(at))
          refuse_line(block, line);
      }
      if (!at_line_end(at)) refuse_line(block, line);
      at += *at == '\r' ? 2 : 1;
    }
    return true;
  }

 private:
  std::errc take(const char*& at, const char* end, T& value) const {
    if constexpr (std::integral<T>) {
      return take_integer(at, value);
    } else {
      if (is_list_ || (*at != ',' && !at_line_end(at))) return take_real(at, end, value);
      value = std::numeric_limits<T>::quiet_NaN();
      return {};
    }
  }

  /// `large`: the number that caused the error, if it is too large.
  [[noreturn]] void refuse_line(const text_block& block, const char* line,
                                std::string_view large = {}) const {
    if (!large.empty())
      throw malformed_line(block.position + static_cast<std::size_t>(line - block.lines.data()),
                           std::integral<T> ? beyond_range(large)
                                            : printable(large) + " is beyond the numbers of " +
                                                  std::to_string(8 * sizeof(T)) + " bits");
    const auto begin = static_cast<std::size_t>(line - block.lines.data());
    std::string_view shown = block.lines.substr(begin, block.lines.find('\n', begin) - begin);
    if (shown.ends_with('\r')) shown.remove_suffix(1);
    throw malformed_line(block.position + begin, "expected " + std::to_string(cols_) +
                                                     (std::integral<T> ? " whole" : "") +
                                                     (cols_ == 1 ? " number" : " numbers") +
                                                     (cols_ == 1 || is_list_ ? "" : " and commas between") +
                                                     ", found " + quoted(shown));
  }

  std::size_t begin_;
  bool is_list_;
  global_index cols_ = 0;
};

}  // namespace detail

/// The table in `source`: numbers separated by commas, in each line as many as in the first; if T is real,
/// an empty field, nan and infinite values are accepted. A byte order mark and blank lines are skipped, and
/// so is a first line of column names, none of which is a number. In the form of an edge list no field is
/// empty, and the lines that an edge list skips are skipped. Each of `threads` threads parses a range of the
/// lines; the result is the same for any number of threads. Local. Throws input_error naming file and line
/// if one is malformed.
template <class T>
requires std::same_as<T, std::int64_t> || std::floating_point<T> number_table<T> parse_csv(
    const text_source& source, int threads = 1, table_form form = table_form::commas) {
  const detail::csv_lines<T> lines(source, form);
  auto parsed = parse_ranges<std::vector<T>>(
      source, lines.begin(), threads,
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
/// The table in `text`, which `name` denotes in messages.
template <class T>
number_table<T> parse_csv(std::string_view text, const std::string& name, int threads = 1) {
  return parse_csv<T>(text_source(text, name), threads);
}

/// Throws input_error naming the text, the line with row `row` of the table, and the reason.
[[noreturn]] inline void fail_at_row(const text_source& source, global_index row, const std::string& reason,
                                     table_form form = table_form::commas) {
  const detail::csv_lines<double> lines(source, form);
  std::size_t position = lines.begin();
  for_blocks(source, {static_cast<global_index>(position), static_cast<global_index>(source.size())},
             [&](const text_block& block) {
               for (std::size_t begin = 0, next; begin < block.lines.size(); begin = next) {
                 next = block.lines.find('\n', begin) + 1;
                 position = block.position + begin;
                 if (!lines.is_skipped(block.lines.substr(begin, next - begin)) && row-- == 0) return false;
               }
               return true;
             });
  fail_at(source, malformed_line(position, reason));
}

}  // namespace partita::io
