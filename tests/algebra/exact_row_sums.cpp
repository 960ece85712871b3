// SPDX-License-Identifier: Apache-2.0
// Sums of dealt rows have the same bits however they are dealt, and move the closed form's words.
#include "partita/algebra/exact_row_sums.hpp"

#include "partita/algebra/elementwise.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"
#include "support/summing.hpp"

namespace test_exact_row_sums {

using namespace test_support;

constexpr global_index n = 23, f = 5, added = 61;

global_index id_of(global_index k) { return k * k % n; }
template <class T>
T value_of(global_index k, global_index j) {
  return static_cast<T>(std::ldexp(element(k, j, 8), static_cast<int>(k % 29)));
}

/// Row k of `added` rows is in list (k / 3) mod `lists` of rank k^2 mod P.
std::vector<std::vector<global_index>> dealt(int rank, int ranks, std::size_t lists) {
  std::vector<std::vector<global_index>> rows(lists);
  for (global_index k = 0; k < added; ++k)
    if (k * k % ranks == rank) rows[static_cast<std::size_t>(k / 3) % lists].push_back(k);
  return rows;
}

/// The sums for all rows of X, n x f on every rank, by `plan`, an exact_row_sums or a gather_rows_plan.
template <class T, class Plan, layout L>
std::vector<T> sums_by(Plan& plan, const dense<T, L, host>& x, std::size_t lists) {
  const auto& m = x.mesh();
  const mesh<host> alone(self::world(), mesh_shape{}, m.queue());
  const auto rows = dealt(m.rank(), m.size(), lists);
  std::vector<std::vector<global_index>> ids(lists);
  for (std::size_t c = 0; c < lists; ++c)
    for (const global_index k : rows[c]) ids[c].push_back(id_of(k));
  plan.assign(ids);
  for (std::size_t c = 0; c < lists; ++c)
    plan.add(c, generate<vertex_rows, T>(alone, {std::ssize(rows[c]), f}, [&](auto i, auto j) {
               return value_of<T>(rows[c][static_cast<std::size_t>(i)], j);
             }));
  const auto& touched = plan.touched_rows();
  dense<T, vertex_rows, host> g(alone, {std::ssize(touched), x.col_range().size()});  // (touched, columns)
  plan.take(g);
  dense<T, L, host> all(x.mesh(), x.layout(), x.row_blocking(), x.col_blocking());  // (n, f)
  fill(all, T(0));
  for (local_index i = 0; i < g.local().rows; ++i)
    for (local_index j = 0; j < g.local().cols; ++j)
      all.local()(static_cast<local_index>(touched[static_cast<std::size_t>(i)]), j) = g.local()(i, j);
  return collect(all);
}

template <class T>
std::vector<T> exact_results(const communicator& world, mesh_shape shape, layout l, std::size_t lists) {
  const mesh<host> m(world, shape, summing(summation::reproducible));
  const dense<T, dynamic_layout, host> x(m, l, {n, f});  // (n, f)
  algebra::exact_row_sums<T, host> plan(x);
  m.ledger().clear();
  (void)sums_by<T>(plan, x, lists);  // assigns
  m.ledger().clear();
  const auto rows = dealt(m.rank(), m.size(), lists);
  std::vector<std::vector<global_index>> ids(lists);
  for (std::size_t c = 0; c < lists; ++c)
    for (const global_index k : rows[c]) ids[c].push_back(id_of(k));
  plan.assign(ids);
  dense<T, vertex_rows, host> g(mesh<host>::alone(m),
                                {std::ssize(plan.touched_rows()), x.col_range().size()});
  plan.take(g);  // of nothing, which moves as much
  CHECK(m.ledger().total() == plan.predicted());
  return sums_by<T>(plan, x, lists);
}

template <class T>
void expect_one_result(double tolerance) {
  std::vector<T> expected, fast;
  on_threads(1, [&](const communicator& world) {
    expected = exact_results<T>(world, {1, 1, 1}, vertex_rows, 1);
    const mesh<host> m(world, {1, 1, 1});
    const dense<T, dynamic_layout, host> x(m, vertex_rows, {n, f});  // (n, f)
    gather_rows_plan<T, host> plan(x);
    fast = sums_by<T>(plan, x, 1);
  });
  const auto as_doubles = [](const std::vector<T>& x) { return std::vector<double>(x.begin(), x.end()); };
  CHECK(largest_difference(as_doubles(expected), as_doubles(fast)) < tolerance * 0x1p29);
  for (const int ranks : rank_counts)
    if (sees(ranks))
      on_threads(ranks, [&](const communicator& world) {
        for (const std::size_t lists : {1, 3})
          for (const layout l : {layout(vertex_rows), layout{{}, partition::every_axis}})
            CHECK(exact_results<T>(world, {ranks, 1, 1}, l, lists) == expected);
      });
}

TEST_CASE("float: row sums have the same bits however rows are dealt") { expect_one_result<float>(1e-6); }
TEST_CASE("double: row sums have the same bits however rows are dealt") { expect_one_result<double>(1e-15); }

}  // namespace test_exact_row_sums
