// SPDX-License-Identifier: Apache-2.0
// Orders are permutations, and which graphs get another one is decided by counts.
#include "partita/local/host/row_order.hpp"

#include <doctest/doctest.h>

#include "support/row_graphs.hpp"

namespace test_row_order {

using namespace partita::on_host;
using namespace test_support;
using partita::local_index;

/// The problem of a graph whose X is far larger than the caches.
order_problem problem_of(const row_graph& g, std::int64_t row_bytes) {
  order_problem p{g.rows(), g.cols, g.offsets.data(), g.columns.data(), row_bytes};
  p.near_bytes = 256 * row_bytes;
  p.last_bytes = 1024 * row_bytes;
  return p;
}

void check_permutation(std::vector<local_index> order, local_index rows) {
  REQUIRE(order.size() == static_cast<std::size_t>(rows));
  std::sort(order.begin(), order.end());
  for (local_index i = 0; i < rows; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

bool chooses(const order_problem& p) {
  if (!order_may_pay(p)) return false;
  const partita::device_queue<partita::host> q(2);
  return order_pays(p, fetched_per_entry(p, false),
                    fetched_per_entry(ordered_rows(q, p, clustered_order(p)).of(p), false));
}

TEST_CASE("an order has every row once") {
  for (const row_graph& g : {grid_graph(17, true), grid_graph(16, false), random_graph(300, 300, 4),
                             skewed_graph(8, 4), without_rows(grid_graph(12, true), 3), star_graph(200)}) {
    const order_problem p = problem_of(g, 64);
    check_permutation(clustered_order(p), p.rows);
    check_permutation(order_by_first_column(p), p.rows);
  }
  for (const row_graph& g : {random_graph(90, 400, 3), random_graph(400, 90, 3), random_graph(5, 7, 0)})
    check_permutation(order_by_first_column(problem_of(g, 64)), g.rows());
}

TEST_CASE("rows go by their first column, those without entries last, and stay in order beside") {
  const row_graph g{{0, 1, 1, 2, 4, 5}, {3, 0, 0, 2, 3}, 4};
  const std::vector<local_index> expected{2, 3, 0, 4, 1};
  CHECK(order_by_first_column(problem_of(g, 64)) == expected);
}

TEST_CASE("a reordered block has the rows of the block, and says where they are") {
  for (const row_graph& g : {grid_graph(30, true), without_rows(skewed_graph(8, 5), 4), star_graph(200)}) {
    const order_problem p = problem_of(g, 64);
    const std::vector<local_index> order = clustered_order(p);
    const partita::device_queue<partita::host> q(2);
    const std::size_t before = q.meter()->current();
    const ordered_rows rows(q, p, order);
    CHECK(q.meter()->current() - before == ordered_rows::bytes(p));
    const order_problem reordered = rows.of(p);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const row_place place = rows.places()[k];
      CHECK(place.row == order[k]);
      const local_index begin = reordered.offsets[k], end = reordered.offsets[k + 1];
      CHECK(begin + place.shift == p.offsets[order[k]]);
      CHECK(end + place.shift == p.offsets[order[k] + 1]);
      for (local_index e = begin; e < end; ++e) CHECK(reordered.columns[e] == p.columns[e + place.shift]);
    }
  }
}

TEST_CASE("a grid whose points are in random order is reordered, one in order is not") {
  for (const std::int64_t row_bytes : {256, 512, 1024}) {
    const row_graph permuted = grid_graph(128, true), ordered = grid_graph(128, false);
    CHECK(chooses(problem_of(permuted, row_bytes)));
    CHECK_FALSE(order_may_pay(problem_of(ordered, row_bytes)));
  }
  const row_graph permuted = grid_graph(128, true);
  const order_problem p = problem_of(permuted, 256);
  CHECK(fetched_per_entry(p, false) > 0.75);
  CHECK(fetched_per_entry(p, true) < 0.4);
  const partita::device_queue<partita::host> q;
  CHECK(fetched_per_entry(ordered_rows(q, p, clustered_order(p)).of(p), false) < 0.45);
}

TEST_CASE("what saves little is not reordered") {
  const row_graph permuted = grid_graph(128, true);
  CHECK_FALSE(order_may_pay(problem_of(permuted, 64)));  // values and rows of Y are as many lines as X
  for (const std::int64_t row_bytes : {64, 256, 1024}) {
    CHECK_FALSE(order_may_pay(problem_of(skewed_graph(14, 8), row_bytes)));
    CHECK_FALSE(order_may_pay(problem_of(random_graph(1 << 14, 1 << 14, 8), row_bytes)));
  }
  order_problem small = problem_of(permuted, 256);
  small.last_bytes = small.rows * small.row_bytes + 1;
  CHECK_FALSE(order_may_pay(small));
  order_problem shared = problem_of(permuted, 256);
  shared.threads = 64;  // products are fast, the search is not
  CHECK_FALSE(order_may_pay(shared));
  order_problem rectangle = problem_of(permuted, 256);
  ++rectangle.cols;
  CHECK_FALSE(order_may_pay(rectangle));
}

}  // namespace test_row_order
