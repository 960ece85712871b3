// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Part numbers of vertices, one part for each rank: random ones, those in a file, and their quality.
/// Partitioners are in partition/, see partition/metis.hpp.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/base/random.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/comm/self.hpp"
#include "partita/io/edge.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/number_text.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

/// In-neighbours in CSR: those of vertex v are the sources from offsets[v] on.
struct neighbour_lists {
  std::vector<global_index> offsets = {0};  ///< [n + 1]
  std::vector<global_index> sources;        ///< one per edge
};

/// The in-neighbours of n vertices, each in the order of its edges. Local.
inline neighbour_lists in_neighbours(global_index vertices, std::span<const edge> edges) {
  neighbour_lists lists{std::vector<global_index>(static_cast<std::size_t>(vertices) + 1, 0),
                        std::vector<global_index>(edges.size())};
  for (const edge& e : edges) ++lists.offsets[static_cast<std::size_t>(e.target) + 1];
  std::inclusive_scan(lists.offsets.begin(), lists.offsets.end(), lists.offsets.begin());
  std::vector<global_index> next(lists.offsets.begin(), lists.offsets.end() - 1);
  for (const edge& e : edges)
    lists.sources[static_cast<std::size_t>(next[static_cast<std::size_t>(e.target)]++)] = e.source;
  return lists;
}

/// The share of edges and neighbours that parts of vertices keep together.
struct partition_quality {
  double edge_cut = 0;  ///< the fraction of edges between different parts; 0 if there are no edges
  /// The mean, over the vertices with in-edges, of the fraction of a vertex's in-edges that come from its
  /// own part; 1 if there are no edges. It is the expected share of uniformly sampled neighbours that are in
  /// the vertex's own part.
  double locality = 1;
};

namespace detail {

/// counts (n, 2) += the in-edges of each vertex, and its in-edges from its own part.
inline void add_in_edges(std::span<const edge> edges, std::span<const int> parts,
                         std::vector<global_index>& counts) {
  for (const edge& e : edges) {
    const auto source = static_cast<std::size_t>(e.source), target = static_cast<std::size_t>(e.target);
    ++counts[2 * target];
    counts[2 * target + 1] += parts[source] == parts[target] ? 1 : 0;
  }
}

}  // namespace detail

/// The quality of `parts` (n), the same on all ranks. `edges` are this rank's share of the graph's edges,
/// between vertices 0 to n - 1; `forget` is called after each piece of them, to release their memory.
/// Collective over `world`. What travels: an all-reduce of 2 n elements.
inline partition_quality quality_of(std::span<const edge> edges, std::span<const int> parts,
                                    const communicator& world = self::world(),
                                    const std::function<void()>& forget = {}) {
  constexpr std::size_t piece = std::size_t{1} << 21;
  std::vector<global_index> in(2 * parts.size());  // (n, 2): in-edges, and in-edges from the own part
  for (std::size_t begin = 0; begin < edges.size(); begin += std::min(piece, edges.size() - begin)) {
    detail::add_in_edges(edges.subspan(begin, std::min(piece, edges.size() - begin)), parts, in);
    if (forget) forget();
  }
  world.all_reduce(in);
  global_index all = 0, own = 0, targets = 0;
  double fractions = 0;
  for (std::size_t v = 0; v < parts.size(); ++v) {
    if (in[2 * v] == 0) continue;
    all += in[2 * v];
    own += in[2 * v + 1];
    ++targets;
    fractions += static_cast<double>(in[2 * v + 1]) / static_cast<double>(in[2 * v]);
  }
  if (all == 0) return {};
  return {static_cast<double>(all - own) / static_cast<double>(all),
          fractions / static_cast<double>(targets)};
}

/// The parts of n vertices in their present order, in part_count blocks; each of the first n mod part_count
/// is one vertex larger than the others. Local. Throws shape_error unless there is a part.
inline std::vector<int> even_parts(global_index vertices, int part_count) {
  if (part_count < 1)
    base::throw_error<shape_error>({"vertices cannot be divided into ", part_count, " parts"});
  std::vector<int> parts;
  parts.reserve(static_cast<std::size_t>(vertices));
  for (int part = 0; part < part_count; ++part)
    parts.insert(parts.end(),
                 static_cast<std::size_t>(vertices / part_count + (part < vertices % part_count ? 1 : 0)),
                 part);
  return parts;
}

/// even_parts assigned to the vertices at random, as a function of the seed. Local. Throws shape_error
/// unless there is a part.
inline std::vector<int> random_parts(global_index vertices, int part_count, std::uint64_t seed) {
  std::vector<int> parts = even_parts(vertices, part_count);
  base::shuffle(parts, random_key{seed, 0, 0}.word());
  return parts;
}

namespace detail {

/// A part number that was read from `where`.
template <class Number>
int part_at(const std::string& where, Number part, int part_count) {
  if (part < 0 || part >= part_count)
    fail(where, "part " + std::to_string(part) + " is not one of the " + std::to_string(part_count) +
                    " parts, which are numbered from 0");
  return static_cast<int>(part);
}

inline void check_parts(const std::string& name, global_index found, global_index vertices) {
  if (found != vertices)
    fail(name, "expected a part for each of " + std::to_string(vertices) + " vertices, found " +
                   std::to_string(found));
}

template <class T>
std::vector<int> parts_in_npy(const std::filesystem::path& path, int part_count) {
  const npy_array<T> numbers = read_npy<T>(path);
  std::vector<int> parts;
  for (std::size_t row = 0; row < numbers.values.size(); ++row)
    parts.push_back(part_at(path.string() + ": row " + std::to_string(row), numbers.values[row], part_count));
  return parts;
}

inline std::vector<int> parts_in_text(const std::string& name, int part_count) {
  std::ifstream stream(name, std::ios::binary);
  if (!stream) fail(name, "cannot be opened");
  std::vector<int> parts;
  std::string buffer;
  for (std::size_t number = 1; std::getline(stream, buffer); ++number) {
    std::string_view line = buffer;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    line.remove_suffix(line.size() - std::min(line.find_last_not_of(" \t\r") + 1, line.size()));
    const std::string where = name + ":" + std::to_string(number);
    std::int64_t part = 0;
    const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), part);
    if (status == std::errc::result_out_of_range) fail(where, "part " + beyond_range(line));
    if (status != std::errc{} || end != line.data() + line.size())
      fail(where, "expected the number of a part, found " + quoted(line));
    parts.push_back(part_at(where, part, part_count));
  }
  if (stream.bad()) fail(name, "cannot be read");
  return parts;
}

}  // namespace detail

/// The part of each of n vertices from the file `path`: an int32, int64 or uint64 vector (n) if its name
/// ends in .npy, otherwise text with one number per line, as METIS's programs write it. Local. Throws
/// input_error naming the file, and the row or the line if one is at fault, if the file is missing or
/// malformed, if it has more or fewer than n numbers, or if a number is not in [0, part_count).
inline std::vector<int> read_parts(const std::filesystem::path& path, global_index vertices, int part_count) {
  const std::string name = detail::name_of_file(path);
  std::vector<int> parts;
  if (path.extension() == ".npy") {
    const npy_header header = read_npy_header(path);
    if (header.shape.size() != 1)
      detail::fail(name,
                   "expected a part for each vertex, found the shape " + detail::shape_text(header.shape));
    detail::check_parts(name, header.shape.front(), vertices);
    parts = header.descr == "<i4" ? detail::parts_in_npy<std::int32_t>(path, part_count)
                                  : detail::parts_in_npy<std::int64_t>(path, part_count);
  } else {
    parts = detail::parts_in_text(name, part_count);
    detail::check_parts(name, static_cast<global_index>(parts.size()), vertices);
  }
  return parts;
}

}  // namespace partita::io
