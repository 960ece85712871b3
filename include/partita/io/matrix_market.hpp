// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes matrices in the Matrix Market formats. Source: Boisvert, Pozo, Remington, "The Matrix
/// Market Exchange Formats: Initial Design", NISTIR 5935 (1996).

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/base/triplet.hpp"
#include "partita/io/market_header.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"

namespace partita::io {

/// What the values of a Matrix Market file can be read as.
template <class T>
concept market_value = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t>;

/// A matrix of a Matrix Market file: all its entries, both triangles of one that is symmetric; those at one
/// place add up.
template <market_value T = double>
struct market_matrix {
  matrix_shape shape;
  market_symmetry symmetry = market_symmetry::general;  ///< as the file has it
  std::vector<triplet<T>> entries;  ///< in file order, each one off the diagonal before its mirror image
};

namespace detail {

/// The entries of a range of lines. `count` is without their mirror images.
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

  /// Adds a block's entries, those of an array without their places. Returns whether there may be more.
  bool parse(market_part<T>& part, const text_block& block) const {
    if (part.entries.capacity() == 0) part.entries.reserve(room(block.range.size()));
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

  /// What `bytes` of the text can hold, no more than the header says.
  std::size_t room(global_index bytes) const {
    const global_index shortest = is_array() ? 2 : header_.field == market_field::pattern ? 4 : 6;
    const auto most = static_cast<std::size_t>(std::min(header_.count, bytes / shortest + 1));
    return is_array() || header_.symmetry == market_symmetry::general ? most : 2 * most;
  }

  std::errc take_value(const char*& at, const char* end, T& value) const {
    if constexpr (std::floating_point<T>)
      if (header_.field == market_field::real) return take_real(at, end, value);
    std::int64_t whole = 0;
    const std::errc status = take_integer(at, whole);
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
            (skew && entry.row == entry.col))
          refuse_place(block, line, entry);
        --entry.row, --entry.col;
      }
      ++part.count;
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
      throw malformed_line(block.position + begin, "a number is out of range: " + quoted(shown));
    const char* const expected = is_array()                               ? "a value"
                                 : header_.field == market_field::pattern ? "a row and a column"
                                                                          : "a row, a column and a value";
    throw malformed_line(block.position + begin,
                         "expected " + std::string(expected) + ", found " + quoted(shown));
  }

  [[noreturn]] void refuse_place(const text_block& block, const char* line, const triplet<T>& entry) const {
    const auto begin = static_cast<std::size_t>(line - block.lines.data());
    const bool inside = interval{1, header_.shape.rows + 1}.contains(entry.row) &&
                        interval{1, header_.shape.cols + 1}.contains(entry.col);
    throw malformed_line(block.position + begin,
                         inside ? "a skew-symmetric matrix has no entries on its diagonal"
                                : "entry (" + std::to_string(entry.row) + ", " + std::to_string(entry.col) +
                                      ") is outside a matrix of " + to_string(header_.shape));
  }

  market_header header_;
};

/// The position of the line of the entry `index` of those in `range`.
inline std::size_t line_of_entry(const text_source& text, interval range, global_index index) {
  std::size_t position = text.size();
  for_blocks(text, range, [&](const text_block& block) {
    for (std::size_t begin = 0, next; begin < block.lines.size(); begin = next) {
      next = block.lines.find('\n', begin) + 1;
      const char* at = block.lines.data() + begin;
      skip_blanks(at);
      if (*at == '%' || at_line_end(at) || index-- > 0) continue;
      position = block.position + begin;
      return false;
    }
    return true;
  });
  return position;
}

/// The entries of all ranges, which must be as many as the header says.
template <market_value T>
std::vector<triplet<T>> joined(const text_source& text, const market_header& header,
                               std::vector<parsed_range<market_part<T>>> parsed) {
  global_index found = 0;
  std::size_t size = 0;
  for (const auto& [range, part, stopped] : parsed) {
    // Also a malformed line is one too many where all entries have come.
    if (part.count + (stopped ? 1 : 0) > header.count - found)
      fail_at(text, {line_of_entry(text, range, header.count - found),
                     "expected no more than " + std::to_string(header.count) + " entries"});
    if (stopped) fail_at(text, *stopped);
    found += part.count;
    size += part.entries.size();
  }
  if (found < header.count)
    fail_at(text, {text.size(),
                   "expected " + std::to_string(header.count) + " entries, found " + std::to_string(found)});
  std::vector<triplet<T>> entries = std::move(parsed.front().part.entries);
  entries.reserve(size);
  for (auto& [range, part, stopped] : std::span(parsed).subspan(1)) {
    entries.insert(entries.end(), part.entries.begin(), part.entries.end());
    part.entries = {};
  }
  return entries;
}

template <market_value T>
market_matrix<T> read_market(const text_source& text, int threads) {
  const market_header header = read_market_header(text);
  if (std::integral<T> && header.field == market_field::real)
    fail(text.name() + ":1", "expected a matrix that is \"integer\" or \"pattern\", found \"real\"");
  return base::with_memory_for(text.name().c_str(), header.shape, [&] {
    const market_body<T> body(header);
    market_matrix<T> matrix{header.shape, header.symmetry, {}};
    matrix.entries = joined(text, header,
                            parse_ranges<market_part<T>>(text, header.body, threads,
                                                         [&](market_part<T>& part, const text_block& block) {
                                                           return body.parse(part, block);
                                                         }));
    if (body.is_array()) body.place(matrix.entries);
    return matrix;
  });
}

}  // namespace detail

/// The matrix in the Matrix Market file `path`: coordinate or array, which has an entry for every place; real
/// (or double), integer or pattern, whose values are 1; general, symmetric or skew-symmetric. Each of
/// `threads` threads parses a range of the lines, and the result is the same for any number of them. Shape:
/// as in the file. In the header case does not matter; lines may end with CRLF, and blank lines and those
/// with % are skipped. Numbers as scipy.io.mmread has them: +1 and infinite and nan values are read, what is
/// too small becomes 0; but a number that is too large for T is refused, and so is whatever else a line has.
/// Throws input_error naming file and line: where a line is malformed, or an entry outside the matrix, on
/// the diagonal of a skew-symmetric one or beyond the number of entries; where entries are missing; where the
/// matrix is complex or Hermitian, or real and T an integer. Throws error when it does not fit into memory,
/// of which no more is allocated than the file's size calls for, whatever its header says. Source: NISTIR
/// 5935.
template <market_value T = double>
market_matrix<T> read_matrix_market(const std::filesystem::path& path, int threads = 1) {
  return detail::read_market<T>(text_source(path), threads);
}

/// The matrix in `text`, the content of such a file, which `name` denotes in messages. Throws as
/// read_matrix_market does.
template <market_value T = double>
market_matrix<T> parse_matrix_market(std::string_view text, const std::string& name, int threads = 1) {
  return detail::read_market<T>(text_source(text, name), threads);
}

/// Writes a matrix of the given shape to the file `path`, in coordinates: integer or real by the type of its
/// values, with the fewest digits that give the same values again. `entries`: in any order, without mirror
/// images: on and below the diagonal of a symmetric matrix, below that of a skew-symmetric one. Throws
/// input_error when one of them is elsewhere, before it writes, and when the file cannot be written.
template <market_value T>
void write_matrix_market(const std::filesystem::path& path, matrix_shape shape,
                         const std::vector<triplet<T>>& entries,
                         market_symmetry symmetry = market_symmetry::general) {
  const std::string name = path.string(), word(detail::symmetry_words[static_cast<std::size_t>(symmetry)]);
  const interval rows{0, shape.rows}, cols{0, shape.cols};
  const bool general = symmetry == market_symmetry::general;
  const global_index nearest = symmetry == market_symmetry::skew_symmetric ? 1 : 0;  // to the diagonal
  if (rows.size() < 0 || cols.size() < 0 || (!general && shape.rows != shape.cols))
    detail::fail(name, "a " + word + " matrix cannot be " + to_string(shape));
  for (const triplet<T>& e : entries)
    if (!rows.contains(e.row) || !cols.contains(e.col) || (!general && e.row - e.col < nearest))
      detail::fail(name, "entry (" + std::to_string(e.row + 1) + ", " + std::to_string(e.col + 1) +
                             ") is not in what is written of a " + word + " matrix of " + to_string(shape));
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  std::string text = "%%MatrixMarket matrix coordinate " +
                     std::string(std::integral<T> ? "integer " : "real ") + word + '\n';
  std::array<char, 32> digits;
  const auto append = [&](auto number, char after) {
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
    text += after;
  };
  const auto flush = [&] {
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    text.clear();
  };
  append(shape.rows, ' ');
  append(shape.cols, ' ');
  append(entries.size(), '\n');
  for (const triplet<T>& e : entries) {
    append(e.row + 1, ' ');
    append(e.col + 1, ' ');
    append(e.value, '\n');
    if (text.size() > std::size_t{1} << 16) flush();
  }
  flush();
  stream.close();
  if (!stream) detail::fail(name, "cannot be written");
}

}  // namespace partita::io
