// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes graphs in the format of METIS's programs. Source: Karypis, "METIS: A Software Package
/// for Partitioning Unstructured Graphs, Version 5.1.0", section 4.1 (2013).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/metis_lines.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_output.hpp"
#include "partita/io/text_ranges.hpp"

namespace partita::io {

/// An undirected graph without loops: each edge is in the lists of both its ends. Vertices are numbered from
/// 0.
struct metis_graph {
  std::vector<global_index> offsets = {0};   ///< [n + 1]
  std::vector<global_index> neighbours;      ///< [2 m], those of vertex v begin at offsets[v]
  std::vector<std::int64_t> edge_weights;    ///< [2 m], positive; empty if all are 1
  std::vector<std::int64_t> vertex_weights;  ///< [n, constraints], not negative; empty if all are 1
  std::vector<std::int64_t> vertex_sizes;    ///< [n], not negative; empty if all are 1
  int constraints = 1;                       ///< weights of each vertex

  global_index vertices() const { return static_cast<global_index>(offsets.size()) - 1; }
};

namespace detail {

/// Lists of neighbours with the weights of edges, which may be absent.
struct neighbour_table {
  std::vector<global_index> offsets, neighbours;
  std::vector<std::int64_t> weights;
};

/// The table of the reversed edges. Its lists are in ascending order.
inline neighbour_table reversed(std::span<const global_index> offsets,
                                std::span<const global_index> neighbours,
                                std::span<const std::int64_t> weights) {
  neighbour_table table{std::vector<global_index>(offsets.size() + 1, 0),
                        std::vector<global_index>(neighbours.size()),
                        std::vector<std::int64_t>(weights.size())};
  for (const global_index v : neighbours) ++table.offsets[static_cast<std::size_t>(v) + 2];
  for (std::size_t v = 2; v < table.offsets.size(); ++v) table.offsets[v] += table.offsets[v - 1];
  for (std::size_t u = 0; u + 1 < offsets.size(); ++u)
    for (auto e = static_cast<std::size_t>(offsets[u]); e < static_cast<std::size_t>(offsets[u + 1]); ++e) {
      const auto v = static_cast<std::size_t>(neighbours[e]);
      const auto at = static_cast<std::size_t>(table.offsets[v + 1]++);
      table.neighbours[at] = static_cast<global_index>(u);
      if (!weights.empty()) table.weights[at] = weights[e];
    }
  table.offsets.pop_back();
  return table;
}

/// Calls complain(vertex, reason) for a vertex whose list has the vertex itself, a neighbour twice, or a
/// neighbour whose list lacks the vertex with the same weight. Such a call must throw.
template <class Complain>
void check_edges(const metis_graph& graph, const Complain& complain) {
  const neighbour_table back = reversed(graph.offsets, graph.neighbours, graph.edge_weights);
  const neighbour_table there = reversed(back.offsets, back.neighbours, back.weights);
  const auto number = [](global_index vertex) { return std::to_string(vertex + 1); };
  const auto lists = [&](global_index has, global_index whom) {
    complain(has,
             "vertex " + number(has) + " has the neighbour " + number(whom) + ", which does not have it");
  };
  for (global_index v = 0; v < graph.vertices(); ++v) {
    const auto row = static_cast<std::size_t>(v);
    auto e = static_cast<std::size_t>(there.offsets[row]), f = static_cast<std::size_t>(back.offsets[row]);
    const auto end = static_cast<std::size_t>(there.offsets[row + 1]),
               end_back = static_cast<std::size_t>(back.offsets[row + 1]);
    for (; e < end || f < end_back; ++e, ++f) {
      if (e < end && there.neighbours[e] == v)
        complain(v, "vertex " + number(v) + " is a neighbour of itself");
      if (e + 1 < end && there.neighbours[e] == there.neighbours[e + 1])
        complain(v, "vertex " + number(v) + " has the neighbour " + number(there.neighbours[e]) + " twice");
      if (f == end_back || (e < end && there.neighbours[e] < back.neighbours[f]))
        lists(v, there.neighbours[e]);
      if (e == end || back.neighbours[f] < there.neighbours[e]) lists(back.neighbours[f], v);
      if (!there.weights.empty() && there.weights[e] != back.weights[f])
        complain(v, "the edge from vertex " + number(v) + " to " + number(there.neighbours[e]) +
                        " has the weight " + std::to_string(there.weights[e]) + ", and on the way back " +
                        std::to_string(back.weights[f]));
    }
  }
}

/// Joins the lines of all ranges; there must be as many as the header says.
inline metis_graph joined(const text_source& text, const metis_header& header,
                          std::vector<parsed_range<metis_part>> parsed) {
  metis_graph graph;
  graph.constraints = header.constraints;
  const auto move = [&](auto metis_part::*of_part, auto& to) {
    std::size_t size = 0;
    for (const auto& [range, part, stopped] : parsed) size += (part.*of_part).size();
    to.reserve(size);
    for (auto& [range, part, stopped] : parsed) {
      to.insert(to.end(), (part.*of_part).begin(), (part.*of_part).end());
      part.*of_part = {};
    }
  };
  std::size_t lines = 0;
  for (const auto& [range, part, stopped] : parsed) lines += part.degrees.size();
  graph.offsets.reserve(lines + 1);
  for (auto& [range, part, stopped] : parsed) {
    for (std::size_t k = 0; k < part.degrees.size(); ++k) {
      const global_index degree = part.degrees[k];
      const bool extra = graph.vertices() == header.vertices;
      if (extra ? degree != blank(header) : degree < 0)
        fail_at(text,
                {line_of_vertex(text, range, static_cast<global_index>(k)),
                 extra ? "expected the lines of " + std::to_string(header.vertices) + " vertices and no more"
                       : "expected the weight of a vertex, found \"\""});
      if (!extra) graph.offsets.push_back(graph.offsets.back() + degree);
    }
    if (stopped) fail_at(text, *stopped);
    part.degrees = {};
  }
  move(&metis_part::neighbours, graph.neighbours);
  move(&metis_part::edge_weights, graph.edge_weights);
  move(&metis_part::vertex_weights, graph.vertex_weights);
  move(&metis_part::vertex_sizes, graph.vertex_sizes);
  if (graph.vertices() < header.vertices)
    fail_at(text, {text.size(), "expected the lines of " + std::to_string(header.vertices) +
                                    " vertices, found " + std::to_string(graph.vertices())});
  const auto found = static_cast<global_index>(graph.neighbours.size());
  if (found % 2 != 0 || found / 2 != header.edges)
    fail(text.name(), "expected " + std::to_string(header.edges) + " edges, each in the lines of both its " +
                          "ends, found " + std::to_string(found) + " neighbours");
  return graph;
}

inline metis_graph read_metis(const text_source& text, int threads) {
  refuse_gzip(text);
  try {
    const metis_header header = read_metis_header(text);
    const metis_lines lines(header);
    const metis_graph graph = joined(
        text, header,
        parse_ranges<metis_part>(text, header.body, threads, [&](metis_part& part, const text_block& block) {
          return lines(part, block);
        }));
    const interval body{static_cast<global_index>(header.body), static_cast<global_index>(text.size())};
    check_edges(graph, [&](global_index vertex, const std::string& reason) {
      throw malformed_line(line_of_vertex(text, body, vertex), reason);
    });
    return graph;
  } catch (const malformed_line& malformed) {
    fail_at(text, malformed);
  }
}

}  // namespace detail

/// The graph in the file `path`: `n m [fmt [ncon]]`, then a line for each vertex, with its size, its weights
/// and its neighbours, numbered from 1, each followed by the edge's weight, as fmt says; lines with % are
/// skipped, and lines may end with CRLF. Each of `threads` threads parses a range of the lines; the result
/// is the same for any number of threads. Local. Throws input_error naming file and line: if a line is
/// malformed, a neighbour is outside the graph, is the vertex itself or is repeated, or an edge is not in
/// the lists of both ends with one weight; if there are more or fewer vertices or edges than the first line
/// says. Source: METIS 5.1.0, section 4.1.
inline metis_graph read_metis_graph(const std::filesystem::path& path, int threads = 1) {
  return detail::read_metis(text_source(path), threads);
}

/// The graph in `text`, the content of such a file, which `name` denotes in messages. Throws as
/// read_metis_graph does.
inline metis_graph parse_metis_graph(std::string_view text, const std::string& name, int threads = 1) {
  return detail::read_metis(text_source(text, name), threads);
}

/// Writes the file `path`, which read_metis_graph reads. Local. Throws input_error, before it
/// writes, if such a file cannot hold the graph, and if the file cannot be written; it then stays as
/// it was.
inline void write_metis_graph(const std::filesystem::path& path, const metis_graph& graph) {
  const std::string name = path.string();
  detail::check_edges(graph, [&](global_index, const std::string& reason) { detail::fail(name, reason); });
  const auto constraints = static_cast<std::size_t>(graph.constraints);
  const bool sizes = !graph.vertex_sizes.empty(), weights = !graph.vertex_weights.empty(),
             weighted = !graph.edge_weights.empty();
  const std::string format{sizes ? '1' : '0', weights ? '1' : '0', weighted ? '1' : '0'};
  std::string first = std::to_string(graph.vertices()) + ' ' + std::to_string(graph.neighbours.size() / 2);
  if (format != "000") first += ' ' + format;
  if (weights && constraints != 1) first += ' ' + std::to_string(constraints);
  detail::write_lines(path, first + '\n', graph.offsets.size() - 1, [&](std::string& text, std::size_t v) {
    const std::size_t before = text.size();
    const auto append = [&](std::int64_t number) {
      if (text.size() > before) text += ' ';
      detail::append_number(text, number);
    };
    if (sizes) append(graph.vertex_sizes[v]);
    for (std::size_t k = 0; weights && k < constraints; ++k)
      append(graph.vertex_weights[v * constraints + k]);
    for (auto e = static_cast<std::size_t>(graph.offsets[v]);
         e < static_cast<std::size_t>(graph.offsets[v + 1]); ++e) {
      append(graph.neighbours[e] + 1);
      if (weighted) append(graph.edge_weights[e]);
    }
    text += '\n';
  });
}

}  // namespace partita::io
