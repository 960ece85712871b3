// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The lines of a METIS graph: the first one, and the lines of vertices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"

namespace partita::io {

/// The first line of a METIS graph.
struct metis_header {
  global_index vertices = 0;
  global_index edges = 0;  ///< each counted once
  bool vertex_sizes = false;
  bool vertex_weights = false;
  bool edge_weights = false;
  int constraints = 1;   ///< weights of each vertex
  std::size_t body = 0;  ///< position of the line after this one
};

namespace detail {

/// Throws malformed_line: what was expected, and the line that begins at `line`; or that `large` is too
/// large, unless it is empty.
[[noreturn]] inline void refuse(const text_block& block, const char* line, const std::string& expected,
                                std::string_view large = {}) {
  const auto begin = static_cast<std::size_t>(line - block.lines.data());
  std::string_view shown = block.lines.substr(begin, block.lines.find('\n', begin) - begin);
  if (shown.ends_with('\r')) shown.remove_suffix(1);
  throw malformed_line(block.position + begin, large.empty()
                                                   ? "expected " + expected + ", found " + quoted(shown)
                                                   : beyond_range(large));
}

/// Takes a nonnegative number that ends with a blank or the line. Throws malformed_line as refuse does.
inline std::int64_t take_size(const char*& at, const text_block& block, const char* line,
                              const std::string& expected) {
  std::int64_t value = 0;
  const char* const begin = at;
  const std::errc status = take_integer(at, value);
  if (status == std::errc::result_out_of_range)
    refuse(block, line, expected, {begin, static_cast<std::size_t>(at - begin)});
  if (status != std::errc{} || value < 0 || !(skip_blanks(at) || at_line_end(at)))
    refuse(block, line, expected);
  return value;
}

inline void take_header(metis_header& header, const text_block& block, const char* line) {
  const char* at = line;
  skip_blanks(at);
  header.vertices = take_size(at, block, line, "the numbers of vertices and edges");
  header.edges = take_size(at, block, line, "the numbers of vertices and edges");
  if (at_line_end(at)) return;
  const std::string_view rest(at, static_cast<std::size_t>(block.lines.data() + block.lines.size() - at));
  const std::string_view format = rest.substr(0, rest.find_first_of(" \t\r\n"));
  if (format.size() > 3 || format.find_first_not_of("01") != format.npos)
    refuse(block, line, "three digits 0 or 1 as the format");
  const auto has = [&](std::size_t digit) {
    return format.size() > digit && format[format.size() - 1 - digit] == '1';
  };
  header.edge_weights = has(0), header.vertex_weights = has(1), header.vertex_sizes = has(2);
  at += format.size();
  skip_blanks(at);
  if (at_line_end(at)) return;
  const char* const expected = "no more than the weights of each vertex, 1 to 1000 where the format has them";
  const std::int64_t constraints = take_size(at, block, line, expected);
  if (constraints < 1 || constraints > 1000 || !header.vertex_weights || !at_line_end(at))
    refuse(block, line, expected);
  header.constraints = static_cast<int>(constraints);
}

/// The vertices of a range of lines.
struct metis_part {
  std::vector<global_index> degrees;     ///< one per line; `blank` for a blank line
  std::vector<global_index> neighbours;  ///< numbered from 0
  std::vector<std::int64_t> edge_weights, vertex_weights, vertex_sizes;
};

/// What a blank line has in place of a degree: it is a vertex without neighbours, unless vertices have
/// weights.
inline global_index blank(const metis_header& header) {
  return header.vertex_sizes || header.vertex_weights ? -1 : 0;
}

/// Parses the lines of vertices.
class metis_lines {
 public:
  explicit metis_lines(const metis_header& header) : header_(header) {}

  bool operator()(metis_part& part, const text_block& block) const {
    const char* const end = block.lines.data() + block.lines.size();
    if (part.degrees.empty()) part.degrees.reserve(expected_lines(block));
    for (const char* at = block.lines.data(); at != end;) {
      const char* const line = at;
      if (*at == '%')
        at = std::find(at, end, '\n');
      else
        take_line(part, block, line, at);
      at += *at == '\r' ? 2 : 1;
    }
    return true;
  }

 private:
  void take_line(metis_part& part, const text_block& block, const char* line, const char*& at) const {
    skip_blanks(at);
    if (at_line_end(at)) {
      part.degrees.push_back(blank(header_));
      return;
    }
    const auto number = [&](const char* what) { return take_size(at, block, line, what); };
    if (header_.vertex_sizes) part.vertex_sizes.push_back(number("the size of a vertex"));
    for (int k = 0; header_.vertex_weights && k < header_.constraints; ++k)
      part.vertex_weights.push_back(number("the weight of a vertex"));
    const std::size_t before = part.neighbours.size();
    while (!at_line_end(at)) {
      const global_index neighbour = number("neighbours");
      if (neighbour < 1 || neighbour > header_.vertices)
        refuse(block, line, "neighbours from 1 to " + std::to_string(header_.vertices));
      part.neighbours.push_back(neighbour - 1);
      if (!header_.edge_weights) continue;
      part.edge_weights.push_back(number("a weight after each neighbour"));
      if (part.edge_weights.back() == 0) refuse(block, line, "positive weights of edges");
    }
    part.degrees.push_back(static_cast<global_index>(part.neighbours.size() - before));
  }

  metis_header header_;
};

/// The position of the line of vertex `index` among those in `range`.
inline std::size_t line_of_vertex(const text_source& text, interval range, global_index index) {
  std::size_t position = text.size();
  for_blocks(text, range, [&](const text_block& block) {
    for (std::size_t begin = 0, next; begin < block.lines.size(); begin = next) {
      next = block.lines.find('\n', begin) + 1;
      if (block.lines[begin] == '%' || index-- > 0) continue;
      position = block.position + begin;
      return false;
    }
    return true;
  });
  return position;
}

}  // namespace detail

/// The first line of a METIS graph that does not begin with %. Throws malformed_line.
inline metis_header read_metis_header(const text_source& text) {
  metis_header header;
  for_blocks(text, {0, static_cast<global_index>(text.size())}, [&](const text_block& block) {
    for (std::size_t begin = 0, next; begin < block.lines.size(); begin = next) {
      next = block.lines.find('\n', begin) + 1;
      if (block.lines[begin] == '%') continue;
      detail::take_header(header, block, block.lines.data() + begin);
      header.body = std::min(block.position + next, text.size());
      return false;
    }
    return true;
  });
  if (header.body == 0) throw malformed_line(text.size(), "expected the numbers of vertices and edges");
  return header;
}

}  // namespace partita::io
