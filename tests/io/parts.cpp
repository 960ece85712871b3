// SPDX-License-Identifier: Apache-2.0
// Part numbers of vertices: from chance, from files, and what they are worth.
#include "partita/io/parts.hpp"

#include <cstdlib>

#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "support/datasets.hpp"
#include "support/ranks.hpp"
#include "support/scratch.hpp"

namespace test_io_parts {

using namespace test_support;

TEST_CASE("parts: even ones are as blocks are, random ones as large") {
  CHECK(io::even_parts(7, 3) == std::vector<int>{0, 0, 0, 1, 1, 2, 2});
  CHECK(io::even_parts(2, 3) == std::vector<int>{0, 1});
  CHECK(io::even_parts(0, 2).empty());
  for (const int count : {1, 2, 3, 7, 40}) {
    std::vector<int> parts = io::random_parts(30, count, 5);
    CHECK(parts == io::random_parts(30, count, 5));
    if (count > 1) CHECK(parts != io::random_parts(30, count, 6));
    if (count > 1) CHECK_FALSE(std::ranges::is_sorted(parts));
    std::ranges::sort(parts);
    CHECK(parts == io::even_parts(30, count));
  }
  expect_error<shape_error>("divided into 0 parts", [] { (void)io::random_parts(3, 0, 1); });
}

TEST_CASE("parts: random ones are fair") {
  // Vertex 0 and vertex 29 in each part about equally often: 200 draws a part, six standard deviations
  // are 76.
  std::vector<int> of_first(5, 0), of_last(5, 0);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<int> parts = io::random_parts(30, 5, seed);
    ++of_first[static_cast<std::size_t>(parts.front())];
    ++of_last[static_cast<std::size_t>(parts.back())];
  }
  for (const int times : of_first) CHECK(std::abs(times - 200) < 76);
  for (const int times : of_last) CHECK(std::abs(times - 200) < 76);
}

TEST_CASE("parts: the edges between them, and the neighbours at home") {
  // In-neighbours of 0: 1 and 2; of 3: 0, 0 and itself; of 2: none of part 0.
  const std::vector<io::edge> edges{{1, 0}, {2, 0}, {0, 3}, {0, 3}, {3, 3}, {1, 2}};
  const std::vector<int> parts{0, 0, 1, 1};
  const io::partition_quality two = io::quality_of(edges, parts);
  CHECK(two.edge_cut == 4.0 / 6);
  CHECK(two.locality == doctest::Approx((1.0 / 2 + 1.0 / 3 + 0) / 3).epsilon(1e-15));
  for (const io::partition_quality& whole :
       {io::quality_of(edges, std::vector<int>(4, 0)), io::quality_of({}, parts)}) {
    CHECK(whole.edge_cut == 0);
    CHECK(whole.locality == 1);
  }
  std::vector<io::edge> many;  // more than a piece
  while (many.size() < std::size_t{1} << 21) many.insert(many.end(), edges.begin(), edges.end());
  int pieces = 0;
  CHECK(io::quality_of(many, parts, self::world(), [&] { ++pieces; }).edge_cut == two.edge_cut);
  CHECK(pieces == 2);
  for (const int ranks : {2, 3, 9})
    threads::run(ranks, [&](const communicator& world) {
      const interval mine = comm::share_of(std::ssize(edges), world.rank(), world.size());
      const io::partition_quality found =
          io::quality_of(std::span(edges).subspan(static_cast<std::size_t>(mine.begin),
                                                  static_cast<std::size_t>(mine.size())),
                         parts, world);
      CHECK(found.edge_cut == two.edge_cut);
      CHECK(found.locality == two.locality);
    });
}

TEST_CASE("parts: of random ones, a P-th of the neighbours is at home") {
  const io::dataset data = directed_graph(401);
  const std::vector<int> parts = io::random_parts(data.vertices, 4, 1);
  const io::partition_quality found = io::quality_of(data.edges, parts);
  CHECK(std::abs(found.edge_cut - 0.75) < 0.02);
  CHECK(std::abs(found.locality - 0.25) < 0.02);
}

TEST_CASE("parts: in-neighbours by vertex") {
  const std::vector<io::edge> edges{{1, 0}, {2, 3}, {0, 3}, {0, 3}, {3, 3}, {1, 2}};
  const io::neighbour_lists lists = io::in_neighbours(4, edges);
  CHECK(lists.offsets == std::vector<global_index>{0, 1, 1, 2, 6});
  CHECK(lists.sources == std::vector<global_index>{1, 1, 2, 0, 0, 3});
  CHECK(io::in_neighbours(2, {}).offsets == std::vector<global_index>{0, 0, 0});
}

TEST_CASE("parts: files, as text and as arrays") {
  const scratch folder;
  const std::vector<int> expected{2, 0, 1, 1};
  write_text(folder / "graph.part.3", "2\n0\n 1\t\r\n1");
  CHECK(io::read_parts(folder / "graph.part.3", 4, 3) == expected);
  io::write_npy(folder / "parts64.npy", {4}, std::vector<std::int64_t>{2, 0, 1, 1});
  CHECK(io::read_parts(folder / "parts64.npy", 4, 3) == expected);
  io::write_npy(folder / "parts32.npy", {4}, std::vector<std::int32_t>{2, 0, 1, 1});
  CHECK(io::read_parts(folder / "parts32.npy", 4, 3) == expected);
  write_text(folder / "empty", "");
  CHECK(io::read_parts(folder / "empty", 0, 3).empty());
}

TEST_CASE("parts: malformed files are named, with the line") {
  const scratch folder;
  const auto said = [&](const char* name) {
    return complaint(folder.dir, [&] { (void)io::read_parts(folder / name, 3, 2); });
  };
  const auto of_text = [&](const std::string& text) {
    write_text(folder / "p", text);
    return said("p");
  };
  CHECK(said("none") == "none: no such file");
  CHECK(of_text("0\n1\n") == "p: expected a part for each of 3 vertices, found 2");
  CHECK(of_text("0\n1\n0\n1\n") == "p: expected a part for each of 3 vertices, found 4");
  CHECK(of_text("0\n2\n0\n") == "p:2: part 2 is not one of the 2 parts, which are numbered from 0");
  CHECK(of_text("0\n1\n-1\n") == "p:3: part -1 is not one of the 2 parts, which are numbered from 0");
  CHECK(of_text("0\none\n0\n") == "p:2: expected the number of a part, found \"one\"");
  CHECK(of_text("0\n1 1\n0\n") == "p:2: expected the number of a part, found \"1 1\"");
  CHECK(of_text("0\n\n1\n0\n") == "p:2: expected the number of a part, found \"\"");
  CHECK(of_text("0\n99999999999999999999\n0\n") ==
        "p:2: part 99999999999999999999 is larger than 9223372036854775807");
  const auto of_array = [&](const std::vector<global_index>& shape, const auto& values) {
    io::write_npy(folder / "p.npy", shape, values);
    return said("p.npy");
  };
  using integers = std::vector<std::int64_t>;
  CHECK(of_array({2}, integers{0, 1}) == "p.npy: expected a part for each of 3 vertices, found 2");
  CHECK(of_array({3, 1}, integers{0, 1, 1}) ==
        "p.npy: expected a part for each vertex, found the shape 3 x 1");
  CHECK(of_array({3}, integers{0, 1, 2}) ==
        "p.npy: row 2: part 2 is not one of the 2 parts, which are numbered from 0");
  CHECK(of_array({3}, std::vector<float>{0, 1, 1}).starts_with("p.npy: expected int64"));
}

}  // namespace test_io_parts
