// SPDX-License-Identifier: Apache-2.0
// Compressed rows built by Thrust on the host against std::map and make_csr_tiles().
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include "bench/support/compress_entries.hpp"

#include <doctest/doctest.h>
#include <map>
#include <thrust/execution_policy.h>

#include "partita/base/random.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/memory/host.hpp"

using partita::buffer, partita::global_index, partita::interval, partita::local_index, partita::triplet;
using partita::local::csr_view, partita::local::offsets_size;
using place = partita::host;

namespace {

const partita::device_queue<place> q;

template <class T>
std::vector<T> list(const buffer<T, place>& memory) {
  return {memory.span().begin(), memory.span().end()};
}

/// `count` entries in the rows and in the columns of some tile, every fifth at the place of an earlier one.
template <class T>
std::vector<triplet<T>> entries_in(interval rows, std::vector<interval> columns, std::size_t count) {
  std::erase_if(columns, [](interval c) { return c.empty(); });
  const auto random = [](std::size_t e, int what, global_index bound) {
    return static_cast<global_index>(partita::base::random_bits(5, static_cast<global_index>(e), what) %
                                     static_cast<std::uint64_t>(bound));
  };
  std::vector<triplet<T>> entries;
  for (std::size_t e = 0; e < count; ++e) {
    triplet<T> entry;
    if (e % 5 == 4) {
      entry = entries[static_cast<std::size_t>(random(e, 0, static_cast<global_index>(e)))];
    } else {
      const interval tile = columns[static_cast<std::size_t>(random(e, 1, std::ssize(columns)))];
      entry.row = rows.begin + random(e, 2, rows.size());
      entry.col = tile.begin + random(e, 3, tile.size());
    }
    entry.value = static_cast<T>(partita::base::random_uniform(6, static_cast<global_index>(e), 0) - 0.5);
    entries.push_back(entry);
  }
  return entries;
}

template <class T>
auto compress(interval rows, const std::vector<interval>& columns, const std::vector<triplet<T>>& entries) {
  return bench::compress<T>(thrust::host, q, rows, std::span<const interval>(columns),
                            std::span<const triplet<T>>(entries));
}

/// The compressed rows of a block of one tile.
template <class T>
partita::local::csr_view<T> view(const bench::compressed<T, place>& a, local_index rows, local_index cols) {
  return {rows, cols, a.structure.data(), a.structure.data() + offsets_size(1, rows), a.values.data()};
}

}  // namespace

TEST_CASE("entries become compressed rows: sorted by row and column, duplicates added up") {
  const std::vector<triplet<double>> entries = {{11, 4, 1.0}, {12, 0, 2.0}, {11, 2, 4.0}, {11, 4, 8.0}};
  const auto one = compress({10, 13}, {{0, 5}}, entries);
  CHECK(one.nonzeros == 3);
  CHECK(list(one.structure) == std::vector<local_index>{0, 0, 2, 3, 2, 4, 0});
  CHECK(list(one.values) == std::vector<double>{4, 9, 2});

  const auto two = compress({10, 13}, {{3, 6}, {0, 3}}, entries);
  CHECK(list(two.structure) == std::vector<local_index>{0, 0, 1, 1, 1, 1, 2, 3, 1, 2, 0});
  CHECK(list(two.values) == std::vector<double>{9, 4, 2});

  const auto beside_none = compress({10, 13}, {{0, 5}, {3, 3}}, entries);
  CHECK(list(beside_none.structure) == std::vector<local_index>{0, 0, 2, 3, 3, 3, 3, 3, 2, 4, 0});
  CHECK(list(beside_none.values) == std::vector<double>{4, 9, 2});
}

TEST_CASE_TEMPLATE("compressed rows equal make_csr_tiles in every bit", T, float, double) {
  const std::vector<std::vector<interval>> cuts = {{{0, 40}},
                                                   {{7, 8}},
                                                   {{0, 40}, {13, 13}},
                                                   {{0, 13}, {13, 13}, {13, 40}},
                                                   {{20, 20}, {20, 31}, {3, 9}},
                                                   {{30, 70}, {0, 2}, {5, 6}}};
  for (const auto& columns : cuts)
    for (const interval rows : {interval{0, 1}, interval{5, 12}, interval{1000000000000, 1000000000100}})
      for (const std::size_t count : {0, 1, 7, 64, 1000}) {
        const auto entries = entries_in<T>(rows, columns, count);
        const auto expected =
            partita::local::make_csr_tiles(q, rows, std::span<const interval>(columns), entries);
        const auto found = compress(rows, columns, entries);
        CHECK(found.nonzeros == expected.nonzeros);
        CHECK(list(found.structure) == list(expected.structure));
        CHECK(list(found.values) == list(expected.values));
      }
}

TEST_CASE("blocks without rows, columns or tiles") {
  CHECK(list(compress<float>({4, 4}, {{0, 3}, {3, 9}}, {}).structure) ==
        std::vector<local_index>{0, 0, 0, 0});
  CHECK(list(compress<float>({4, 6}, {{3, 3}}, {}).structure) == std::vector<local_index>{0, 0, 0, 0});
  CHECK(compress<float>({4, 6}, {}, {}).structure.size() == 0);
}

TEST_CASE("what does not fit local indices is refused") {
  CHECK_THROWS_AS(compress<float>({0, global_index{1} << 31}, {{0, 3}}, {}), partita::shape_error);
  CHECK_THROWS_AS(compress<float>({0, 3}, {{0, global_index{1} << 31}}, {}), partita::shape_error);
  const std::vector<interval> columns(8, {0, (global_index{1} << 31) - 1});
  CHECK_THROWS_WITH_AS(
      compress<float>({0, (global_index{1} << 31) - 1}, columns, {}),
      "a sparse block of 8 tiles of 2147483647 x 2147483647 has more places than 64 bits can count",
      partita::shape_error);
}

TEST_CASE_TEMPLATE("the transpose of the transpose", T, float, double) {
  constexpr local_index rows = 37, cols = 23;
  for (const std::size_t count : {0, 1, 200, 2000}) {
    const auto a = compress({0, rows}, {{0, cols}}, entries_in<T>({0, rows}, {{0, cols}}, count));
    const auto nonzeros = static_cast<local_index>(a.nonzeros);
    const auto b = bench::transpose(thrust::host, q, view(a, rows, cols), nonzeros);
    const partita::local::csr_view<T> from = view(a, rows, cols), to = view(b, cols, rows);
    std::map<std::pair<local_index, local_index>, T> places;
    for (local_index i = 0; i < rows; ++i)
      for (local_index e = from.offsets[i]; e < from.offsets[i + 1]; ++e)
        places[{from.columns[e], i}] = from.values[e];
    REQUIRE(b.nonzeros == places.size());
    auto next = places.begin();
    for (local_index j = 0; j < cols; ++j)
      for (local_index e = to.offsets[j]; e < to.offsets[j + 1]; ++e, ++next) {
        CHECK(next->first == std::pair(j, to.columns[e]));
        CHECK(next->second == to.values[e]);
      }
    const auto again = bench::transpose(thrust::host, q, to, nonzeros);
    CHECK(list(again.structure) == list(a.structure));
    CHECK(list(again.values) == list(a.values));
  }
}

TEST_CASE("the transpose of a tile whose offsets do not begin at 0") {
  const std::vector<triplet<double>> entries = {
      {0, 0, 1.0}, {1, 1, 2.0}, {0, 3, 3.0}, {1, 2, 4.0}, {1, 3, 5.0}};
  const auto a = compress({0, 2}, {{0, 2}, {2, 4}}, entries);
  const partita::local::csr_view<double> second{2, 2, a.structure.data() + 3,
                                                a.structure.data() + offsets_size(2, 2), a.values.data()};
  const auto b = bench::transpose(thrust::host, q, second, 3);
  CHECK(list(b.structure) == std::vector<local_index>{0, 1, 3, 0, 1, 0, 1});
  CHECK(list(b.values) == std::vector<double>{4, 3, 5});
}

TEST_CASE("rows in parts of about as many entries") {
  const auto parts_of = [](const std::vector<local_index>& offsets, std::size_t parts) {
    std::vector<local_index> firsts(parts + 1, -1);
    bench::partition_rows(thrust::host, static_cast<local_index>(offsets.size()) - 1, offsets.data(),
                          std::span(firsts));
    return firsts;
  };
  CHECK(parts_of({5}, 3) == std::vector<local_index>{0, 0, 0, 0});
  CHECK(parts_of({3, 5, 7, 9, 11}, 2) == std::vector<local_index>{0, 2, 4});
  CHECK(parts_of({0, 100, 101, 102, 103}, 2) == std::vector<local_index>{0, 1, 4});
  CHECK(parts_of({0, 0, 0, 0, 90}, 3) == std::vector<local_index>{0, 4, 4, 4});

  std::vector<local_index> offsets{7};
  for (int i = 0; i < 1000; ++i)
    offsets.push_back(offsets.back() + static_cast<local_index>(partita::base::random_bits(9, i, 0) % 30));
  for (const std::size_t parts : {1, 7, 64}) {
    const auto firsts = parts_of(offsets, parts);
    CHECK(firsts.front() == 0);
    CHECK(firsts.back() == 1000);
    const auto weight = [&](local_index row) { return offsets[static_cast<std::size_t>(row)] - 7 + 2 * row; };
    for (std::size_t p = 0; p < parts; ++p)
      CHECK(std::abs(weight(firsts[p + 1]) - weight(firsts[p]) - weight(1000) / static_cast<int>(parts)) <=
            32);
  }
}
