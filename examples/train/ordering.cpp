// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"

#include <chrono>
#include <fmt/core.h>

#include "arrangement.hpp"
#include "command.hpp"
#include "partita/io/parts.hpp"
#include "partita/io/reordered.hpp"

namespace {

std::vector<int> parts_of(const partita::io::dataset& data, const ordering& asked, int parts,
                          std::uint64_t seed) {
  if (asked.name == "random") return partita::io::random_parts(data.vertices, parts, seed);
  if (asked.name == "metis") return metis_parts_of(data, parts, seed);
  if (asked.name == "given") return partita::io::read_parts(asked.file, data.vertices, parts);
  return partita::io::even_parts(data.vertices, parts);
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
  o.edge_cut = partita::io::edge_cut(data.edges, parts);
  o.locality = partita::io::locality(data.edges, parts);
  if (o.name != "none") {
    partita::io::reordered_dataset sorted = partita::io::reordered(std::move(data), parts, ranks);
    data = std::move(sorted.data);
    c.training.block_sizes = std::move(sorted.sizes);
  }
  o.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  return data;
}

void print_ordering(const ordering& o) {
  fmt::print(
      "--partition {}: {} parts, {:.1f} % of the edges are cut, {:.1f} % of a vertex's in-neighbours are in "
      "its part, {:.2f} s\n",
      o.name, o.parts, 100 * o.edge_cut, 100 * o.locality, o.seconds);
}
