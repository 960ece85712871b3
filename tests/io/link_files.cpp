// SPDX-License-Identifier: Apache-2.0
// Links and negatives of a folder, as they are stored, and what is wrong with them by file and row.
#include "partita/io/link_files.hpp"

#include "support/scratch.hpp"

namespace test_io_link_files {

using namespace test_support;

void write(const fs::path& path, std::vector<global_index> shape, std::vector<std::int64_t> values) {
  io::write_npy(path.string(), shape, std::span<const std::int64_t>(values));
}

TEST_CASE("splits, negatives of each link, and negatives that links share") {
  const scratch folder;
  CHECK_FALSE(io::read_links(folder.dir, 9).has_value());
  write(folder / "links_test.npy", {3, 2}, {0, 1, 8, 2, 0, 3});
  const auto test = io::read_links(folder.dir, 9).value();
  CHECK(test.test == io::array<io::edge>{{0, 1}, {8, 2}, {0, 3}});
  CHECK((test.train.empty() && test.validation.empty() && test.negatives[1].vertices.empty()));
  write(folder / "links_train.npy", {1, 2}, {4, 5});
  write(folder / "links_valid.npy", {2, 2}, {5, 6, 6, 7});
  write(folder / "links_valid_negatives.npy", {2, 3}, {0, 1, 2, 3, 4, 5});
  write(folder / "links_test_negatives.npy", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto all = io::read_links(folder.dir, 9).value();
  CHECK(all.train == io::array<io::edge>{{4, 5}});
  CHECK(all.validation == io::array<io::edge>{{5, 6}, {6, 7}});
  CHECK_FALSE(all.negatives[0].are_shared);
  CHECK(all.negatives[0].vertices == io::array<std::int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(all.negatives[1].are_shared);
  CHECK(all.negatives[1].vertices.size() == 8);
}

TEST_CASE("what is refused") {
  const scratch folder;
  const auto refused = [&](const char* part) {
    CHECK_THROWS_WITH_AS(io::read_links(folder.dir, 4), doctest::Contains(part), input_error);
  };
  write(folder / "links_train.npy", {1, 2}, {0, 1});
  refused("links_train.npy: needs links_valid.npy or links_test.npy");
  write(folder / "links_valid.npy", {2, 2}, {0, 1, 2, 4});
  refused("links_valid.npy: row 1 has vertex 4, which is not one of 4");
  write(folder / "links_valid.npy", {1, 3}, {0, 1, 2});
  refused("links_valid.npy: expected two vertices in each row, found the shape 1 x 3");
  write(folder / "links_valid.npy", {2}, {0, 1});
  refused("links_valid.npy: expected a row of vertices for each link, found the shape");
  write(folder / "links_valid.npy", {1, 2}, {0, 1});
  write(folder / "links_test_negatives.npy", {1, 2}, {0, 1});
  refused("links_test_negatives.npy: needs links_test.npy");
  write(folder / "links_test.npy", {1, 2}, {0, 1});
  write(folder / "links_test_negatives.npy", {2, 3}, {0, 1, 2, 3, 0, 1});
  refused("links_test_negatives.npy: expected a row for each of the 1 links of links_test.npy");
  write(folder / "links_test_negatives.npy", {1, 3}, {0, 1, -2});
  refused("links_test_negatives.npy: row 0 has vertex -2, which is not one of 4");
  write(folder / "links_test_negatives.npy", {0, 2}, {});
  refused("links_test_negatives.npy: holds no negatives");
  write(folder / "links_test_negatives.npy", {1, 2}, {0, 1});
  write(folder / "links_train.npy", {0, 2}, {});
  refused("links_train.npy: holds no links");
}

}  // namespace test_io_link_files
