// SPDX-License-Identifier: Apache-2.0
// Offsets of 32 bits that count any number of entries, in parts of a few here.
#include "partita/matrix/tile_shape.hpp"

#include <doctest/doctest.h>

#include "support/ranks.hpp"

namespace test_tile_shape {

using namespace partita;

/// Two tiles of three rows: 2, 3 and 1 entries, then 0, 4 and 2.
const std::vector<std::size_t> begins{0, 2, 5, 6, 6, 6, 10, 12};

local::tile_shape two_tiles() {
  local::tile_shape shape;
  shape.rows = 3;
  shape.widths = {5, 7};
  return shape;
}

/// The entries that the parts of all tiles hold, in order, as numbers from 0 on; columns are these numbers.
std::vector<local_index> entries_of(const local::tile_shape& shape, std::vector<local_index> structure) {
  for (std::size_t e = 0; e < shape.nonzeros; ++e) structure.push_back(static_cast<local_index>(e));
  std::vector<local_index> found;
  for (std::size_t t = 0; t < shape.count(); ++t) {
    local_index rows = 0;
    for (const local::csr_slice<double>& p :
         shape.parts<double>(t, shape.structure_at(structure.data()), nullptr)) {
      CHECK(p.first_row == rows);
      rows += p.entries.rows;
      CHECK(p.entries.cols == shape.widths[t]);
      CHECK(p.entries.nonzeros() == p.entries.offsets[p.entries.rows] - p.entries.offsets[0]);
      for (local_index e = p.entries.offsets[0]; e < p.entries.offsets[p.entries.rows]; ++e)
        found.push_back(p.entries.columns[e]);
    }
    CHECK(rows == shape.rows);
  }
  return found;
}

TEST_CASE("tiles in parts of any size hold the same entries") {
  const std::vector<local_index> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const std::size_t most : {4, 5, 6, 7, 12, 100}) {
    CAPTURE(most);
    local::tile_shape shape = two_tiles();
    const auto structure = local::count_offsets(shape, begins, most, 0);
    CHECK(shape.nonzeros == 12);
    CHECK(structure.size() == shape.offsets_size());
    CHECK(shape.structure_size() == shape.offsets_size() + 12);
    CHECK(shape.restarts.empty() == (most >= 12));
    CHECK(entries_of(shape, structure) == all);
    const local::entry_lists lists(shape, structure);
    for (std::size_t t = 0; t < shape.count(); ++t)
      for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rows); ++i)
        CHECK(lists.begin(t, i) == begins[t * (static_cast<std::size_t>(shape.rows) + 1) + i]);
  }
}

TEST_CASE("rows of a tile, whichever parts they are in") {
  for (const std::size_t most : {4, 5, 7, 100})
    for (local_index begin = 0; begin <= 3; ++begin)
      for (local_index end = begin; end <= 3; ++end) {
        local::tile_shape shape = two_tiles();
        const auto structure = local::count_offsets(shape, begins, most, 0);
        for (std::size_t t = 0; t < 2; ++t) {
          local_index next = begin;
          for (const auto& part : shape.parts<double>(t, shape.structure_at(structure.data()), nullptr)) {
            const auto some = part.between(begin, end);
            CHECK(some.base == part.base);
            if (some.entries.rows == 0) continue;
            CHECK(some.first_row == next);
            next += some.entries.rows;
            for (local_index i = 0; i <= some.entries.rows; ++i)
              CHECK(some.base + static_cast<std::size_t>(some.entries.offsets[i]) ==
                    begins[4 * t + static_cast<std::size_t>(some.first_row + i)]);
            CHECK(some.entries.nonzeros() ==
                  some.entries.offsets[some.entries.rows] - some.entries.offsets[0]);
          }
          CHECK(next == end);
        }
      }
}

TEST_CASE("a row with more entries than a part may have is named") {
  test_support::expect_error<shape_error>(
      "row 41 has 4 entries in one tile of a sparse block, which holds no more than 3", [] {
        local::tile_shape shape = two_tiles();
        local::count_offsets(shape, begins, 3, 40);
      });
}

TEST_CASE("runs of entries cover all of them") {
  std::vector<std::pair<std::size_t, local_index>> runs;
  local::for_runs(7, 3, [&](std::size_t first, local_index count) { runs.emplace_back(first, count); });
  CHECK(runs == std::vector<std::pair<std::size_t, local_index>>{{0, 3}, {3, 3}, {6, 1}});
  local::for_runs(0, 3, [](std::size_t, local_index) { FAIL("there are none"); });
}

}  // namespace test_tile_shape
