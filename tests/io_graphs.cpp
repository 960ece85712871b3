// The karate club, and edge lists in text.
#include <doctest/doctest.h>
#include <numeric>
#include <set>
#include <vector>

#include "partita/io/graph_text.hpp"
#include "partita/io/karate.hpp"
#include "support/scratch.hpp"

namespace test_io_graphs {

using namespace partita;
using namespace test_support;
using int64s = std::vector<std::int64_t>;

TEST_CASE("karate club: 34 vertices, 78 ties in both directions, four classes") {
  const dataset club = karate_club();
  CHECK(club.vertices == 34);
  CHECK(club.features == 34);
  CHECK(club.classes == 4);
  REQUIRE(club.edges.size() == 156);
  std::set<std::pair<global_index, global_index>> pairs;
  for (const edge& e : club.edges) pairs.emplace(e.source, e.target);
  CHECK(pairs.size() == 156);
  for (const edge& e : club.edges) CHECK(pairs.contains({e.target, e.source}));
  int64s degrees(34), sizes(4);
  for (const edge& e : club.edges) ++degrees[static_cast<std::size_t>(e.source)];
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

TEST_CASE("edge lists in text") {
  const scratch folder;
  const auto read = [&](const std::string& text) {
    write_text(folder / "g.txt", text);
    return read_edge_list(folder / "g.txt");
  };
  const edge_list list =
      read("# Directed graph\r\n# From\tTo\r\n30\t1412\r\n 3 30\t\r\n\n1412 1412\r\n30\t1412\r\n7   3");
  CHECK(list.vertices() == 4);
  CHECK(list.ids == std::vector<global_index>{3, 7, 30, 1412});
  CHECK(list.edges == std::vector<edge>{{2, 3}, {0, 2}, {3, 3}, {2, 3}, {1, 0}});
  CHECK(read("").edges.empty());
  CHECK(read("# nothing\n").vertices() == 0);
  const auto refused = [&](const std::string& text) { return complaint(folder.dir, [&] { read(text); }); };
  CHECK(refused("source target\n0 1\n") == "g.txt:1: expected two vertex ids, found \"source target\"");
  CHECK(refused("# c\n0 1\n2\n") == "g.txt:3: expected two vertex ids, found \"2\"");
  CHECK(refused("0 1\r\n1 2 0.5\r\n") == "g.txt:2: expected two vertex ids, found \"1 2 0.5\"");
  CHECK(refused("0 -1\n") == "g.txt:1: expected two vertex ids, found \"0 -1\"");
  CHECK(refused("1,2\n") == "g.txt:1: expected two vertex ids, found \"1,2\"");
  CHECK(refused("0 1x\n") == "g.txt:1: expected two vertex ids, found \"0 1x\"");
  CHECK(refused("99999999999999999999 1\n") ==
        "g.txt:1: expected two vertex ids, found \"99999999999999999999 1\"");
  CHECK(refused(std::string("\1\xff", 2) + std::string(50, 'y')) ==
        "g.txt:1: expected two vertex ids, found \"??" + std::string(38, 'y') + "...\"");
  CHECK(refused("\x1f\x8b\x08 packed") == "g.txt: is packed with gzip, unpack it first");
  CHECK(complaint(folder.dir, [&] { read_edge_list(folder / "none.txt"); }) == "none.txt: no such file");
  fs::create_directory(folder / "d.txt");
  CHECK(complaint(folder.dir, [&] { read_edge_list(folder / "d.txt"); }) == "d.txt: is not a regular file");
}

}  // namespace test_io_graphs
