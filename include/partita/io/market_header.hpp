// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The first lines of a Matrix Market file: what its matrix is, and how large.

#include <algorithm>
#include <array>
#include <cstddef>
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

/// A row, a column and a value in each line, or only the values, column by column.
enum class market_format { coordinate, array };
/// The type of the values; in a pattern all are 1.
enum class market_field { real, integer, pattern };
/// The symmetry of the matrix. Unless it is general, a file has one triangle, which for a skew-symmetric
/// matrix (A^T = -A) excludes the diagonal.
enum class market_symmetry { general, symmetric, skew_symmetric };

/// What precedes the entries of a Matrix Market file.
struct market_header {
  market_format format = market_format::coordinate;
  market_field field = market_field::real;
  market_symmetry symmetry = market_symmetry::general;
  matrix_shape shape;
  global_index count = 0;  ///< number of entries in the file
  std::size_t body = 0;    ///< position of the first line after the header
};

namespace detail {

inline constexpr std::array<std::string_view, 2> format_words{"coordinate", "array"};
inline constexpr std::array<std::string_view, 3> field_words{"real", "integer", "pattern"};
inline constexpr std::array<std::string_view, 3> symmetry_words{"general", "symmetric", "skew-symmetric"};

/// Reads the banner and the size line.
class market_header_parser {
 public:
  explicit market_header_parser(const text_source& text) : text_(text), begin_(after_byte_order_mark(text)) {}

  market_header operator()() {
    if (text_.size() == begin_) take_banner("");
    for_blocks(text_, {static_cast<global_index>(begin_), static_cast<global_index>(text_.size())},
               [&](const text_block& block) {
                 for (std::size_t begin = 0, next; begin < block.lines.size(); begin = next) {
                   next = block.lines.find('\n', begin) + 1;
                   line_ = block.position + begin;
                   if (take_line(block.lines.substr(begin, next - begin))) {
                     header_.body = std::min(block.position + next, text_.size());
                     return false;
                   }
                 }
                 return true;
               });
    if (header_.body == 0) throw malformed_line(text_.size(), "expected " + sizes());
    return header_;
  }

 private:
  bool is_array() const { return header_.format == market_format::array; }
  std::string sizes() const {
    return is_array() ? "the rows and columns of the matrix" : "the rows, columns and entries of the matrix";
  }
  [[noreturn]] void fail_here(const std::string& what) const { throw malformed_line(line_, what); }

  /// Returns whether this is the last line of the header.
  bool take_line(std::string_view line) {
    const char* at = line.data();
    std::string_view shown = line.substr(0, line.size() - 1);
    if (shown.ends_with('\r')) shown.remove_suffix(1);
    if (line_ == begin_) {
      take_banner(shown);
      return false;
    }
    skip_blanks(at);
    if (*at == '%' || at_line_end(at)) return false;
    take_sizes(at, shown);
    return true;
  }

  void take_banner(std::string_view line) {
    std::vector<std::string> words;
    bool begins = true;
    for (char c : line) {
      const bool blank = c == ' ' || c == '\t';
      if (!blank && begins) words.emplace_back();
      if (!blank) words.back() += 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c;
      begins = blank;
    }
    if (words.size() != 5 || (words[0] != "%%matrixmarket" && words[0] != "%matrixmarket") ||
        words[1] != "matrix")
      fail_here("expected %%MatrixMarket matrix FORMAT FIELD SYMMETRY, found " + quoted(line));
    header_.format = one_of<market_format>(words[2], format_words);
    header_.field = one_of<market_field>(words[3] == "double"             ? "real"
                                         : words[3] == "unsigned-integer" ? "integer"
                                                                          : words[3],
                                         field_words);
    header_.symmetry = one_of<market_symmetry>(words[4], symmetry_words);
    if (is_array() && header_.field == market_field::pattern) fail_here("an array cannot be a pattern");
  }

  template <class Enum>
  Enum one_of(const std::string& word, std::span<const std::string_view> known) const {
    const auto at = std::ranges::find(known, word);
    if (at != known.end()) return static_cast<Enum>(at - known.begin());
    std::string all;
    for (const std::string_view k : known) all += (all.empty() ? "" : ", ") + std::string(k);
    fail_here("a matrix that is " + detail::quoted(word) + " is not read, only " + all);
  }

  void take_sizes(const char* at, std::string_view line) {
    matrix_shape& shape = header_.shape;
    const auto take = [&](global_index& size) {
      const std::errc status = take_integer(at, size);
      if (status == std::errc::result_out_of_range) fail_here(too_large(line));
      return status == std::errc{} && size >= 0 && (skip_blanks(at) || at_line_end(at));
    };
    if (!take(shape.rows) || !take(shape.cols) || (!is_array() && !take(header_.count)) || !at_line_end(at))
      fail_here("expected " + sizes() + ", found " + quoted(line));
    if (header_.symmetry != market_symmetry::general && shape.rows != shape.cols)
      fail_here("a " + std::string(symmetry_words[static_cast<std::size_t>(header_.symmetry)]) +
                " matrix cannot be " + to_string(shape));
    if (!is_array()) return;
    if (shape.cols > 0 && shape.rows > std::numeric_limits<global_index>::max() / shape.cols)
      fail_here("an array cannot be " + to_string(shape));
    // In order of symmetry: all, one triangle with the diagonal, one without
    const global_index n = shape.rows,
                       longer = header_.symmetry == market_symmetry::symmetric ? n + 1 : n - 1;
    header_.count = header_.symmetry == market_symmetry::general ? n * shape.cols
                    : n % 2 == 0                                 ? n / 2 * longer
                                                                 : longer / 2 * n;
  }

  const text_source& text_;
  std::size_t begin_;
  market_header header_;
  std::size_t line_ = 0;  ///< position of the current line
};

}  // namespace detail

/// The header of a Matrix Market file, case-insensitive: the banner; lines with % and blank lines, which are
/// skipped; the sizes. Throws input_error naming file and line if it is malformed, complex, Hermitian or has
/// more than 2^63 - 1 entries.
inline market_header read_market_header(const text_source& text) {
  detail::refuse_gzip(text);
  try {
    return detail::market_header_parser(text)();
  } catch (const malformed_line& malformed) {
    fail_at(text, malformed);
  }
}

}  // namespace partita::io
