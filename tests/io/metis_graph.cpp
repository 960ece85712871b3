// SPDX-License-Identifier: Apache-2.0
// Graphs as METIS's programs have them.
#include "partita/io/metis_graph.hpp"

#include "partita/base/random.hpp"
#include "support/scratch.hpp"

namespace test_metis_graph {

using namespace test_support;
using int64s = std::vector<std::int64_t>;

/// Of METIS's manual, figure 2: without weights, with those of edges, with those of both.
const std::string plain = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
const std::string edges_weighted =
    "7 11 001\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 "
    "5\n";
const std::string both_weighted =
    "% with comments\r\n7 11 11\r\n4 5 1 3 2 2 1\r\n%\r\n2 1 1 3 2 4 1\r\n5 5 3 4 2 2 2 1 2\r\n3 2 1 3 2 6 2 "
    "7 5\r\n"
    "1 1 1 3 3 6 2\r\n6 5 2 4 2 7 6\r\n2 6 6 4 5\r\n\r\n";

TEST_CASE("METIS graphs: those of its manual") {
  const io::metis_graph a = io::parse_metis_graph(plain, "m");
  CHECK(a.vertices() == 7);
  CHECK(a.offsets == std::vector<global_index>{0, 3, 6, 10, 14, 17, 20, 22});
  CHECK(a.neighbours ==
        std::vector<global_index>{4, 2, 1, 0, 2, 3, 4, 3, 1, 0, 1, 2, 5, 6, 0, 2, 5, 4, 3, 6, 5, 3});
  CHECK(a.edge_weights.empty());
  CHECK(a.vertex_weights.empty());
  const io::metis_graph b = io::parse_metis_graph(edges_weighted, "m"),
                        c = io::parse_metis_graph(both_weighted, "m");
  CHECK(b.neighbours == a.neighbours);
  CHECK(b.edge_weights == int64s{1, 2, 1, 1, 2, 1, 3, 2, 2, 2, 1, 2, 2, 5, 1, 3, 2, 2, 2, 6, 6, 5});
  CHECK(c.neighbours == a.neighbours);
  CHECK(c.edge_weights == b.edge_weights);
  CHECK(c.vertex_weights == int64s{4, 2, 5, 3, 1, 6, 2});
  const io::metis_graph d = io::parse_metis_graph("3 1 110 2\n1 2 0 3\n4 5 6\n7 8 9 1\n\n", "m");
  CHECK(d.vertex_sizes == int64s{1, 4, 7});
  CHECK(d.vertex_weights == int64s{2, 0, 5, 6, 8, 9});
  CHECK(d.constraints == 2);
  CHECK(d.neighbours == std::vector<global_index>{2, 0});
  CHECK(io::parse_metis_graph("0 0", "m").vertices() == 0);
  CHECK(io::parse_metis_graph("2 0 0\n\n\n\n", "m").vertices() == 2);
}

/// A ring of n vertices with chords; weights and sizes as the format says.
io::metis_graph ring(global_index n, bool edges, bool vertices, bool sizes) {
  io::metis_graph graph;
  for (global_index v = 0; v < n; ++v) {
    for (const global_index step : {1, 2, 5})
      for (const global_index u : {(v + step) % n, (v + n - step) % n}) {
        graph.neighbours.push_back(u);
        if (edges) graph.edge_weights.push_back(1 + u + v + 7 * u * v);
      }
    graph.offsets.push_back(static_cast<global_index>(graph.neighbours.size()));
    if (vertices) graph.vertex_weights.insert(graph.vertex_weights.end(), {v % 3, v, 1});
    if (sizes) graph.vertex_sizes.push_back(2 * v);
  }
  graph.constraints = vertices ? 3 : 1;
  return graph;
}

TEST_CASE("METIS graphs: what is written is read again, by any number of threads") {
  const scratch folder;
  for (int kinds = 0; kinds < 8; ++kinds) {
    const io::metis_graph graph = ring(53, kinds & 1, kinds & 2, kinds & 4);
    io::write_metis_graph(folder / "g.graph", graph);
    for (int threads = 1; threads <= 7; ++threads) {
      const io::metis_graph read = io::read_metis_graph(folder / "g.graph", threads);
      CHECK(read.offsets == graph.offsets);
      CHECK(read.neighbours == graph.neighbours);
      CHECK(read.edge_weights == graph.edge_weights);
      CHECK(read.vertex_weights == graph.vertex_weights);
      CHECK(read.vertex_sizes == graph.vertex_sizes);
      CHECK(read.constraints == graph.constraints);
    }
  }
  io::metis_graph one_way = ring(53, true, false, false);
  one_way.edge_weights.back() += 1;
  CHECK(complaint(folder.dir, [&] {
          io::write_metis_graph(folder / "x.graph", one_way);
        }).starts_with("x.graph: the edge from vertex 48 to 53 has the weight "));
  CHECK(!fs::exists(folder / "x.graph"));
}

TEST_CASE("METIS graphs: malformed ones are refused with their line") {
  const scratch folder;
  const auto refused = [&](const std::string& text) {
    const auto with = [&](int threads) {
      return complaint(folder.dir, [&] { io::parse_metis_graph(text, folder / "g", threads); });
    };
    CHECK(with(3) == with(1));
    return with(1);
  };
  CHECK(refused("") == "g:1: expected the numbers of vertices and edges");
  CHECK(refused("%\n") == "g:2: expected the numbers of vertices and edges");
  CHECK(refused("%\nx\n") == "g:2: expected the numbers of vertices and edges, found \"x\"");
  CHECK(refused("2\n") == "g:1: expected the numbers of vertices and edges, found \"2\"");
  CHECK(refused("2 1 2\n2\n1\n") == "g:1: expected three digits 0 or 1 as the format, found \"2 1 2\"");
  CHECK(refused("2 1 1 2\n2\n1\n") ==
        "g:1: expected no more than the weights of each vertex, 1 to 1000 where the format has them, found "
        "\"2 1 1 2\"");
  CHECK(refused("2 1\n2\n1\n2\n") == "g:4: expected the lines of 2 vertices and no more");
  CHECK(refused("9000000000000000000 1\n2\n1\n") ==
        "g:4: expected the lines of 9000000000000000000 vertices, found 2");
  CHECK(refused("2 2\n2\n1\n") ==
        "g: expected 2 edges, each in the lines of both its ends, found 2 neighbours");
  CHECK(refused("2 1\n2\n3\n") == "g:3: expected neighbours from 1 to 2, found \"3\"");
  CHECK(refused("2 1\n2\n0\n") == "g:3: expected neighbours from 1 to 2, found \"0\"");
  CHECK(refused("2 1\n2\n-1\n") == "g:3: expected neighbours, found \"-1\"");
  CHECK(refused("2 1\n2\n18446744073709551615\n") ==
        "g:3: 18446744073709551615 is larger than 9223372036854775807");
  CHECK(refused("9223372036854775808 1\n") == "g:1: 9223372036854775808 is larger than 9223372036854775807");
  CHECK(refused("2 1 1\n2 -9223372036854775809\n1 1\n") ==
        "g:2: -9223372036854775809 is smaller than -9223372036854775808");
  CHECK(refused("2 1\n2 x\n1\n") == "g:2: expected neighbours, found \"2 x\"");
  CHECK(refused("2 1 1\n2\n1\n") == "g:2: expected a weight after each neighbour, found \"2\"");
  CHECK(refused("2 1 1\n2 0\n1 0\n") == "g:2: expected positive weights of edges, found \"2 0\"");
  CHECK(refused("2 1 10\n\n1\n") == "g:2: expected the weight of a vertex, found \"\"");
  CHECK(refused("% c\n3 2\n2\n1 2\n3\n") == "g:4: vertex 2 is a neighbour of itself");
  CHECK(refused("3 2\n2 2\n1 1\n\n") == "g:2: vertex 1 has the neighbour 2 twice");
  CHECK(refused("3 2\n2 3\n% c\n1 3\n\n") == "g:2: vertex 1 has the neighbour 3, which does not have it");
  CHECK(refused("2 1 1\n2 3\n1 4\n") ==
        "g:2: the edge from vertex 1 to 2 has the weight 3, and on the way back 4");
  CHECK(refused("\x1f\x8b\x08") == "g: is gzip-compressed; decompress it first");
}

TEST_CASE("METIS graphs: damaged ones are read or refused, nothing else") {
  for (int trial = 0; trial < 2000; ++trial) {
    const std::uint64_t word = random_key{29, static_cast<std::uint64_t>(trial), 0}.word();
    std::string text = both_weighted;
    for (std::int64_t change = 0; change < 2; ++change)
      text[base::random_bits(word, change, 0) % text.size()] =
          "0123456789 \n\r%-x"[base::random_bits(word, change, 1) % 16];
    try {
      const io::metis_graph graph = io::parse_metis_graph(text, "m", 1 + trial % 3);
      REQUIRE(graph.neighbours.size() == graph.edge_weights.size());
    } catch (const input_error&) {
    }
  }
}

}  // namespace test_metis_graph
