// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
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

/// With far memory, in how many parts vertices of a rank come one after the other: neighbours are in the same
/// chunks of a product then. One where the partitioner does not look for neighbours.
int parts_in_part(const command& c, partita::global_index vertices, int ranks) {
  const std::string& name = c.partition.name;
  if (c.far.empty() || (name != "stream" && !name.starts_with("metis"))) return 1;
  return static_cast<int>(std::clamp<partita::global_index>(vertices / ranks / 256, 1, 64));
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
    const int each = parts_in_part(c, data.vertices, ranks);
    if (each > 1) {
      std::vector<int> finer(parts.size());
      if (world.rank() == 0) finer = parts_within(o.name, parts, ranks, data.edges, each, c.training.seed);
      world.broadcast(finer, 0);
      for (std::size_t v = 0; v < parts.size(); ++v) parts[v] = each * parts[v] + finer[v];
    }
    io::reordered_dataset sorted = io::reordered(std::move(data), parts, each * ranks);
    data = std::move(sorted.data);
    for (std::size_t p = 0; p < sorted.sizes.size(); p += static_cast<std::size_t>(each))
      c.training.block_sizes.push_back(
          std::accumulate(&sorted.sizes[p], &sorted.sizes[p] + each, partita::global_index{0}));
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
  if (world.rank() == 0) {
    for (partita::global_index v = 0; v < data.vertices; ++v)
      p.chunk_of[static_cast<std::size_t>(v)] = static_cast<int>(rows.owner(partita::vertex_rows.rows, v));
    p.chunk_of =
        parts_within("metis", p.chunk_of, rows.shape().size(), data.edges, p.chunk_count(), c.training.seed);
  }
  world.broadcast(p.chunk_of, 0);
}
