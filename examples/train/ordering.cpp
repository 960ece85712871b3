// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"

#include <chrono>
#include <span>

#include "../ranks/command_line.hpp"
#include "../ranks/parts.hpp"
#include "partita/io/parts.hpp"
#include "partita/io/reordered.hpp"

namespace {

std::vector<int> parts_of(const io::dataset& data, const ordering& asked, int parts, std::uint64_t seed) {
  if (asked.name == "given") return io::read_parts(asked.file, data.vertices, parts);
  return parts_by(asked.name, data.vertices, data.edges, parts, seed);
}

/// The chunk of each vertex: METIS's parts of the graphs within the blocks of the ranks.
std::vector<int> metis_chunks(const io::dataset& data, const partita::blocking& rows, int chunks,
                              std::uint64_t seed) {
  const partita::axis_set cut = partita::vertex_rows.rows;
  std::vector<std::vector<io::edge>> edges(static_cast<std::size_t>(rows.shape().size()));
  for (const io::edge& e : data.edges)
    if (const std::size_t block = rows.owner(cut, e.source); block == rows.owner(cut, e.target))
      edges[block].push_back(e);
  std::vector<int> chunk_of;
  for (std::size_t r = 0; r < edges.size(); ++r) {
    const partita::interval block = rows.block(cut, rows.shape().at(static_cast<int>(r)));
    for (io::edge& e : edges[r]) e = {e.source - block.begin, e.target - block.begin};
    const std::vector<int> parts = parts_by("metis", block.size(), edges[r], chunks, seed);
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
  if (o.name != "given" && std::ranges::find(partitioners(), o.name) == partitioners().end())
    throw usage_error("--partition: " + o.name + " is not one of " + CLI::detail::join(partitioners(), ", ") +
                      ", given FILE");
  if (o.name != "given" && (joined || words.size() == 2))
    throw usage_error("--partition " + o.name + " takes no file, and there is '" + o.file + "'");
  return o;
}

io::dataset order_vertices(io::dataset data, command& c, int ranks, const partita::communicator& world) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  ordering& o = c.partition;
  std::vector<int> parts(static_cast<std::size_t>(data.vertices));
  if (world.rank() == 0) parts = parts_of(data, o, ranks, c.training.seed);
  world.broadcast(parts, 0);
  o.parts = ranks;
  const partita::interval mine = partita::comm::share_of(
      static_cast<partita::global_index>(data.edges.size()), world.rank(), world.size());
  const std::span<const io::edge> edges(data.edges);
  o.quality = io::quality_of(
      edges.subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())), parts,
      world, [&] { data.edges.forget(); });
  if (o.name != "none") {
    io::reordered_dataset sorted = io::reordered(std::move(data), parts, ranks);
    data = std::move(sorted.data);
    c.training.block_sizes = std::move(sorted.sizes);
    c.old_number = std::make_shared<const std::vector<partita::global_index>>(std::move(sorted.old_number));
  }
  o.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  return data;
}

void cut_chunks(const io::dataset& data, command& c, partita::mesh_shape inside,
                const partita::communicator& world) {
  using partita::blocking;
  nn::pipeline_options& p = c.training.pipeline;
  const std::vector<partita::global_index>& sizes = c.training.block_sizes;
  const blocking rows = sizes.empty() ? blocking::even(data.vertices, inside, partita::nesting::rows)
                                      : blocking::given(sizes, inside, partita::nesting::rows);
  p.chunk_of.assign(static_cast<std::size_t>(data.vertices), 0);
  if (world.rank() == 0) p.chunk_of = metis_chunks(data, rows, p.chunk_count(), c.training.seed);
  world.broadcast(p.chunk_of, 0);
}
