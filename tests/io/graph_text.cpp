// SPDX-License-Identifier: Apache-2.0
// Edge lists in text.
#include "partita/io/graph_text.hpp"

#include "support/scratch.hpp"

namespace test_graph_text {

using namespace test_support;

TEST_CASE("edge lists in text") {
  const scratch folder;
  const auto read = [&](const std::string& text) {
    write_text(folder / "g.txt", text);
    return io::read_edge_list(folder / "g.txt");
  };
  const io::edge_list list =
      read("# Directed graph\r\n# From\tTo\r\n30\t1412\r\n 3 30\t\r\n\n1412 1412\r\n30\t1412\r\n7   3");
  CHECK(list.vertices() == 4);
  CHECK(list.ids == std::vector<global_index>{3, 7, 30, 1412});
  CHECK(list.edges == std::vector<io::edge>{{2, 3}, {0, 2}, {3, 3}, {2, 3}, {1, 0}});
  CHECK(read("").edges.empty());
  CHECK(read("# nothing\n").vertices() == 0);
  const auto refused = [&](const std::string& text) { return complaint(folder.dir, [&] { read(text); }); };
  CHECK(refused("source target\nsource target\n") ==
        "g.txt:2: expected two vertex ids, found \"source target\"");
  CHECK(refused("# c\n0 1\n2\n") == "g.txt:3: expected two vertex ids, found \"2\"");
  CHECK(refused("0 1\r\n1 2 0.5\r\n") == "g.txt:2: expected two vertex ids, found \"1 2 0.5\"");
  CHECK(refused("0 -1\n") == "g.txt:1: expected two vertex ids, found \"0 -1\"");
  CHECK(refused("1,,2\n") == "g.txt:1: expected two vertex ids, found \"1,,2\"");
  CHECK(refused("0 1x\n") == "g.txt:1: expected two vertex ids, found \"0 1x\"");
  CHECK(refused("99999999999999999999 1\n") ==
        "g.txt:1: vertex 99999999999999999999 is larger than 9223372036854775807");
  CHECK(refused(std::string("\1\xff", 2) + std::string(50, 'y')) ==
        "g.txt:1: expected two vertex ids, found \"??" + std::string(38, 'y') + "...\"");
  CHECK(complaint(folder.dir, [&] { io::parse_edge_list("5 7\n7 5\nx\n", folder / "unpacked"); }) ==
        "unpacked:3: expected two vertex ids, found \"x\"");
  CHECK(refused("\x1f\x8b\x08 packed") == "g.txt: is gzip-compressed; decompress it first");
  CHECK(complaint(folder.dir, [&] { io::read_edge_list(folder / "none.txt"); }) == "none.txt: no such file");
  fs::create_directory(folder / "d.txt");
  CHECK(complaint(folder.dir, [&] { io::read_edge_list(folder / "d.txt"); }) ==
        "d.txt: is not a regular file");
}

TEST_CASE("edge lists: a third column has weights, in all lines or in none") {
  const scratch folder;
  const io::edge_list list = io::parse_edge_list("# u v w\n1 2 0.5\r\n2\t1 -3 \n\n1 1\t1e-3", "m");
  CHECK(list.edges == std::vector<io::edge>{{0, 1}, {1, 0}, {0, 0}});
  CHECK(list.weights == std::vector<double>{0.5, -3, 1e-3});
  CHECK(io::parse_edge_list("1 2\n", "m").weights.empty());
  const auto refused = [&](const std::string& text) {
    return complaint(folder.dir, [&] { io::parse_edge_list(text, folder / "m"); });
  };
  const std::string expected = ": expected two vertex ids and a weight, found ";
  CHECK(refused("1 2 3\n1 2\n") == "m:2" + expected + "\"1 2\"");
  const std::string ignored = " (further columns can be ignored, convert --ignore-weights)";
  for (const char* word : {"x", "inf", "1e999", "nan", "2004-04-15"})
    CHECK(refused("1 2 3\n\n1 2 " + std::string(word) + "\n") ==
          "m:3: the third column cannot be a weight, which is a finite number: " + io::detail::quoted(word) +
              ignored);
  CHECK(refused("1 2 3 4 5\n") ==
        "m:1: expected two vertex ids, a weight and no more than a time, found \"1 2 3 4 5\"" + ignored);
  CHECK(refused("1 2 3\n+1 2 3\n") == "m:2" + expected + "\"+1 2 3\"");
}

TEST_CASE("edge lists: the dialects of other collections") {
  const auto read = [](const std::string& text, io::further_columns further = io::further_columns::weights) {
    return io::parse_edge_list(text, "m", 2, further);
  };
  for (const char* text :
       {"% sym unweighted\n% 2 3 3\n3 5\n5 9\n", "\xef\xbb\xbf# made on Windows\r\n3 5\r\n5 9\r\n",
        "\xef\xbb\xbf"
        "3 5\n5 9",
        "// comment\n3,5\n5, 9\n", "source target\n3 5\n5 9\n", "# c\n\"id_1\";\"id_2\"\n3;5\n5 ; 9\n",
        "FromNodeId,ToNodeId\r\n3\t5\r\n5\t9\r\n"}) {
    const io::edge_list list = read(text);
    CHECK(list.edges == std::vector<io::edge>{{0, 1}, {1, 2}});
    CHECK(list.ids == std::vector<global_index>{3, 5, 9});
    CHECK(list.weights.empty());
  }
  CHECK(read("% KONECT\n1 2 0.5 1082040961\n2 1 -1 1082155839\n").weights == std::vector<double>{0.5, -1});
  CHECK(read("u,v,weight\n1,2,5D-1\n2,1,-1\n").weights == std::vector<double>{0.5, -1});
  const io::edge_list bare = read("1,2,2004-04-15,x,y\r\n2,1\n", io::further_columns::ignored);
  CHECK(bare.edges == std::vector<io::edge>{{0, 1}, {1, 0}});
  CHECK(bare.weights.empty());
}

/// Edges of a ring with chords; ids have gaps of this size.
std::string ring(global_index n, global_index gap, bool weighted) {
  std::string text = "# a ring\n";
  for (global_index u = 0; u < n; ++u)
    for (const global_index v : {(u + 1) % n, (7 * u + 3) % n}) {
      text += std::to_string(gap * u) + '\t' + std::to_string(gap * v);
      text += (weighted ? ' ' + std::to_string(u + 3 * v) : "") + (u % 3 == 0 ? "\r\n" : "\n");
    }
  return text;
}

TEST_CASE("edge lists: as one thread reads them, so do several, and what is written is read again") {
  const scratch folder;
  for (const global_index gap : {1, 2, 1000000007})
    for (const bool weighted : {false, true}) {
      const std::string text = ring(101, gap, weighted);
      const io::edge_list one = io::parse_edge_list(text, "m");
      CHECK(one.vertices() == 101);
      CHECK(one.ids[100] == 100 * gap);
      CHECK(one.edges[201] == io::edge{100, (700 + 3) % 101});
      for (int threads = 2; threads <= 7; ++threads) {
        const io::edge_list several = io::parse_edge_list(text, "m", threads);
        CHECK(several.edges == one.edges);
        CHECK(several.ids == one.ids);
        CHECK(several.weights == one.weights);
        CHECK(complaint(folder.dir, [&] {
                io::parse_edge_list(text + "bad\n", folder / "m", threads);
              }).starts_with("m:204: expected two vertex ids"));
      }
      io::write_edge_list(folder / "w.txt", one);
      const io::edge_list again = io::read_edge_list(folder / "w.txt", 3);
      CHECK(again.edges == one.edges);
      CHECK(again.ids == one.ids);
      CHECK(again.weights == one.weights);
    }
}

TEST_CASE(
    "edges: those that repeat an earlier one are counted, wherever they stand and whichever way they go") {
  CHECK(io::duplicate_edges({}) == 0);
  CHECK(io::duplicate_edges({{0, 1}, {1, 0}, {1, 1}}) == 0);
  CHECK(io::duplicate_edges({{0, 1}, {1, 0}, {0, 1}, {2, 2}, {0, 1}, {2, 2}}) == 3);
}

}  // namespace test_graph_text
