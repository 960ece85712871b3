// SPDX-License-Identifier: Apache-2.0
// Products by chunks of rows of A.
#include "partita/algebra/row_chunks.hpp"

#include <set>

#include "partita/algebra/spmm.hpp"
#include "partita/transfer/row_split.hpp"
#include "support/matrices.hpp"

namespace test_row_chunks {

using namespace test_support;

TEST_CASE("row chunks: their products are the rows of the whole one, bit for bit") {
  for (const int ranks : {1, 3})
    on_mesh({1, ranks, 1}, [&](const mesh<host>& m) {
      const matrix_shape shape{37, 37};
      const auto entries = sparse_entries(shape);
      const sparse<double, dynamic_layout, host> a = distribute(m, feature_column, shape, share(entries, m));
      const auto x = generate<double>(m, feature_column.dense, {37, 5}, field(3));
      const auto expected = spmm(a, x);
      for (const std::size_t count : {0, 1, 2, 7, 37, 50}) {
        algebra::row_chunks<double, host> chunks(a, count);
        CHECK(chunks.count() == std::max<std::size_t>(count, 1));
        dense<double, dynamic_layout, host> y(m, x.layout(), {37, 5}), z(m, x.layout(), {37, 5});
        global_index next = 0;
        std::set<global_index> all;
        std::size_t sum = 0;
        const auto first = chunks.first_needed();
        for (std::size_t j = 0; j < chunks.count(); ++j) {
          CHECK(chunks.rows(j).begin == next);
          next = chunks.rows(j).end;
          std::set<global_index> needed;
          for (const auto& e : entries)
            if (chunks.rows(j).contains(e.row)) needed.insert(e.col);
          CHECK(std::vector<global_index>(needed.begin(), needed.end()) == chunks.needed(j));
          all.insert(first[j].begin(), first[j].end());
          sum += first[j].size();
          chunks(j, x.local(), y.local());
          chunks(j, 2, x.local(), -1, x.local(), z.local());
        }
        CHECK(next == 37);
        CHECK(sum == 37);
        CHECK(all.size() == 37);
        for (std::size_t i = 0; i < y.values().size(); ++i) {
          CHECK(y.values()[i] == expected.values()[i]);
          CHECK(z.values()[i] == doctest::Approx(2 * expected.values()[i] - x.values()[i]).epsilon(1e-14));
        }
      }
    });
}

TEST_CASE("row chunks: their rows of X travel once, or else with every chunk that needs them") {
  const matrix_shape shape{41, 41};
  const auto entries = sparse_entries(shape);
  for (const int ranks : {2, 3, 4, 6})
    on_mesh({1, ranks, 1}, [&](const mesh<host>& m) {
      const sparse<double, dynamic_layout, host> a = distribute(m, feature_column, shape, share(entries, m));
      const blocking cols = blocking::even(13, m.shape(), nesting::cols);
      const layout to = feature_column.dense;
      const interval mine = a.col_blocking().block(vertex_rows.rows, m.at());
      const global_index width = cols.block(to.cols, m.at()).size();
      for (const std::size_t count : {1, 2, 7, 50}) {
        const algebra::row_chunks<double, host> chunks(a, count);
        std::vector<std::vector<global_index>> needed;
        global_index all = 0, others = 0;  // sum of |N_j|, and what of it other ranks own
        for (std::size_t j = 0; j < chunks.count(); ++j) {
          needed.push_back(chunks.needed(j));
          all += std::ssize(needed.back());
          for (const global_index r : needed.back()) others += !mine.contains(r);
        }
        const auto words = [&](const std::vector<std::vector<global_index>>& lists) {
          return transfer::row_split<double, host>(m, a.col_blocking(), cols, vertex_rows, to, lists)
              .predicted()
              .words;
        };
        CHECK(words(chunks.first_needed()) == (41 - mine.size()) * width);
        CHECK(words(needed) == others * width);
        CHECK(m.world().all_reduce(others) == (ranks - 1) * all);
      }
    });
}

TEST_CASE("row chunks: a matrix that is partitioned is refused") {
  on_mesh({2, 1, 1}, [](const mesh<host>& m) {
    const sparse<double, dynamic_layout, host> a =
        distribute(m, row_1d, {9, 9}, share(sparse_entries({9, 9}), m));
    CHECK(!algebra::row_chunks<double, host>::fits(a));
    expect_error<shape_error>("chunks of the rows of A of 9 x 9 need all of A on every rank",
                              [&] { algebra::row_chunks<double, host>(a, 2); });
  });
}

}  // namespace test_row_chunks
