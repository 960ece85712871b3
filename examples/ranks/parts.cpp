// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"

#include "partita/io/parts.hpp"
#include "partita/partition/orders.hpp"
#include "partita/partition/volume.hpp"
#ifdef PARTITA_WITH_METIS
#include "partita/partition/metis.hpp"
#endif

namespace {

#ifdef PARTITA_WITH_METIS
/// Parts for few edges, for little volume or by chance, whichever a refinement brings to the lowest largest
/// volume: by chance where a few vertices are neighbours of most.
std::vector<int> balanced_parts(const partita::io::neighbour_lists& a, int parts, std::uint64_t seed) {
  namespace partition = partita::partition;
  const auto vertices = static_cast<partita::global_index>(a.offsets.size()) - 1;
  std::vector<std::vector<int>> starts = {partita::io::random_parts(vertices, parts, seed)};
  for (const auto objective : {partition::part_objective::cut, partition::part_objective::volume})
    starts.push_back(
        partition::metis_parts(a.offsets, a.sources, parts, {.objective = objective, .seed = seed}));
  std::vector<int> best;
  partita::global_index least = 0;
  for (std::vector<int>& start : starts) {
    std::vector<int> found = partition::lower_largest_volume(a.offsets, a.sources, std::move(start), parts);
    const partita::global_index largest = partition::volumes_of(a.offsets, a.sources, found, parts).largest();
    if (!best.empty() && largest >= least) continue;
    best = std::move(found);
    least = largest;
  }
  return best;
}
#endif

std::vector<int> metis_parts_by([[maybe_unused]] const std::string& partitioner,
                                [[maybe_unused]] const partita::io::neighbour_lists& a,
                                [[maybe_unused]] int parts, [[maybe_unused]] std::uint64_t seed) {
#ifdef PARTITA_WITH_METIS
  using partita::partition::part_objective;
  if (partitioner == "metis-balanced") return balanced_parts(a, parts, seed);
  const part_objective objective = partitioner == "metis" ? part_objective::cut : part_objective::volume;
  return partita::partition::metis_parts(a.offsets, a.sources, parts, {.objective = objective, .seed = seed});
#else
  throw partita::error("this program was built without METIS; install libmetis-dev and build again");
#endif
}

}  // namespace

const std::vector<std::string>& partitioners() {
  static const std::vector<std::string> names = {"none",   "random", "degree",       "rcm",
                                                 "stream", "metis",  "metis-volume", "metis-balanced"};
  return names;
}

std::vector<int> parts_by(const std::string& partitioner, partita::global_index vertices,
                          std::span<const partita::io::edge> edges, int parts, std::uint64_t seed) {
  namespace partition = partita::partition;
  if (partitioner == "none") return partita::io::even_parts(vertices, parts);
  if (partitioner == "random") return partita::io::random_parts(vertices, parts, seed);
  const partita::io::neighbour_lists a = partita::io::in_neighbours(vertices, edges);
  if (partitioner == "degree")
    return partition::parts_in_order(partition::degree_order(a.offsets, a.sources), parts);
  if (partitioner == "rcm")
    return partition::parts_in_order(partition::reverse_cuthill_mckee(a.offsets, a.sources), parts);
  if (partitioner == "stream") return partition::streamed_parts(a.offsets, a.sources, parts);
  return metis_parts_by(partitioner, a, parts, seed);
}

std::vector<int> parts_within(const std::string& partitioner, std::span<const int> part_of, int parts,
                              std::span<const partita::io::edge> edges, int each, std::uint64_t seed) {
  using partita::io::edge;
  std::vector<partita::global_index> sizes(static_cast<std::size_t>(parts), 0), number;
  for (const int p : part_of) number.push_back(sizes[static_cast<std::size_t>(p)]++);
  std::vector<std::vector<edge>> inside(sizes.size());
  const auto at = [](partita::global_index v) { return static_cast<std::size_t>(v); };
  for (const edge& e : edges)
    if (const int p = part_of[at(e.source)]; p == part_of[at(e.target)])
      inside[static_cast<std::size_t>(p)].push_back({number[at(e.source)], number[at(e.target)]});
  std::vector<std::vector<int>> finer;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    finer.push_back(parts_by(partitioner, sizes[p], inside[p], each, seed));
    inside[p] = {};
  }
  std::vector<int> found;
  for (std::size_t v = 0; v < part_of.size(); ++v)
    found.push_back(finer[static_cast<std::size_t>(part_of[v])][at(number[v])]);
  return found;
}
