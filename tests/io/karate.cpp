// SPDX-License-Identifier: Apache-2.0
// The karate club.
#include "partita/io/karate.hpp"

#include <doctest/doctest.h>
#include <numeric>
#include <set>

namespace test_karate {

using namespace partita;
using int64s = std::vector<std::int64_t>;

TEST_CASE("karate club: 34 vertices, 78 ties in both directions, four classes") {
  const io::dataset club = io::karate_club();
  CHECK(club.vertices == 34);
  CHECK(club.features == 34);
  CHECK(club.classes == 4);
  REQUIRE(club.edges.size() == 156);
  std::set<std::pair<global_index, global_index>> pairs;
  for (const io::edge& e : club.edges) pairs.emplace(e.source, e.target);
  CHECK(pairs.size() == 156);
  for (const io::edge& e : club.edges) CHECK(pairs.contains({e.target, e.source}));
  int64s degrees(34), sizes(4);
  for (const io::edge& e : club.edges) ++degrees[static_cast<std::size_t>(e.source)];
  CHECK(degrees == int64s{16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2,  2,
                          2,  2, 3,  2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17});
  for (std::int64_t label : club.labels) ++sizes[static_cast<std::size_t>(label)];
  CHECK(sizes == int64s{12, 5, 11, 6});
  int64s parts(4), training;
  for (std::size_t v = 0; v < 34; ++v) {
    ++parts[club.split[v]];
    if (club.split[v] == 1) training.push_back(static_cast<std::int64_t>(v));
  }
  CHECK(parts == int64s{0, 4, 10, 20});
  CHECK(training == int64s{0, 4, 8, 23});
  std::vector<float> row(34);
  club.vertex_features.fill_row(5, row);
  CHECK(row[5] == 1);
  CHECK(std::accumulate(row.begin(), row.end(), 0.0f) == 1);
}

}  // namespace test_karate
