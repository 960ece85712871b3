// SPDX-License-Identifier: Apache-2.0
// Chunks of sparse blocks: every entry is in one of them, they fit, and no row is read that is there already.
#include "partita/memory/far_plan.hpp"

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
plan plan_of(const sparse<double>& a, const product_size& size) {
  return {device_queue<host>(), a.rows, a.cols, a.offsets.data(), a.view().columns, size};
}

/// Follows the tables of a plan and reads every entry back; returns the rows of the table that are read.
std::vector<local_index> follow(const sparse<double>& a, const plan& p, const product_size& size) {
  std::vector<local_index> table, read;
  local_index row = 0, entry = a.offsets[0];
  for (const far_chunk& c : p.chunks()) {
    CHECK(local::slot_of(size, c).end <= local::room_of(size));
    CHECK(c.first_row == row);
    CHECK(c.first_entry == entry);
    const index_layout part(size, c);
    const local_index* const offsets = p.indices().data() + c.indices;
    const local_index* const list = offsets + part.list;
    CHECK(offsets[0] == 0);
    CHECK(offsets[c.rows] == c.entries);
    std::vector<local_index> now(list, list + c.needed);
    CHECK(std::is_sorted(list, list + c.loaded));
    for (local_index i = 0; i < c.needed; ++i) {
      local_index& source = now[static_cast<std::size_t>(i)];
      if (i < c.loaded)
        read.push_back(source);
      else
        source = table.at(static_cast<std::size_t>(source));
    }
    CHECK(std::set<local_index>(now.begin(), now.end()).size() == now.size());
    if (size.reuses)
      for (local_index i = 0; i < c.loaded; ++i)
        CHECK(std::find(table.begin(), table.end(), list[i]) == table.end());
    for (local_index e = 0; e < c.entries; ++e)
      CHECK(now.at(static_cast<std::size_t>(offsets[part.columns + static_cast<std::size_t>(e)])) ==
            a.view().columns[entry + e]);
    for (local_index i = 0; i < c.rows && !c.splits_first_row && !c.splits_last_row; ++i)
      CHECK(offsets[i] == a.offsets[static_cast<std::size_t>(row + i)] - entry);
    row += c.splits_last_row ? 0 : c.rows;
    entry += c.entries;
    table = std::move(now);
  }
  CHECK(row == a.rows);
  CHECK(entry == a.end());
  return read;
}

TEST_CASE("chunks have every entry once, fit, and read no row that the chunk before has") {
  for (const auto& a : {sparse<double>(211, 97), sparse<double>(40, 300), sparse<double>(50, 0),
                        sparse<double>(std::vector<local_index>(64, 0), 5)})
    for (const local_index width : {1, 3, 64})
      for (const std::size_t slot : {std::size_t{4096}, std::size_t{8192}, std::size_t{1} << 24}) {
        const product_size size = all_far(width, slot), apart = all_far(width, slot, false);
        const plan kept = plan_of(a, size), without = plan_of(a, apart);
        CHECK(follow(a, kept, size).size() == kept.rows_read());
        CHECK(follow(a, without, apart).size() == without.rows_read());
        CHECK(without.rows_read() == without.rows_needed());
        CHECK(kept.rows_needed() == without.rows_needed());
        if (slot > 1 << 20) CHECK(kept.chunks().size() == 1);
      }
}

TEST_CASE("sources that all chunks share are read once; what is needed is counted in every chunk") {
  const local_index rows = 200, sources = 6;
  sparse<double> a(std::vector<local_index>(rows, sources), sources);
  for (local_index e = 0; e < rows * sources; ++e)
    a.columns[static_cast<std::size_t>(2 + e)] = (e + e / sources) % sources;
  const product_size size = all_far(4, 4096);
  const plan p = plan_of(a, size);
  const auto chunks = p.chunks().size();
  CHECK(chunks > 2);
  CHECK(p.rows_read() == sources);
  CHECK(p.rows_needed() == chunks * sources);
  CHECK(plan_of(a, all_far(4, 4096, false)).rows_read() == chunks * sources);

  const auto [fewest, most] = std::ranges::minmax(p.chunks(), {}, &far_chunk::rows);
  CHECK(p.explain(4) == "of A (200 x 6, 1200 entries) and 4 columns, in chunks of " +
                            std::to_string(fewest.rows) + " to " + std::to_string(most.rows) + " rows and " +
                            std::to_string(sources * fewest.rows) + " to " +
                            std::to_string(sources * most.rows) + " entries");
  CHECK(fewest.rows < most.rows);
  CHECK(plan_of(sparse<double>(0, 5), all_far(1, 4096)).explain(1) == "of A (0 x 5, 0 entries) and 1 column");
  CHECK(plan_of(sparse<double>(0, 5), all_far(1, 4096)).explain(-1) == "of A (0 x 5, 0 entries)");
}

TEST_CASE("a row whose neighbours do not fit lies in several chunks, in order") {
  const sparse<double> a({2, 500, 0, 3}, 400);
  const product_size size = all_far(8, 8192);
  const plan p = plan_of(a, size);
  follow(a, p, size);
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
      "a pass over far operands takes 11776 bytes for one entry, which a window of near memory of 8192 bytes "
      "does not hold",
      [] { plan_of(sparse<double>(5, 5), all_far(200, 4096)); });
  CHECK(plan_of(sparse<double>(5, 5), all_far(200, 5888)).chunks().size() > 5);
}

}  // namespace test_far_plan
