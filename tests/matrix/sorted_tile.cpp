// SPDX-License-Identifier: Apache-2.0
// Entries of a tile as they arrive, and the tile in compressed rows, against a map of its entries.
#include "partita/matrix/sorted_tile.hpp"

#include <doctest/doctest.h>
#include <map>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"

namespace test_sorted_tile {

using namespace partita;
using local::arrived_entries;
using local::packed_place;

namespace {

/// Entry e of a tile; seven eighths of the rows and columns have any, and many are repeated.
triplet<float> entry(global_index e, global_index rows, global_index cols, bool ones) {
  const auto among = [e](std::uint64_t key, global_index n) {
    const auto at = static_cast<global_index>(random_bits(key, e, 0) % static_cast<std::uint64_t>(n));
    return at % 8 == 5 ? at - 1 : at;
  };
  const float value = ones ? 1.0F : static_cast<float>(random_uniform(5, e, 1) - 0.5);
  return {among(3, rows), among(4, cols), value};
}

/// `count` entries for tile 1 of 3, in runs of 1, 2, ... entries; every third run has values of 1 and does
/// not store them. Runs of other tiles lie between.
struct arrivals {
  arrived_entries<float> entries{3};
  std::vector<triplet<float>> in_order;

  arrivals(global_index count, global_index rows, global_index cols, bool ones) {
    global_index next = 0;
    for (global_index length = 1; next < count; ++length) {
      const bool stored = !ones && length % 3 != 0;
      arrived_entries<float>::run run;
      for (const global_index end = std::min(count, next + length); next < end; ++next) {
        triplet<float> t = entry(next, rows, cols, !stored);
        in_order.push_back(t);
        run.places.push_back(packed_place(t.row, t.col));
        if (stored) run.values.push_back(t.value);
      }
      entries.add(1, std::move(run));
      entries.add(length % 2 == 0 ? 0 : 2, {{packed_place(0, length)}, {2}});
    }
  }
};

/// The sums at each place, each added up in order.
std::map<std::pair<global_index, global_index>, float> summed(const std::vector<triplet<float>>& in_order) {
  std::map<std::pair<global_index, global_index>, float> sums;
  for (const triplet<float>& t : in_order) {
    const auto [at, is_new] = sums.try_emplace({t.row, t.col}, t.value);
    if (!is_new) at->second += t.value;
  }
  return sums;
}

/// Checks the tile of (rows, cols) bit by bit.
void check_tile(global_index count, global_index rows, global_index cols, bool ones, int threads,
                std::size_t most_narrow) {
  arrivals a(count, rows, cols, ones);
  const std::size_t of_others = a.entries.count(0) + a.entries.count(2);
  const auto tile = local::sort_tile(a.entries, 1, static_cast<std::size_t>(rows),
                                     static_cast<std::size_t>(cols), threads, most_narrow);
  const auto expected = summed(a.in_order);
  CHECK(a.entries.count(1) == 0);
  CHECK(a.entries.count(0) + a.entries.count(2) == of_others);
  CHECK(tile.repeated == a.in_order.size() - expected.size());
  REQUIRE(tile.begins.size() == static_cast<std::size_t>(rows) + 1);
  REQUIRE(tile.begins.front() == 0);
  REQUIRE(tile.begins.back() == expected.size());
  REQUIRE(tile.columns.size() == expected.size());
  REQUIRE(tile.values.size() == expected.size());
  std::size_t wrong = 0;
  auto next = expected.begin();
  for (std::size_t i = 0; i + 1 < tile.begins.size(); ++i)
    for (std::size_t e = tile.begins[i]; e < tile.begins[i + 1]; ++e, ++next)
      if (next->first != std::pair<global_index, global_index>(i, tile.columns[e]) ||
          next->second != tile.values[e])
        ++wrong;
  CHECK_MESSAGE(wrong == 0, count, " entries, ", threads, " threads");
}

}  // namespace

TEST_CASE("sort_tile: places ascend, and those that repeat are added in the order of arrival") {
  for (const bool ones : {false, true})
    for (const global_index count : {0, 1, 7, 400})
      for (const std::pair<global_index, global_index>& size :
           {std::pair<global_index, global_index>{1, 1}, {1, 90}, {90, 1}, {13, 17}, {40, 31}})
        check_tile(count, size.first, size.second, ones, 1, 1000);
}

TEST_CASE("sort_tile: entries counted in 64 bits") {
  // The switch is at 400 entries: both sides of it give the same.
  for (const std::size_t most_narrow : {0, 399, 400})
    for (const bool ones : {false, true}) check_tile(400, 13, 17, ones, 1, most_narrow);
}

TEST_CASE("sort_tile: several threads") {
  constexpr global_index worth_threads = 1 << 16;
  for (const int threads : {2, 3}) {
    check_tile(worth_threads - 1, 200, 150, false, threads, worth_threads);
    check_tile(worth_threads + 9, 200, 150, false, threads, worth_threads);
    check_tile(worth_threads + 9, 150, 200, true, threads, 2 * worth_threads);
    check_tile(worth_threads + 9, 1, 2, false, threads, 2 * worth_threads);
  }
}

TEST_CASE("sort_tile: no rows, no columns") {
  for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 0}, {0, 0}}) {
    arrived_entries<float> none(1);
    const auto tile = local::sort_tile(none, 0, rows, cols, 3);
    CHECK(tile.begins == std::vector<std::size_t>(rows + 1, 0));
    CHECK(tile.columns.empty());
    CHECK(tile.values.empty());
  }
}

TEST_CASE("list_bytes: of an entry as it arrived and by column, or by column and by row") {
  CHECK(local::list_bytes<float>(true) == (8 + 4) + (4 + 4));
  CHECK(local::list_bytes<float>(false) == 8 + 4);
  CHECK(local::list_bytes<double>(true) == (8 + 8) + (4 + 8));
  CHECK(local::list_bytes<double>(false) == 4 + (4 + 8));
}

}  // namespace test_sorted_tile
