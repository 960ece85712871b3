// SPDX-License-Identifier: Apache-2.0
#include "../ranks/parts.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "graph.hpp"
#include "partita/base/error.hpp"
#include "partita/io/parts.hpp"
#include "partita/partition/volume.hpp"

namespace {

/// The largest of some numbers over their mean.
double imbalance_of(const std::vector<partita::global_index>& each) {
  const auto all = static_cast<double>(std::accumulate(each.begin(), each.end(), partita::global_index{0}));
  return all == 0 ? 1 : static_cast<double>(std::ranges::max(each) * std::ssize(each)) / all;
}

std::string report_of(const partita::partition::part_volumes& v) {
  const auto edges = std::accumulate(v.entries.begin(), v.entries.end(), partita::global_index{0});
  char text[320];
  std::snprintf(
      text, sizeof text,
      "%.1f %% of the edges are cut; in a product %lld rows travel, of which a part sends at most %lld "
      "and receives at most %lld; the largest part has %.2f times the mean of edges, %.2f of vertices",
      edges == 0 ? 0 : 100.0 * static_cast<double>(v.cut) / static_cast<double>(edges),
      static_cast<long long>(v.sum()), static_cast<long long>(std::ranges::max(v.sent)),
      static_cast<long long>(std::ranges::max(v.received)), imbalance_of(v.entries),
      imbalance_of(v.vertices));
  return text;
}

}  // namespace

void write_parts(const std::string& path, const graph& g, const std::string& partitioner, int parts,
                 const std::function<void(const std::string&)>& say) {
  if (g.shape.rows != g.shape.cols)
    throw partita::input_error(path + ": parts are of the vertices of a graph, and there is a matrix of " +
                               to_string(g.shape));
  const std::vector<int> part_of = parts_by(partitioner, g.shape.rows, g.edges, parts, 0);
  std::ofstream file(path, std::ios::binary);
  for (const int part : part_of) file << part << '\n';
  if (!file.flush()) throw partita::input_error(path + ": cannot be written");
  const partita::io::neighbour_lists a = partita::io::in_neighbours(g.shape.rows, g.edges);
  say(path + ": " + partitioner + ", " + std::to_string(parts) +
      " parts: " + report_of(partita::partition::volumes_of(a.offsets, a.sources, part_of, parts)));
}
