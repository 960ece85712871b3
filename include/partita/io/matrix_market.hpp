// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes matrices in the Matrix Market formats. Source: Boisvert, Pozo, Remington, "The Matrix
/// Market Exchange Formats: Initial Design", NISTIR 5935 (1996).

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/base/triplet.hpp"
#include "partita/io/market_body.hpp"
#include "partita/io/market_header.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_output.hpp"
#include "partita/io/text_ranges.hpp"

namespace partita::io {

/// A matrix of a Matrix Market file: all its entries, in both triangles if it is symmetric; entries at the
/// same place are summed.
template <market_value T = double>
struct market_matrix {
  matrix_shape shape;
  market_symmetry symmetry = market_symmetry::general;  ///< as in the file
  std::vector<triplet<T>> entries;                      ///< in file order; mirror images follow their entry
};

namespace detail {

/// The position of the line of entry `index` among those in `range`.
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

/// The entries of all ranges; there must be as many as the header says.
template <market_value T>
std::vector<triplet<T>> joined(const text_source& text, const market_header& header,
                               std::vector<parsed_range<market_part<T>>> parsed) {
  global_index found = 0;
  std::size_t size = 0;
  for (const auto& [range, part, stopped] : parsed) {
    // Once all entries have been found, a malformed line is also one too many.
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

/// The matrix in the Matrix Market file `path`: coordinate or array, which has an entry for every place;
/// real (or double), integer or pattern, whose values are 1; general, symmetric or skew-symmetric. Each of
/// `threads` threads parses a range of the lines; the result is the same for any number of threads. Shape:
/// as in the file. The header is case-insensitive; lines may end with CRLF, and blank lines and lines with %
/// are skipped. Numbers are read as by scipy.io.mmread: +1, infinite and nan values are accepted, and values
/// that are too small become 0; but a number that is too large for T is rejected, and so is anything else in
/// a line. Throws input_error naming file and line: if a line is malformed, or an entry is outside the
/// matrix, on the diagonal of a skew-symmetric one or beyond the number of entries; if entries are missing;
/// if the matrix is complex or Hermitian, or real and T an integer. Throws error if it does not fit into
/// memory; no more is allocated than the file's size calls for, whatever its header says. Source: NISTIR
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
/// input_error before it writes if an entry is elsewhere, and if the file cannot be written; it then stays
/// as it was.
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
  std::string first = "%%MatrixMarket matrix coordinate " +
                      std::string(std::integral<T> ? "integer " : "real ") + word + '\n';
  for (const global_index number : {shape.rows, shape.cols}) first += std::to_string(number) + ' ';
  first += std::to_string(entries.size()) + '\n';
  detail::write_lines(path, first, entries.size(), [&](std::string& text, std::size_t e) {
    detail::append_number(text, entries[e].row + 1);
    detail::append_number(text += ' ', entries[e].col + 1);
    detail::append_number(text += ' ', entries[e].value);
    text += '\n';
  });
}

}  // namespace partita::io
