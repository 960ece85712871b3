// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"

#include <chrono>
#include <fmt/core.h>
#include <memory>

#include "../ranks/arrangement.hpp"
#include "command.hpp"
#include "partita/io/reordered.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/partition/policies.hpp"

namespace {

std::vector<int> parts_of(const partita::io::dataset& data, const ordering& asked, int parts,
                          std::uint64_t seed) {
  if (asked.name == "random") return partita::io::random_parts(data.vertices, parts, seed);
  if (asked.name == "metis") return metis_parts_of(data.vertices, data.edges, parts, seed);
  if (asked.name == "given") return partita::io::read_parts(asked.file, data.vertices, parts);
  return partita::io::even_parts(data.vertices, parts);
}

/// The chunk of each vertex: METIS's parts of the graphs within the blocks of the ranks.
std::vector<int> metis_chunks(const partita::io::dataset& data, const partita::blocking& rows, int chunks,
                              std::uint64_t seed) {
  const partita::axis_set cut = partita::vertex_rows.rows;
  std::vector<std::vector<partita::io::edge>> edges(static_cast<std::size_t>(rows.shape().size()));
  for (const partita::io::edge& e : data.edges)
    if (const std::size_t block = rows.owner(cut, e.source); block == rows.owner(cut, e.target))
      edges[block].push_back(e);
  std::vector<int> chunk_of;
  for (std::size_t r = 0; r < edges.size(); ++r) {
    const partita::interval block = rows.block(cut, rows.shape().at(static_cast<int>(r)));
    for (partita::io::edge& e : edges[r]) e = {e.source - block.begin, e.target - block.begin};
    const std::vector<int> parts = metis_parts_of(block.size(), edges[r], chunks, seed);
    chunk_of.insert(chunk_of.end(), parts.begin(), parts.end());
  }
  return chunk_of;
}

}  // namespace

ordering parse_ordering(const std::vector<std::string>& words) {
  ordering o;
  const std::string& first = words.front();
  o.name = first.substr(0, first.find(':'));
  const bool joined = o.name.size() < first.size();
  if (joined) o.file = first.substr(o.name.size() + 1);
  if (!joined && words.size() == 2) o.file = words.back();
  if (o.name == "given" && (o.file.empty() || (joined && words.size() == 2)))
    throw usage_error("--partition given needs a file with the part of each vertex: --partition given FILE");
  if (o.name != "given" && o.name != "none" && o.name != "random" && o.name != "metis")
    throw usage_error("--partition: " + o.name + " is not one of none, random, metis, given FILE");
  if (o.name != "given" && (joined || words.size() == 2))
    throw usage_error("--partition " + o.name + " takes no file, and there is '" + o.file + "'");
  return o;
}

std::string in_one_word(const ordering& o) {
  return o.name == "given" ? "given:" + absolute(std::filesystem::path(o.file)).lexically_normal().string()
                           : o.name;
}

partita::io::dataset order_vertices(partita::io::dataset data, command& c, int ranks,
                                    const partita::communicator& world) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  ordering& o = c.partition;
  std::vector<int> parts(static_cast<std::size_t>(data.vertices));
  if (world.rank() == 0) parts = parts_of(data, o, ranks, c.training.seed);
  world.broadcast(parts, 0);
  o.parts = ranks;
  const partita::interval mine = partita::comm::share_of(
      static_cast<partita::global_index>(data.edges.size()), world.rank(), world.size());
  const std::span<const partita::io::edge> edges(data.edges);
  o.quality = partita::io::quality_of(
      edges.subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())), parts,
      world, [&] { data.edges.forget(); });
  if (o.name != "none") {
    partita::io::reordered_dataset sorted = partita::io::reordered(std::move(data), parts, ranks);
    data = std::move(sorted.data);
    c.training.block_sizes = std::move(sorted.sizes);
    c.old_number = std::make_shared<const std::vector<partita::global_index>>(std::move(sorted.old_number));
  }
  o.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  return data;
}

void cut_chunks(const partita::io::dataset& data, command& c, partita::mesh_shape inside,
                const partita::communicator& world) {
  using partita::blocking;
  partita::nn::pipeline_options& p = c.training.pipeline;
  const std::vector<partita::global_index>& sizes = c.training.block_sizes;
  const blocking rows = sizes.empty() ? blocking::even(data.vertices, inside, partita::nesting::rows)
                                      : blocking::given(sizes, inside, partita::nesting::rows);
  p.chunk_of.assign(static_cast<std::size_t>(data.vertices), 0);
  if (world.rank() == 0) p.chunk_of = metis_chunks(data, rows, p.chunk_count(), c.training.seed);
  world.broadcast(p.chunk_of, 0);
}

void print_ordering(const ordering& o) {
  fmt::print(
      "--partition {}: {} parts, {:.1f} % of the edges are cut, {:.1f} % of a vertex's in-neighbours are in "
      "its part, {:.2f} s\n",
      o.name, o.parts, 100 * o.quality.edge_cut, 100 * o.quality.locality, o.seconds);
}

void print_chunks(const command& c, const partita::io::dataset& data) {
  const partita::nn::pipeline_options& p = c.training.pipeline;
  fmt::print("--chunk-cut metis: {} chunks, {:.1f} % of the edges run between them\n", p.chunk_count(),
             100 * partita::io::quality_of(data.edges, p.chunk_of).edge_cut);
}
