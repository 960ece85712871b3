// SPDX-License-Identifier: Apache-2.0
// Rows that go from blocks of rows to blocks of columns, a list at a time.
#include "partita/transfer/row_split.hpp"

#include "support/matrices.hpp"

namespace test_row_split {

using namespace test_support;

constexpr layout columns{axis_set(), axis_set(axis::col)};

TEST_CASE("row split: listed rows arrive, stage by stage, and cost what they are") {
  for (const int ranks : {1, 2, 3, 4, 6})
    for (const global_index f : {1, 5, 8})
      on_mesh({1, ranks, 1}, [&](const mesh<host>& m) {
        const global_index n = 29;
        const blocking rows = blocking::even(n, m.shape(), nesting::rows),
                       cols = blocking::even(f, m.shape(), nesting::cols);
        const std::vector<std::vector<global_index>> lists = {{28, 0, 7}, {}, {3, 4, 5, 20}, {1}};
        const auto x = generate<vertex_rows, double>(m, {n, f}, field(2));
        dense<double, dynamic_layout, host> y(m, columns, rows, cols);  // (n, f/P)
        std::fill(y.values().begin(), y.values().end(), std::numeric_limits<double>::quiet_NaN());
        transfer::row_split<double, host> split(m, rows, cols, vertex_rows, columns, lists);
        REQUIRE(split.stages() == lists.size());
        const auto allocations = m.queue().meter()->allocations();
        m.ledger().clear();
        std::vector<bool> here(static_cast<std::size_t>(n), false);
        split.start(0, x.local());
        for (std::size_t s = 0; s < lists.size(); ++s) {
          if (s + 1 < lists.size()) split.start(s + 1, x.local());
          split.finish(s, y.local());
          for (const global_index r : lists[s]) here[static_cast<std::size_t>(r)] = true;
          for (global_index i = 0; i < n; ++i)
            for (local_index j = 0; j < y.local().cols; ++j) {
              const double v = y.local()(static_cast<local_index>(i), j);
              if (here[static_cast<std::size_t>(i)])
                CHECK(v == element(i, y.col_range().begin + j, 2));
              else
                CHECK(std::isnan(v));
            }
        }
        const interval mine = x.row_range();
        traffic expected;
        for (const auto& list : lists)
          for (int q = 0; q < ranks; ++q) {
            global_index from_there = 0;
            const interval theirs = rows.block(vertex_rows.rows, m.shape().at(q));
            for (const global_index r : list) from_there += theirs.contains(r) && !mine.contains(r);
            if (from_there * y.col_range().size() > 0) expected += {from_there * y.col_range().size(), 1};
          }
        CHECK(split.predicted() == expected);
        CHECK(heard(m) == expected);
        CHECK(m.queue().meter()->allocations() == allocations);
      });
}

TEST_CASE("row split: layouts that cut both rows and columns are refused") {
  on_mesh({2, 2, 1}, [](const mesh<host>& m) {
    const blocking rows = blocking::even(9, m.shape(), nesting::rows),
                   cols = blocking::even(4, m.shape(), nesting::cols);
    expect_error<shape_error>("rows are split from a layout of whole rows to one of whole columns", [&] {
      transfer::row_split<double, host>(m, rows, cols, vertex_rows, grid_2d.dense, {});
    });
  });
}

}  // namespace test_row_split
