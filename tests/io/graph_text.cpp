// SPDX-License-Identifier: Apache-2.0
// Edge lists in text.
#include "partita/io/graph_text.hpp"

#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

#include "support/scratch.hpp"

namespace test_graph_text {

using namespace partita;
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
  std::istringstream text("5 7\n7 5\nx\n");
  CHECK(complaint(folder.dir, [&] { io::read_edge_list(text, folder / "unpacked"); }) ==
        "unpacked:3: expected two vertex ids, found \"x\"");
  CHECK(refused("\x1f\x8b\x08 packed") == "g.txt: is gzip-compressed; decompress it first");
  CHECK(complaint(folder.dir, [&] { io::read_edge_list(folder / "none.txt"); }) == "none.txt: no such file");
  fs::create_directory(folder / "d.txt");
  CHECK(complaint(folder.dir, [&] { io::read_edge_list(folder / "d.txt"); }) ==
        "d.txt: is not a regular file");
}

TEST_CASE(
    "edges: those that repeat an earlier one are counted, wherever they stand and whichever way they go") {
  CHECK(io::duplicate_edges({}) == 0);
  CHECK(io::duplicate_edges({{0, 1}, {1, 0}, {1, 1}}) == 0);
  CHECK(io::duplicate_edges({{0, 1}, {1, 0}, {0, 1}, {2, 2}, {0, 1}, {2, 2}}) == 3);
}

}  // namespace test_graph_text
