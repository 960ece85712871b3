// SPDX-License-Identifier: Apache-2.0
#include "partita/matrix/arrived_entries.hpp"

#include <doctest/doctest.h>

namespace test_arrived_entries {

using namespace partita;
using local::packed_place;
using entries_of_tiles = local::arrived_entries<double>;

TEST_CASE("arrived_entries: a place is a row and a column") {
  constexpr global_index most = std::numeric_limits<local_index>::max();
  for (const global_index row : {global_index{0}, global_index{1}, most})
    for (const global_index col : {global_index{0}, global_index{7}, most}) {
      CHECK(local::row_of_place(packed_place(row, col)) == static_cast<std::size_t>(row));
      CHECK(local::col_of_place(packed_place(row, col)) == static_cast<std::size_t>(col));
    }
  CHECK(packed_place(2, 0) > packed_place(1, most));
}

TEST_CASE("arrived_entries: entries keep their tiles and their order") {
  entries_of_tiles entries(3);
  entries.add(2, {{packed_place(1, 4), packed_place(0, 2)}, {0.5, 0.25}});
  entries.add(0, {{packed_place(3, 3)}, {}});
  entries.add(2, {{packed_place(1, 4)}, {}});
  entries.add(1, {});
  CHECK(entries.tiles() == 3);
  CHECK(entries.of_tile(1).empty());
  CHECK(entries.of_tile(2).size() == 2);
  CHECK(entries.count(0) == 1);
  CHECK(entries.count(1) == 0);
  CHECK(entries.count(2) == 3);
  const std::vector<interval> columns{{0, 10}, {10, 20}, {20, 30}};
  CHECK(entries.triplets({100, 110}, columns) ==
        std::vector<triplet<double>>{{103, 3, 1}, {101, 24, 0.5}, {100, 22, 0.25}, {101, 24, 1}});
  entries.clear(2);
  CHECK(entries.count(2) == 0);
  CHECK(entries.count(0) == 1);
}

TEST_CASE("arrived_entries: entries that are written later") {
  entries_of_tiles entries(2);
  const auto write = [&](std::size_t count, bool with_values) {
    const auto to = entries.add(1, count, with_values);
    REQUIRE(to.places.size() == count);
    REQUIRE(to.values.size() == (with_values ? count : 0));
    for (std::size_t e = 0; e < count; ++e) {
      to.places[e] = packed_place(static_cast<global_index>(count), static_cast<global_index>(e));
      if (with_values) to.values[e] = 0.5;
    }
  };
  const std::vector<std::pair<std::size_t, bool>> added{{3, true},  {2, true},  {0, true}, {1, true},
                                                        {4, false}, {2, false}, {2, true}};
  std::vector<triplet<double>> expected;
  for (const auto& [count, with_values] : added) {
    write(count, with_values);
    for (std::size_t e = 0; e < count; ++e)
      expected.push_back(
          {static_cast<global_index>(count), static_cast<global_index>(e), with_values ? 0.5 : 1});
  }
  CHECK(entries.count(0) == 0);
  CHECK(entries.count(1) == expected.size());
  const std::vector<interval> columns{{0, 10}, {0, 10}};
  CHECK(entries.triplets({0, 10}, columns) == expected);
  CHECK(entries.of_tile(1).size() < added.size());
  CHECK(entries.take(1).size() > 1);
  CHECK(entries.count(1) == 0);
}

TEST_CASE("arrived_entries: sorted by place and value") {
  entries_of_tiles entries(2);
  entries.add(1, {{packed_place(1, 0), packed_place(0, 9), packed_place(0, 9)}, {1, 3, -2}});
  entries.add(1, {{packed_place(0, 9), packed_place(0, 1)}, {}});
  entries.sort();
  const std::vector<interval> columns{{0, 5}, {0, 10}};
  CHECK(entries.count(0) == 0);
  CHECK(entries.triplets({0, 2}, columns) ==
        std::vector<triplet<double>>{{0, 1, 1}, {0, 9, -2}, {0, 9, 1}, {0, 9, 3}, {1, 0, 1}});
}

}  // namespace test_arrived_entries
