// SPDX-License-Identifier: Apache-2.0
// Rows of CSR tiles: what they hold, which columns they name, and the two tiles that these make.
#include "partita/matrix/tiles.hpp"

#include <doctest/doctest.h>
#include <map>

#include "partita/memory/host.hpp"
#include "support/ranks.hpp"

namespace test_tiles {

using namespace partita;
using entries_of = std::map<std::pair<global_index, global_index>, double>;

const interval rows{10, 14};
const std::vector<interval> columns{{0, 4}, {4, 4}, {4, 9}, {9, 11}};
const std::vector<triplet<double>> given{{13, 10, 1}, {10, 0, 2}, {10, 3, 3}, {11, 5, 4}, {10, 0, 5},
                                         {13, 8, 6},  {13, 5, 7}, {12, 2, 8}, {13, 2, 9}};

local::csr_tiles<double, host> made(const device_queue<host>& q) {
  return local::make_csr_tiles(q, rows, std::span<const interval>(columns), given);
}

/// By row and column, both counted from 0; `first` is where each tile's columns begin.
entries_of entries(const local::csr_tiles<double, host>& a, const std::vector<global_index>& first) {
  entries_of found;
  for (std::size_t t = 0; t < a.count(); ++t)
    for (const auto& part : a.parts(t))
      for (local_index i = 0; i < part.entries.rows; ++i)
        for (local_index e = part.entries.offsets[i]; e < part.entries.offsets[i + 1]; ++e)
          found[{part.first_row + i, first[t] + part.entries.columns[e]}] += part.entries.values[e];
  return found;
}

TEST_CASE("tiles hold the entries, duplicates added up") {
  const device_queue<host> q;
  entries_of expected;
  for (const auto& e : given) expected[{e.row - rows.begin, e.col}] += e.value;
  const auto a = made(q);
  CHECK(a.widths == std::vector<local_index>{4, 0, 5, 2});
  CHECK(a.nonzeros == expected.size());
  CHECK(entries(a, {0, 4, 4, 9}) == expected);
}

TEST_CASE("tiles know the columns that they name, but not of the own one") {
  const device_queue<host> q;
  const auto a = made(q);
  CHECK(a.needed(q, 0).of_tile == std::vector<std::vector<local_index>>{{}, {}, {1, 4}, {1}});
  CHECK(a.needed(q, 0).counts() == std::vector<global_index>{0, 0, 2, 1});
  test_support::expect_error<error>("were this rank's, after tile 0", [&] { a.needed(q, 2); });
}

TEST_CASE("merged tiles are the own one and all others, whose columns count needed rows") {
  const device_queue<host> q;
  const auto a = made(q);
  const auto& merged = a.merged(q, 2, 100);
  CHECK(merged.widths == std::vector<local_index>{5, 4});  // columns 0, 2, 3 and 10
  CHECK(merged.nonzeros == a.nonzeros);
  const entries_of expected{{{0, 5 + 0}, 7}, {{0, 5 + 2}, 3}, {{1, 1}, 4},     {{2, 5 + 1}, 8},
                            {{3, 5 + 1}, 9}, {{3, 1}, 7},     {{3, 5 + 3}, 1}, {{3, 4}, 6}};
  CHECK(entries(merged, {0, 5}) == expected);
}

}  // namespace test_tiles
