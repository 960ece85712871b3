// SPDX-License-Identifier: Apache-2.0
// Links in whole rows, each once, by source or by target, on every rank that has the vertex.
#include "partita/graph/link_rows.hpp"

#include <doctest/doctest.h>
#include <set>

#include "partita/graph/link_split.hpp"
#include "partita/io/karate.hpp"
#include "support/meshes.hpp"

namespace test_link_rows {

using namespace partita;
using test_support::host_mesh;

TEST_CASE("links of karate by either end, with and without those that were held out") {
  io::dataset data = graph::split_links(io::karate_club(), {.validation = 0.1, .test = 0.2});
  data.edges.push_back({1, 5});  // not its reverse
  data.edges.push_back({1, 5});
  test_support::on_usual_meshes(std::array{1, 2, 3, 6}, [&](const host_mesh& m, const policy& p) {
    const blocking rows = blocking::even(data.vertices, m.shape(), nesting::rows);
    const interval mine = rows.block(vertex_rows.rows, m.at());
    for (const bool held_out : {false, true})
      for (const bool of_sources : {false, true}) {
        std::set<std::pair<global_index, global_index>> expected, found;
        const auto add = [&](const io::array<io::edge>& edges) {
          for (const io::edge e : edges) {
            const auto place = of_sources ? std::pair(e.source, e.target) : std::pair(e.target, e.source);
            if (mine.contains(place.first)) expected.insert(place);
          }
        };
        add(data.edges);
        if (held_out) add(data.validation_links), add(data.test_links);
        const auto links =
            graph::link_rows<double>(m, p, rows, data, {.held_out = held_out, .of_sources = of_sources});
        std::size_t entries = 0;
        for (global_index v = mine.begin; v < mine.end; ++v) {
          const sampling::graph_row row = links.row(v);
          for (local_index e = 0; e < row.count; ++e, ++entries)
            found.insert({v, links.columns()[row.begin + static_cast<std::size_t>(e)]});
        }
        CHECK(found == expected);
        CHECK(entries == expected.size());
      }
  });
}

}  // namespace test_link_rows
