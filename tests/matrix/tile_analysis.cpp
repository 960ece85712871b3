// SPDX-License-Identifier: Apache-2.0
// What plans find out about a row of tiles: which columns these name, and the two tiles that they make.
#include "partita/matrix/tile_analysis.hpp"

#include <doctest/doctest.h>

#include "support/tiles.hpp"

namespace test_tile_analysis {

using namespace partita;
using namespace test_support;

local::tile_analysis<double, host> analysed(std::size_t own) {
  const device_queue<host> q;
  return {q, std::make_shared<local::csr_tiles<double, host>>(small_tiles(q)), own, 100};
}

TEST_CASE("tiles know the columns that they name, but not of the own one") {
  auto a = analysed(0);
  CHECK(a.needed().of_tile == std::vector<std::vector<local_index>>{{}, {}, {1, 4}, {1}});
  CHECK(a.needed().counts() == std::vector<global_index>{0, 0, 2, 1});
}

TEST_CASE("merged tiles are the own one and all others, whose columns count needed rows; new values, too") {
  auto a = analysed(2);
  const auto& merged = a.merged();
  CHECK(merged.widths == std::vector<local_index>{5, 4});  // columns 0, 2, 3 and 10
  CHECK(merged.nonzeros == a.tiles().nonzeros);
  CHECK(a.merged_shape().widths == merged.widths);
  const entries_of_tiles expected{{{0, 5 + 0}, 7}, {{0, 5 + 2}, 3}, {{1, 1}, 4},     {{2, 5 + 1}, 8},
                                  {{3, 5 + 1}, 9}, {{3, 1}, 7},     {{3, 5 + 3}, 1}, {{3, 4}, 6}};
  CHECK(entries_of(merged, {0, 5}) == expected);
  std::vector<double> twice = a.tiles().values_of_entries(device_queue<host>());
  for (double& v : twice) v *= 2;
  a.assign_values(twice);
  for (const auto& [place, value] : entries_of(merged, {0, 5})) CHECK(value == 2 * expected.at(place));
}

TEST_CASE("merged tiles of slices: the needed rows of the tiles behind the own one, going round") {
  auto a = analysed(2);
  // Needed are columns 0, 2, 3 of tile 0, two tiles behind, and 0 of tile 3, the next one; tile 1 has none.
  CHECK(a.sliced(2).slice() == std::vector<local_index>{0, 0, 1, 0});
  CHECK(a.sliced(2).place() == std::vector<local_index>{0, 1, 0, 2});
  const auto& merged = a.merged(2);
  CHECK(merged.widths == std::vector<local_index>{5, 3, 1});
  const entries_of_tiles expected{{{0, 5 + 0}, 7}, {{0, 10 + 0}, 3}, {{1, 1}, 4},     {{2, 5 + 1}, 8},
                                  {{3, 5 + 1}, 9}, {{3, 1}, 7},      {{3, 5 + 2}, 1}, {{3, 4}, 6}};
  CHECK(entries_of(merged, {0, 5, 10}) == expected);
  std::vector<int> sorted{1, 2, 3, 4};
  a.sliced(2).sort(std::span(sorted));
  CHECK(sorted == std::vector<int>{1, 2, 4, 3});
  std::vector<double> twice = a.tiles().values_of_entries(device_queue<host>());
  for (double& v : twice) v *= 2;
  a.assign_values(twice);
  for (const auto& [place, value] : entries_of(merged, {0, 5, 10})) CHECK(value == 2 * expected.at(place));
}

TEST_CASE("merged tiles begin at multiples of what a library wants, behind places that none has") {
  auto a = analysed(2);
  const auto merged = [&](std::size_t aligned) {
    return local::merge(a.tiles(), a.tiles().entries(device_queue<host>()), 2, a.needed(), a.sliced(2), 100,
                        aligned);
  };
  const local::merged_tiles without = merged(1), with = merged(4);
  CHECK(with.shape.nonzeros == 8);
  CHECK(with.shape.entries_of_parts == without.shape.entries_of_parts);
  const std::size_t offsets = without.shape.offsets_size();
  CHECK(without.structure.size() == offsets + 8);
  CHECK(with.structure.size() == offsets + 9);
  std::size_t next = 0;  // of those without gaps
  for (std::size_t t = 0; t < 3; ++t)
    for (const auto& part :
         with.shape.parts<char>(t, with.shape.structure_at(with.structure.data()), nullptr)) {
      CHECK(part.entries.offsets[0] == 4 * static_cast<local_index>(t));
      for (local_index e = part.entries.offsets[0]; e < part.entries.offsets[4]; ++e, ++next) {
        CHECK(part.entries.columns[e] == without.structure[offsets + next]);
        CHECK(with.order[static_cast<std::size_t>(e)] == without.order[next]);
      }
    }
  CHECK(next == 8);
}

TEST_CASE("compacted tiles have the columns of others renumbered, in the same places") {
  auto a = analysed(0);
  const auto structure = a.tiles().structure_at(a.compacted().data());
  entries_of_tiles found;
  for (std::size_t t = 0; t < a.tiles().count(); ++t)
    for (const auto& part : a.tiles().tile_shape::parts(t, structure, a.compacted_values().data()))
      for (local_index i = 0; i < part.entries.rows; ++i)
        for (local_index e = part.entries.offsets[i]; e < part.entries.offsets[i + 1]; ++e)
          found[{part.first_row + i, 10 * static_cast<global_index>(t) + part.entries.columns[e]}] =
              part.entries.values[e];
  const entries_of_tiles expected{{{0, 0}, 7},  {{0, 3}, 3},  {{1, 20}, 4}, {{2, 2}, 8},
                                  {{3, 20}, 7}, {{3, 21}, 6}, {{3, 2}, 9},  {{3, 30}, 1}};
  CHECK(found == expected);
}

}  // namespace test_tile_analysis
