// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads edge lists in text form, as published by the SNAP collection.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <istream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

/// Edges between the vertices 0 to ids.size() - 1, and each vertex's id in the file.
struct edge_list {
  std::vector<edge> edges;        ///< in file order
  std::vector<global_index> ids;  ///< [vertices], ascending

  global_index vertices() const { return static_cast<global_index>(ids.size()); }
};

namespace detail {

/// Parses one id at the front of `line` and removes it; false if there is none.
inline bool take_id(std::string_view& line, global_index& id) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), id);
  if (status != std::errc{} || id < 0) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return line.empty() || line.front() == ' ' || line.front() == '\t';
}

}  // namespace detail

/// The edges in text, which `name` denotes in messages: two ids per line, separated by tabs or spaces. CRLF
/// is accepted; empty lines and lines starting with # are skipped. Ids may have gaps and are mapped to
/// vertices in ascending order; self-loops and repeated edges are kept. Throws input_error when the text is
/// gzip-compressed, and, with name and line number, for any other malformed line.
inline edge_list read_edge_list(std::istream& stream, const std::string& name) {
  edge_list list;
  std::string buffer;
  for (std::size_t number = 1; std::getline(stream, buffer); ++number) {
    if (number == 1 && buffer.starts_with("\x1f\x8b"))
      detail::fail(name, "is gzip-compressed; decompress it first");
    std::string_view line = buffer;
    line.remove_suffix(line.size() - std::min(line.find_last_not_of(" \t\r") + 1, line.size()));
    if (line.empty() || line.front() == '#') continue;
    std::string_view rest = line;
    edge next;
    if (!detail::take_id(rest, next.source) || !detail::take_id(rest, next.target) || !rest.empty())
      detail::fail(name + ":" + std::to_string(number),
                   "expected two vertex ids, found " + detail::quoted(line));
    list.edges.push_back(next);
  }
  if (stream.bad()) detail::fail(name, "cannot be read");

  list.ids.reserve(2 * list.edges.size());
  for (const edge& e : list.edges) list.ids.insert(list.ids.end(), {e.source, e.target});
  std::ranges::sort(list.ids);
  const auto repeated = std::ranges::unique(list.ids);
  list.ids.erase(repeated.begin(), repeated.end());
  const auto vertex = [&](global_index id) {
    return static_cast<global_index>(std::ranges::lower_bound(list.ids, id) - list.ids.begin());
  };
  for (edge& e : list.edges) e = {vertex(e.source), vertex(e.target)};
  return list;
}

/// The edges in the text file `path`. Throws input_error when the file is missing, and as above.
inline edge_list read_edge_list(const std::filesystem::path& path) {
  const std::string name = detail::name_of_file(path);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) detail::fail(name, "cannot be opened");
  return read_edge_list(stream, name);
}

}  // namespace partita::io
