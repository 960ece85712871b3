// SPDX-License-Identifier: Apache-2.0
// Chunks of sparse blocks: every entry is in one of them, they fit, and no row is read that is there already.
// Rows stay as long as the best of all choices would keep them.
#include "partita/memory/far_plan.hpp"

#include <bit>
#include <doctest/doctest.h>
#include <set>

#include "partita/local/kernels.hpp"
#include "support/blocks.hpp"
#include "support/product_size.hpp"
#include "support/ranks.hpp"

namespace test_far_plan {

using namespace test_support;
using local::far_chunk, local::index_layout;
using plan = local::far_plan<host>;

product_size all_far(local_index width, std::size_t slot, bool reuses = true) {
  return {true, true, true, true, reuses, width, sizeof(double), slot};
}
plan plan_of(const sparse_block<double>& a, const product_size& size) {
  return {device_queue<host>(), a.rows, a.cols, a.offsets.data(), a.view().columns, size.of(a.cols)};
}

/// Follows the table of a plan, which the chunks share if a product reuses rows, and reads every entry back.
/// Returns how many rows are needed, in all chunks.
std::size_t follow(const sparse_block<double>& a, const plan& p) {
  const local::pass_layout& size = p.size();
  std::vector<local_index> table(static_cast<std::size_t>(std::max(size.places, a.cols)), -1);
  std::set<local_index> before;
  std::size_t read = 0, needed = 0;
  local_index row = 0, entry = a.offsets[0];
  for (const far_chunk& c : p.chunks()) {
    CHECK(local::slot_of(size, c).end <= local::room_of(size));
    CHECK(c.first_row == row);
    CHECK(c.first_entry == entry);
    const index_layout part(size, c);
    const local_index* const offsets = p.indices().data() + c.indices;
    CHECK(offsets[0] == 0);
    CHECK(offsets[c.rows] == c.entries);
    const std::span list(offsets + part.list, static_cast<std::size_t>(c.loaded));
    CHECK(std::is_sorted(list.begin(), list.end()));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t place = size.places > 0 ? static_cast<std::size_t>(offsets[part.places + i]) : i;
      if (size.places > 0) {
        CHECK(std::find(table.begin(), table.end(), list[i]) == table.end());
        CHECK(!before.contains(table.at(place)));  // the chunk before may be computed with
      }
      table.at(place) = list[i];
    }
    std::set<local_index> now;
    for (local_index e = 0; e < c.entries; ++e) {
      const local_index at = offsets[part.columns + static_cast<std::size_t>(e)];
      CHECK(table.at(static_cast<std::size_t>(at)) == a.view().columns[entry + e]);
      now.insert(a.view().columns[entry + e]);
    }
    CHECK(now.size() == static_cast<std::size_t>(c.needed));
    for (local_index i = 0; i < c.rows && !c.splits_first_row && !c.splits_last_row; ++i)
      CHECK(offsets[i] == a.offsets[static_cast<std::size_t>(row + i)] - entry);
    read += list.size(), needed += now.size();
    row += c.splits_last_row ? 0 : c.rows;
    entry += c.entries;
    before = std::move(now);
  }
  CHECK(row == a.rows);
  CHECK(entry == a.end());
  CHECK(read == p.rows_read());
  return needed;
}

TEST_CASE("chunks have every entry once, fit, and read no row that the table has") {
  for (const auto& a :
       {sparse_block<double>(211, 97), sparse_block<double>(40, 300), sparse_block<double>(50, 0),
        sparse_block<double>(std::vector<local_index>(64, 0), 5)})
    for (const local_index width : {1, 3, 64})
      for (const std::size_t slot : {std::size_t{4096}, std::size_t{8192}, std::size_t{1} << 24}) {
        const plan kept = plan_of(a, all_far(width, slot)), apart = plan_of(a, all_far(width, slot, false));
        follow(a, kept);
        CHECK(follow(a, apart) == apart.rows_read());
        if (slot < 1 << 20) continue;
        CHECK(kept.chunks().size() == 1);
        CHECK(kept.rows_read() == apart.rows_read());
      }
}

/// The fewest rows that any choice reads: of all sets of rows that a table may hold, after each chunk.
std::size_t fewest_reads(const std::vector<unsigned>& needed, unsigned rows, int places) {
  constexpr std::size_t none = 1000;
  std::vector<std::size_t> reads(std::size_t{1} << rows, none);
  reads[0] = 0;
  unsigned before = 0;
  for (const unsigned now : needed) {
    std::vector<std::size_t> next(reads.size(), none);
    for (unsigned had = 0; had < reads.size(); ++had)
      for (unsigned kept = had; reads[had] < none; kept = (kept - 1) & had) {
        const unsigned has = kept | now;
        if ((before & ~kept) == 0 && std::popcount(has) <= places)
          next[has] = std::min(next[has], reads[had] + static_cast<std::size_t>(std::popcount(now & ~kept)));
        if (kept == 0) break;
      }
    reads = std::move(next);
    before = now;
  }
  return *std::ranges::min_element(reads);
}

/// What kept_rows reads for chunks that need these sets of rows.
std::size_t reads_of(const std::vector<unsigned>& needed, local_index rows, local_index places) {
  std::vector<local_index> sizes, lists;
  for (const unsigned set : needed) {
    sizes.push_back(std::popcount(set));
    for (local_index r = 0; r < rows; ++r)
      if ((set >> r & 1) != 0) lists.push_back(r);
  }
  std::vector<local_index> next(lists.size());
  local::find_next_chunks(sizes, lists, rows, next);
  local::kept_rows kept(rows, places);
  std::size_t reads = 0, at = 0;
  for (const local_index n : sizes) {
    const auto count = static_cast<std::size_t>(n);
    reads += static_cast<std::size_t>(
        kept(std::span(lists).subspan(at, count), std::span(next).subspan(at, count)));
    at += count;
  }
  return reads;
}

TEST_CASE("rows stay near as in the best of all choices") {
  const unsigned rows = 6;
  std::size_t more_than_once = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const int places = 2 + static_cast<int>(seed % 5);
    std::vector<unsigned> needed;
    while (needed.size() < 9) {
      const auto set =
          static_cast<unsigned>(base::random_bits(seed, static_cast<global_index>(needed.size()), 0)) %
          (1U << rows);
      unsigned some = set;
      while (std::popcount(some) > places / 2) some &= some - 1;
      needed.push_back(some);
    }
    const std::size_t reads = reads_of(needed, rows, places);
    CHECK(reads == fewest_reads(needed, rows, places));
    more_than_once += reads > rows;
  }
  CHECK(more_than_once > 40);
}

TEST_CASE("rows that fit are read once; of a round of rows that do not, as many stay as can") {
  std::vector<unsigned> rounds;
  for (int k = 0; k < 40; ++k) rounds.push_back(1U << k % 8);
  CHECK(reads_of(rounds, 8, 8) == 8);
  for (const local_index places : {2, 3, 5, 7})
    CHECK(reads_of(rounds, 8, places) == fewest_reads(rounds, 8, places));
  CHECK(reads_of(rounds, 8, 2) == 40);
}

TEST_CASE("sources that all chunks share are read once, or by each chunk") {
  const local_index rows = 200, sources = 6;
  sparse_block<double> a(std::vector<local_index>(rows, sources), sources);
  for (local_index e = 0; e < rows * sources; ++e)
    a.columns[static_cast<std::size_t>(2 + e)] = (e + e / sources) % sources;
  const plan p = plan_of(a, all_far(4, 4096)), apart = plan_of(a, all_far(4, 4096, false));
  CHECK(p.chunks().size() > 2);
  CHECK(p.rows_read() == sources);
  CHECK(follow(a, p) == p.chunks().size() * sources);
  CHECK(apart.rows_read() == apart.chunks().size() * sources);

  const auto [fewest, most] = std::ranges::minmax(p.chunks(), {}, &far_chunk::rows);
  CHECK(p.explain(4) == "of A (200 x 6, 1200 entries) and 4 columns, in chunks of " +
                            std::to_string(fewest.rows) + " to " + std::to_string(most.rows) + " rows and " +
                            std::to_string(sources * fewest.rows) + " to " +
                            std::to_string(sources * most.rows) + " entries");
  CHECK(fewest.rows < most.rows);
  CHECK(plan_of(sparse_block<double>(0, 5), all_far(1, 4096)).explain(1) ==
        "of A (0 x 5, 0 entries) and 1 column");
  CHECK(plan_of(sparse_block<double>(0, 5), all_far(1, 4096)).explain(-1) == "of A (0 x 5, 0 entries)");
}

TEST_CASE("a row whose neighbours do not fit lies in several chunks, in order") {
  const sparse_block<double> a({2, 500, 0, 3}, 400);
  const plan p = plan_of(a, all_far(8, 8192));
  follow(a, p);
  local_index pieces = 0;
  for (const far_chunk& c : p.chunks()) {
    if (c.splits_first_row || c.splits_last_row) CHECK((c.first_row == 1 && c.rows == 1));
    pieces += c.first_row == 1;
  }
  CHECK(pieces > 3);
  CHECK(p.chunks().back().rows == 2);
}

TEST_CASE("a window that does not hold an entry says what it takes") {
  expect_error<budget_error>(
      "a pass over far operands takes 11520 bytes for one entry, which a window of near memory of 8192 bytes "
      "does not hold: it must have 11776",
      [] { plan_of(sparse_block<double>(5, 5), all_far(200, 4096)); });
  CHECK(plan_of(sparse_block<double>(5, 5), all_far(200, 5760)).chunks().size() > 5);
}

}  // namespace test_far_plan
