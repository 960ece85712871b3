// SPDX-License-Identifier: Apache-2.0
// What parts exchange, counted pair by pair, and a refinement that never raises the most of it.
#include "partita/partition/volume.hpp"

#include <doctest/doctest.h>
#include <set>

#include "partita/base/random.hpp"
#include "support/ranks.hpp"

namespace test_partition_volume {

using namespace partita;
using partition::lower_largest_volume, partition::part_volumes, partition::volumes_of;
using test_support::expect_error;
using numbers = std::vector<global_index>;

/// A pattern in CSR: directed, with loops and repeated entries, some rows and columns empty.
struct pattern {
  numbers offsets{0}, columns;

  explicit pattern(global_index n, std::uint64_t seed, int one_in) {
    for (global_index v = 0; v < n; ++v) {
      for (global_index u = 0; u < n; ++u)
        if (u % 7 != 0 && v % 5 != 0 &&
            base::random_bits(seed, v, u) % static_cast<unsigned>(one_in + (v + u) % 9) == 0)
          columns.insert(columns.end(), u % 11 == 0 ? 2 : 1, u);
      offsets.push_back(static_cast<global_index>(columns.size()));
    }
  }
};

std::vector<int> dealt(std::size_t n, int parts, std::uint64_t seed) {
  std::vector<int> part_of;
  for (std::size_t v = 0; v < n; ++v)
    part_of.push_back(static_cast<int>(base::random_bits(seed, static_cast<global_index>(v), 0) %
                                       static_cast<unsigned>(parts)));
  return part_of;
}

/// The same from the definition.
part_volumes counted(const pattern& a, const std::vector<int>& part_of, int parts) {
  const numbers none(static_cast<std::size_t>(parts), 0);
  part_volumes v{0, none, none, none, none};
  std::set<std::pair<std::size_t, int>> rows;
  for (std::size_t row = 0; row < part_of.size(); ++row) {
    const auto mine = static_cast<std::size_t>(part_of[row]);
    ++v.vertices[mine];
    v.entries[mine] += a.offsets[row + 1] - a.offsets[row];
    for (auto e = static_cast<std::size_t>(a.offsets[row]); e < static_cast<std::size_t>(a.offsets[row + 1]);
         ++e) {
      const auto u = static_cast<std::size_t>(a.columns[e]);
      if (part_of[u] == part_of[row]) continue;
      ++v.cut;
      if (!rows.insert({u, part_of[row]}).second) continue;
      ++v.sent[static_cast<std::size_t>(part_of[u])];
      ++v.received[mine];
    }
  }
  return v;
}

void check_same(const part_volumes& got, const part_volumes& expected) {
  CHECK(got.sent == expected.sent);
  CHECK(got.received == expected.received);
  CHECK(got.vertices == expected.vertices);
  CHECK(got.entries == expected.entries);
}

TEST_CASE("volumes: of four vertices in a ring, and as counted pair by pair") {
  // Edges 0 -> 1 -> 2 -> 3 -> 0 and 0 -> 2; parts {0, 1} and {2, 3}.
  const part_volumes ring =
      volumes_of(numbers{0, 1, 2, 4, 5}, numbers{3, 0, 1, 0, 2}, std::vector<int>{0, 0, 1, 1}, 2);
  CHECK(ring.cut == 3);
  CHECK(ring.sent == numbers{2, 1});
  CHECK(ring.received == numbers{1, 2});
  CHECK(ring.sum() == 3);
  CHECK(ring.largest() == 2);
  for (const int parts : {1, 2, 5, 9}) {
    const pattern a(40, 3, 4);
    const std::vector<int> part_of = dealt(40, parts, 8);
    const part_volumes got = volumes_of(a.offsets, a.columns, part_of, parts);
    check_same(got, counted(a, part_of, parts));
    CHECK(got.cut == counted(a, part_of, parts).cut);
  }
}

TEST_CASE("volumes: they follow vertices that move") {
  const pattern a(30, 5, 3);
  partition::detail::moving_parts parts(a.offsets, a.columns, dealt(30, 4, 1), 4);
  for (global_index k = 0; k < 120; ++k) {
    parts.move(base::random_bits(2, k, 0) % 30, static_cast<int>(base::random_bits(2, k, 1) % 4));
    if (k % 10 == 9) check_same(parts.volumes(), counted(a, parts.part_of(), 4));
  }
}

TEST_CASE("volumes: a refinement never raises the largest one, and parts stay as even as they may be") {
  for (const int parts : {2, 3, 6})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const pattern a(60, seed, 12);
      std::vector<int> part_of = dealt(60, parts, seed);
      part_volumes before = volumes_of(a.offsets, a.columns, part_of, parts);
      const part_volumes first = before;
      const global_index vertices =
          std::max(std::ranges::max(first.vertices), global_index(60 * 1.03 / parts));
      for (int pass = 0; pass < 4; ++pass) {
        part_of = lower_largest_volume(a.offsets, a.columns, part_of, parts, {.passes = 1});
        const part_volumes after = volumes_of(a.offsets, a.columns, part_of, parts);
        CHECK(after.largest() <= before.largest());
        CHECK(std::ranges::min(after.vertices) >= 1);
        CHECK(std::ranges::max(after.vertices) <= vertices);
        before = after;
      }
      CHECK(before.largest() < first.largest());
    }
}

TEST_CASE(
    "volumes: a refinement repairs two cliques with a vertex in the wrong one, and leaves the best as it "
    "is") {
  pattern a(0, 0, 1);
  for (global_index v = 0; v < 10; ++v) {
    for (global_index u = v / 5 * 5; u < v / 5 * 5 + 5; ++u) a.columns.push_back(u);
    a.offsets.push_back(static_cast<global_index>(a.columns.size()));
  }
  const std::vector<int> best = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  CHECK(lower_largest_volume(a.offsets, a.columns, {0, 0, 0, 0, 1, 1, 1, 1, 1, 1}, 2) == best);
  CHECK(lower_largest_volume(a.offsets, a.columns, best, 2) == best);
  CHECK(volumes_of(a.offsets, a.columns, best, 2).largest() == 0);
  CHECK(lower_largest_volume(numbers{0}, numbers{}, {}, 3).empty());
}

TEST_CASE("volumes: what are no parts is refused") {
  expect_error<shape_error>("2 rows has as many parts of vertices, not 1", [] {
    (void)volumes_of(numbers{0, 1, 1}, numbers{0}, std::vector<int>{0}, 2);
  });
  expect_error<shape_error>("part 2 is not one of 2 parts", [] {
    (void)lower_largest_volume(numbers{0, 0}, numbers{}, {2}, 2);
  });
}

}  // namespace test_partition_volume
