// SPDX-License-Identifier: Apache-2.0
// Chunks of far rows.
#include "partita/local/pass.hpp"

#include <doctest/doctest.h>

#include "partita/local/kernels.hpp"
#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/ranks.hpp"

namespace test_pass {

using namespace test_support;
using host_queue = device_queue<host>;

TEST_CASE("by_rows: chunks of far rows, in order, with the bytes that travel") {
  const local_index rows = 103, cols = 5;
  for (const std::size_t window : {1536, 8192, 1 << 20}) {
    const host_queue q;
    const auto store = new_far_store();
    use_far(q, {.store = store, .window = window, .from = 1000});
    buffer<double, host> x(q, std::size_t{103} * 5), y(q, std::size_t{103} * 5);
    const matrix_view<double> of_x{x.data(), rows, cols}, of_y{y.data(), rows, cols};
    REQUIRE(store->contains(x.data()));
    std::iota(x.span().begin(), x.span().end(), 0.0);
    local_index next = 0;
    std::size_t calls = 0;
    local::by_rows(
        q,
        [&](local_index first, matrix_view<const double> from, matrix_view<double> to) {
          CHECK(first == next);
          CHECK(from.rows == to.rows);
          next += from.rows;
          ++calls;
          for (local_index i = 0; i < from.rows; ++i)
            for (local_index j = 0; j < cols; ++j) to(i, j) = 2 * from(i, j) + first + i;
        },
        local::reads(of_x), local::writes(of_y));
    CHECK(next == rows);
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) CHECK(of_y(i, j) == 2 * of_x(i, j) + i);
    const memory::far_traffic& t = far_of(q)->traffic();
    CHECK(t.read == x.size() * sizeof(double));
    CHECK(t.written == y.size() * sizeof(double));
    CHECK(t.chunks == calls);
    CHECK(t.operations == 1);
    CHECK(t.near == t.read + t.written);
    const local::far_row_cut cut(103, 10 * sizeof(double), 2, window / 2,
                                 memory::far_channel<host>::best_rows_bytes);
    CHECK(cut.chunks == calls);
    CHECK(cut.most * (cut.chunks - 1) < 103);
    CHECK(cut.most * cut.chunks >= 103);
    local::by_rows(
        q,
        [](local_index, matrix_view<double> to) {
          for (local_index i = 0; i < to.rows; ++i) to(i, 1) = -1;
        },
        local::updates(of_y));
    CHECK(of_y(102, 1) == -1);
    CHECK(of_y(102, 2) == 2 * of_x(102, 2) + 102);
  }
}

static_assert(local::far_row_cut(10, 8, 1, 256 + 7, 1).most == 0);
static_assert(local::far_row_cut(10, 8, 1, 256 + 8, 1).chunks == 10);
static_assert(local::far_row_cut(10, 8, 1, 4096, 1).chunks == 10);
static_assert(local::far_row_cut(10, 8, 1, 4096, 256 + 4 * 8 + 7).chunks == 3);

TEST_CASE("by_rows: in a rehearsal nothing is moved, and what would be is in the forecast") {
  for (const std::size_t window : {1536, 8192, 1 << 20}) {
    const host_queue q;
    use_far(q, {.store = new_far_store(), .window = window, .from = 1000});
    buffer<double, host> x(q, std::size_t{103} * 5), of_rows(q, 103), y(q, 103);
    REQUIRE(!far_of(q)->is_far(y.data()));
    int calls = 0;
    const auto run = [&] {
      local::by_rows(
          q, [&](local_index, auto, auto, auto) { ++calls; },
          local::updates(matrix_view<double>{x.data(), 103, 5, 5}),
          local::reads(local::one_per_row(of_rows.data(), 103)),
          local::writes(local::one_per_row(y.data(), 103)));
    };
    far_forecast f;
    {
      const memory::far_rehearsal rehearsal(*far_of(q), f);
      run();
      CHECK(calls == 0);
      CHECK(far_of(q)->traffic().read == 0);
    }
    run();
    CHECK(calls > 0);
    const memory::far_traffic said = f.total(), found = far_of(q)->traffic();
    CHECK(said.read == found.read);
    CHECK(said.written == found.written);
    CHECK(said.chunks == found.chunks);
    CHECK(said.operations == found.operations);
    CHECK(said.near == found.near);
    CHECK(found.near == std::size_t{103} * 12 * sizeof(double));
  }
}

TEST_CASE("by_rows: of a large window chunks take what a cache holds, or one row") {
  const host_queue q;
  const auto store = new_far_store();
  use_far(q, {.store = store, .window = std::size_t{16} << 20, .from = 1000});
  buffer<double, host> x(q, std::size_t{1} << 20);  // 8 MiB
  for (const local_index rows : {1 << 15, 2}) {
    std::size_t calls = 0;
    local::by_rows(
        q, [&](local_index, matrix_view<const double>) { ++calls; },
        local::reads(matrix_view<double>{x.data(), rows, (1 << 20) / rows, (1 << 20) / rows}));
    CHECK(calls == (rows == 2 ? 2 : 5));
  }
}

TEST_CASE("by_rows: a window that does not hold a row says what it takes, and what f throws ends it") {
  const host_queue q;
  const auto store = new_far_store();
  use_far(q, {.store = store, .window = 1024, .from = 1000});
  buffer<double, host> x(q, 4000);
  const matrix_view<double> wide{x.data(), 10, 400};
  expect_error<budget_error>(
      "a row of far operands takes 3456 bytes, which a window of near memory of 1024 bytes does not hold "
      "twice: it must have 7168",
      [&] {
        local::by_rows(
            q, [](local_index, matrix_view<const double>) {}, local::reads(wide));
      });
  const matrix_view<double> narrow{x.data(), 1000, 4};
  expect_error<error>("the second chunk", [&] {
    local::by_rows(
        q,
        [](local_index first, matrix_view<double>) {
          if (first > 0) throw error("the second chunk");
        },
        local::updates(narrow));
  });
}

}  // namespace test_pass
