// SPDX-License-Identifier: Apache-2.0
// Entries of a tile as they arrive, and by rows and columns, against a map of them.
#include "partita/matrix/sorted_entries.hpp"

#include <doctest/doctest.h>
#include <map>

#include "partita/base/random.hpp"
#include "support/sanitized.hpp"

namespace test_sorted_entries {

using namespace partita;
using local::arrived_entries, local::packed_place;

/// Entry e of a tile; seven eighths of the rows and columns have any, and many are repeated.
triplet<float> entry(global_index e, global_index rows, global_index cols, bool ones) {
  const auto among = [e](std::uint64_t key, global_index n) {
    const auto at = static_cast<global_index>(base::random_bits(key, e, 0) % static_cast<std::uint64_t>(n));
    return at % 8 == 5 ? at - 1 : at;
  };
  const float value = ones ? 1.0F : static_cast<float>(base::random_uniform(5, e, 1) - 0.5);
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
void check_tile(global_index count, global_index rows, global_index cols, bool ones, int threads) {
  arrivals a(count, rows, cols, ones);
  const std::size_t of_others = a.entries.count(0) + a.entries.count(2);
  const auto tile = local::sort_entries(a.entries, 1, static_cast<std::size_t>(rows),
                                        static_cast<std::size_t>(cols), threads);
  const auto expected = summed(a.in_order);
  CHECK(a.entries.count(1) == 0);
  CHECK(a.entries.count(0) + a.entries.count(2) == of_others);
  CHECK(tile.repeated == a.in_order.size() - expected.size());
  REQUIRE(tile.begins.size() == static_cast<std::size_t>(rows) + 1);
  CHECK(tile.begins.front() == 0);
  CHECK(tile.begins.back() == expected.size());
  std::size_t entries = 0, wrong = 0;
  auto next = expected.begin();
  for (const auto& s : tile.segments) {
    REQUIRE((s.values.empty() || s.values.size() == s.places.size()));
    REQUIRE(entries + s.places.size() <= expected.size());
    for (std::size_t e = 0; e < s.places.size(); ++e, ++next, ++entries) {
      const std::size_t row = local::row_of_place(s.places[e]);
      const bool in_row = tile.begins[row] <= entries && entries < tile.begins[row + 1];
      if (!in_row || s.places[e] != packed_place(next->first.first, next->first.second) ||
          s.value(e) != next->second)
        ++wrong;
    }
  }
  CHECK(entries == expected.size());
  CHECK_MESSAGE(wrong == 0, count, " entries, ", threads, " threads");
}

TEST_CASE("sort_entries: places ascend, and those that repeat are added in the order of arrival") {
  for (const bool ones : {false, true})
    for (const global_index count : {0, 1, 7, 400})
      for (const std::pair<global_index, global_index>& size :
           {std::pair<global_index, global_index>{1, 1}, {1, 90}, {90, 1}, {13, 17}, {40, 31}})
        check_tile(count, size.first, size.second, ones, 1);
}

TEST_CASE("sort_entries: several threads") {
  constexpr global_index worth_threads = 1 << 16;
  for (const int threads : {2, 3}) {
    if (test_support::sanitized && threads == 2) continue;
    check_tile(worth_threads - 1, 200, 150, false, threads);
    check_tile(worth_threads + 9, 200, 150, false, threads);
    check_tile(worth_threads + 9, 150, 200, true, threads);
    check_tile(worth_threads + 9, 1, 2, false, threads);
  }
}

TEST_CASE("sort_entries: several buckets, of rows by the thousand and of single rows") {
  constexpr global_index count =
      test_support::sanitized ? 140'000 : 300'000;  // in buckets of 2^17, of ranges of rows
  for (const bool ones : {false, true})
    for (const std::pair<global_index, global_index>& size :
         {std::pair<global_index, global_index>{100'000, 70'000}, {3, 1 << 22}, {1 << 22, 3}, {700, 900}})
      check_tile(count, size.first, size.second, ones, 2);
}

TEST_CASE("sort_entries: several segments") {
  // More than 2^22 entries of two buckets, in one run.
  constexpr global_index count = (global_index{1} << 22) + 77;
  arrived_entries<float> entries(1);
  const auto to = entries.add(0, static_cast<std::size_t>(count) + 2, false);
  for (global_index e = 0; e < count; ++e)
    to.places[static_cast<std::size_t>(e)] = packed_place(1, count - 1 - e);
  to.places[static_cast<std::size_t>(count)] = packed_place(2, 5);
  to.places[static_cast<std::size_t>(count) + 1] = packed_place(2, 5);
  const auto tile = local::sort_entries(entries, 0, 3, static_cast<std::size_t>(count), 1);
  const auto all = static_cast<std::size_t>(count);
  CHECK(tile.begins == std::vector<std::size_t>{0, 0, all, all + 1});
  REQUIRE(tile.segments.size() == 2);
  REQUIRE(tile.segments[0].places.size() == all);
  bool ascend = true;
  for (global_index e = 0; e < count; ++e)
    ascend = ascend && tile.segments[0].places[static_cast<std::size_t>(e)] == packed_place(1, e);
  CHECK(ascend);
  CHECK(tile.segments[0].values.empty());
  REQUIRE(tile.segments[1].places.size() == 1);
  CHECK(tile.segments[1].places[0] == packed_place(2, 5));
  CHECK(tile.segments[1].value(0) == 2);
  CHECK(tile.repeated == 1);
}

TEST_CASE("sort_entries: no rows, no columns") {
  for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 0}, {0, 0}}) {
    arrived_entries<float> none(1);
    const auto tile = local::sort_entries(none, 0, rows, cols, 3);
    CHECK(tile.begins == std::vector<std::size_t>(rows + 1, 0));
    CHECK(tile.repeated == 0);
    for (const auto& s : tile.segments) CHECK(s.places.empty());
  }
}

}  // namespace test_sorted_entries
