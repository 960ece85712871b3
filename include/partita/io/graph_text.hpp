// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes edge lists in text form, as published by the SNAP collection.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_output.hpp"
#include "partita/io/text_ranges.hpp"
#include "partita/io/whole_file.hpp"
#include "partita/local/parallel.hpp"

namespace partita::io {

/// How the columns of an edge list after the ids are used: the third is the edge's weight, or none is used.
enum class further_columns { weights, ignored };

/// Edges between the vertices 0 to ids.size() - 1, and each vertex's id in the file.
struct edge_list {
  std::vector<edge> edges;        ///< in file order
  std::vector<global_index> ids;  ///< [vertices], ascending
  std::vector<double> weights;    ///< one per edge; empty if the file has none

  global_index vertices() const { return static_cast<global_index>(ids.size()); }
};

namespace detail {

/// The edges of a range of lines, with ids as ends.
struct edge_part {
  std::vector<edge> edges;
  std::vector<double> weights;
};

/// Parses lines of two ids, or of two ids and a weight if the first such line has three words.
class edge_lines {
 public:
  edge_lines(const text_source& text, further_columns further)
      : begin_(after_byte_order_mark(text)), ignores_(further == further_columns::ignored) {
    bool is_first = true;
    for_blocks(text, {static_cast<global_index>(begin_), static_cast<global_index>(text.size())},
               [&](const text_block& block) {
                 const char* const end = block.lines.data() + block.lines.size();
                 for (const char* at = block.lines.data(); at != end;) {
                   const char* const next = std::find(at, end, '\n') + 1;
                   skip_blanks(at);
                   if (!has_no_edge(at)) {
                     const auto words = words_of({at, static_cast<std::size_t>(next - 1 - at)},
                                                 5);  // more words add no information
                     weighted_ = words.size() > 2 && !ignores_;
                     if (!std::exchange(is_first, false) || !are_names(words)) return false;
                     begin_ = block.position + static_cast<std::size_t>(next - block.lines.data());
                   }
                   at = next;
                 }
                 return true;
               });
    begin_ = std::min(begin_, text.size());
  }

  bool weighted() const { return weighted_; }
  /// The position of the first line that may have an edge.
  std::size_t begin() const { return begin_; }

  bool operator()(edge_part& part, const text_block& block) const {
    const bool first = part.edges.empty();
    const char* const end = block.lines.data() + block.lines.size();
    for (const char* at = block.lines.data(); at != end;) {
      const char* const line = at;
      skip_blanks(at);
      if (has_no_edge(at)) {
        at = std::find(at, end, '\n') + 1;
        continue;
      }
      edge next;
      double weight = 1;
      if (!take_id(at, next.source) || !take_id(at, next.target) ||
          (weighted_ && !take_weight(at, end, weight)))
        refuse_line(block, line);
      if (ignores_)
        at = std::find(at, end, '\n');
      else if (double time = 0; weighted_ && !at_line_end(at) && !take_weight(at, end, time))
        refuse_line(block, line);
      if (*at != '\n' && !at_line_end(at)) refuse_line(block, line);
      at += *at == '\r' ? 2 : 1;
      part.edges.push_back(next);
      if (weighted_) part.weights.push_back(weight);
    }
    if (first && !part.edges.empty()) {  // the other blocks are presumably like this one
      const auto most = static_cast<std::size_t>(1.02 * static_cast<double>(part.edges.size()) *
                                                 static_cast<double>(block.range.size()) /
                                                 static_cast<double>(block.lines.size()));
      part.edges.reserve(most);
      if (weighted_) part.weights.reserve(most);
    }
    return true;
  }

 private:
  static bool take_id(const char*& at, global_index& id) {
    return *at != '+' && *at != '-' && take_integer(at, id) == std::errc{} &&
           (skip_separator(at) || at_line_end(at));
  }

  static bool take_weight(const char*& at, const char* end, double& weight) {
    return take_real(at, end, weight) == std::errc{} && (skip_separator(at) || at_line_end(at)) &&
           std::isfinite(weight);
  }

  [[noreturn]] void refuse_line(const text_block& block, const char* line) const {
    const auto begin = static_cast<std::size_t>(line - block.lines.data());
    std::string_view shown = block.lines.substr(begin, block.lines.find('\n', begin) - begin);
    shown.remove_suffix(shown.size() - std::min(shown.find_last_not_of(" \t\r") + 1, shown.size()));
    throw malformed_line(block.position + begin, what_is_wrong(shown));
  }

  std::string what_is_wrong(std::string_view line) const {
    const auto words = words_of(line, 5);
    for (std::size_t k = 0; k < std::min<std::size_t>(words.size(), 2); ++k) {
      if (words[k].find_first_not_of("0123456789") != words[k].npos) break;
      if (const std::string larger = too_large(words[k]); !larger.empty()) return "vertex " + larger;
      if (k == 0 || !weighted_ || words.size() < 3) continue;
      double weight = 0;
      const std::string third = std::string(words[2]) + '\n';
      const char* at = third.data();
      if (!take_weight(at, at + third.size(), weight))
        return "the third column cannot be a weight, which is a finite number: " + quoted(words[2]) +
               " (further columns can be ignored, convert --ignore-weights)";
      return "expected two vertex ids, a weight and no more than a time, found " + quoted(line) +
             " (further columns can be ignored, convert --ignore-weights)";
    }
    return "expected two vertex ids" + std::string(weighted_ ? " and a weight" : "") + ", found " +
           quoted(line);
  }

  std::size_t begin_;
  bool ignores_;
  bool weighted_ = false;
};

/// Calls f(edges) for `threads` parts of the list, each on its own thread.
template <class F>
void for_parts(std::vector<edge>& edges, int threads, const F& f) {
  const interval all{0, static_cast<global_index>(edges.size())};
  local::run_parts(std::max(threads, 1), [&](int thread) {
    const interval mine = base::part_of(all, thread, std::max(threads, 1));
    f(std::span(edges).subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())));
  });
}

/// Numbers the ids in ascending order: by a table if they have few gaps, otherwise by sorting.
inline void number_vertices(edge_list& list, int threads) {
  global_index largest = -1;
  for (const edge& e : list.edges) largest = std::max({largest, e.source, e.target});
  const std::size_t ends = 2 * list.edges.size();
  if (static_cast<std::size_t>(largest) < 2 * ends) {
    std::vector<global_index> vertex(static_cast<std::size_t>(largest) + 1, 0);  // first, whether it exists
    for (const edge& e : list.edges)
      vertex[static_cast<std::size_t>(e.source)] = vertex[static_cast<std::size_t>(e.target)] = 1;
    for (std::size_t id = 0; id < vertex.size(); ++id)
      if (vertex[id] != 0) {
        vertex[id] = list.vertices();
        list.ids.push_back(static_cast<global_index>(id));
      }
    if (list.ids.size() == vertex.size()) return;
    for_parts(list.edges, threads, [&](std::span<edge> part) {
      for (edge& e : part)
        e = {vertex[static_cast<std::size_t>(e.source)], vertex[static_cast<std::size_t>(e.target)]};
    });
    return;
  }
  list.ids.reserve(ends);
  for (const edge& e : list.edges) list.ids.insert(list.ids.end(), {e.source, e.target});
  std::ranges::sort(list.ids);
  const auto repeated = std::ranges::unique(list.ids);
  list.ids.erase(repeated.begin(), repeated.end());
  for_parts(list.edges, threads, [&](std::span<edge> part) {
    const auto vertex = [&](global_index id) {
      return static_cast<global_index>(std::ranges::lower_bound(list.ids, id) - list.ids.begin());
    };
    for (edge& e : part) e = {vertex(e.source), vertex(e.target)};
  });
}

inline edge_list read_edges(const text_source& text, int threads, further_columns further) {
  refuse_gzip(text);
  const edge_lines lines(text, further);
  auto parsed =
      parse_ranges<edge_part>(text, lines.begin(), threads,
                              [&](edge_part& part, const text_block& block) { return lines(part, block); });
  std::size_t size = 0;
  for (const auto& [range, part, stopped] : parsed) {
    if (stopped) fail_at(text, *stopped);
    size += part.edges.size();
  }
  edge_list list{std::move(parsed.front().part.edges), {}, std::move(parsed.front().part.weights)};
  list.edges.reserve(size);
  if (lines.weighted()) list.weights.reserve(size);
  for (auto& [range, part, stopped] : std::span(parsed).subspan(1)) {
    list.edges.insert(list.edges.end(), part.edges.begin(), part.edges.end());
    list.weights.insert(list.weights.end(), part.weights.begin(), part.weights.end());
    part = {};
  }
  number_vertices(list, threads);
  return list;
}

}  // namespace detail

/// The edges in the text file `path`: two ids per line, separated by blanks, tabs, commas or semicolons,
/// and in all lines or in none a third number, the edge's weight, which is finite; a fourth, a time as in
/// KONECT, is ignored. With further_columns::ignored, so is whatever follows the ids. CRLF and a byte order
/// mark are accepted; empty lines and lines starting with #, % or // are skipped, and so is a first line of
/// column names: two or more words that begin with a letter. Ids may have gaps and are mapped to vertices
/// in ascending order; self-loops and repeated edges are kept. Each of `threads` threads parses a range of
/// the lines; the result is the same for any number of threads. Throws input_error if the file is missing
/// or gzip-compressed (io/gzip.hpp unpacks it), and, with name and line number, for any other malformed
/// line.
inline edge_list read_edge_list(const std::filesystem::path& path, int threads = 1,
                                further_columns further = further_columns::weights) {
  return detail::read_edges(text_source(path), threads, further);
}

/// The edges in `text`, the content of such a file, which `name` denotes in messages. Throws as
/// read_edge_list does.
inline edge_list parse_edge_list(std::string_view text, const std::string& name, int threads = 1,
                                 further_columns further = further_columns::weights) {
  return detail::read_edges(text_source(text, name), threads, further);
}

/// Calls take(std::string_view) for one piece after the other of a text that read_edge_list reads: the ids
/// of each edge's ends, separated by a tab, and its weight if there are weights, with the fewest digits that
/// give the same number again. Vertices without edges are not in it. Local.
template <class Take>
void edge_list_text(const edge_list& list, const Take& take) {
  const auto id = [&](global_index vertex) { return list.ids[static_cast<std::size_t>(vertex)]; };
  const auto append = [&](std::string& text, std::size_t e) {
    detail::append_number(text, id(list.edges[e].source));
    detail::append_number(text += '\t', id(list.edges[e].target));
    if (!list.weights.empty()) detail::append_number(text += '\t', list.weights[e]);
    text += '\n';
  };
  detail::for_pieces("", list.edges.size(), append, take);
}

/// Writes that text to the file `path`. Local. Throws input_error if the file cannot be written; it then
/// stays as it was.
inline void write_edge_list(const std::filesystem::path& path, const edge_list& list) {
  write_whole_file(path, [&](const auto& write) {
    edge_list_text(list, [&](std::string_view piece) { write(std::as_bytes(std::span(piece))); });
  });
}

}  // namespace partita::io
