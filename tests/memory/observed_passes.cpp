// SPDX-License-Identifier: Apache-2.0
// Kernels are seen by what they touch, those inside of another not; who sees them may leave them out.
#include "partita/memory/observed_passes.hpp"

#include <doctest/doctest.h>
#include <utility>
#include <vector>

#include "partita/local/chunked.hpp"
#include "partita/local/chunked_gemm.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/local/kernels.hpp"
#include "partita/memory/host_far.hpp"
#include "support/blocks.hpp"
#include "support/far_store.hpp"

namespace test_observed_passes {

using namespace partita;
using namespace test_support;
using host_queue = device_queue<host>;
using memory::kernel_call;
namespace chunked = local::chunked;

/// A queue, and what is seen on it.
struct seen_queue {
  std::vector<kernel_call> calls = {};
  bool runs = true;
  host_queue q =
      memory::observed(host_queue(), [this](const kernel_call& c, base::function_reference<void()> run) {
        calls.push_back(c);
        if (runs) run();
      });

  kernel_call only() {
    REQUIRE(calls.size() == 1);
    return std::exchange(calls, {}).front();
  }
};

void check(const kernel_call& seen, const kernel_call& expected) {
  CHECK(seen.kernel == expected.kernel);
  CHECK(seen.rows == expected.rows);
  CHECK(seen.entries == expected.entries);
  CHECK(seen.row_bytes == expected.row_bytes);
  CHECK(seen.table_bytes == expected.table_bytes);
  CHECK(seen.bytes == expected.bytes);
  CHECK(seen.work == expected.work);
}

TEST_CASE("observed passes: rows, dense products, and packed rows, by what they read and write") {
  seen_queue s;
  std::vector<double> x(7 * 3, 1), y(7 * 5), w(3 * 5, 2), packed(2 * 3);
  const matrix_view<double> of_x{x.data(), 7, 3, 3}, of_y{y.data(), 7, 5, 5}, of_w{w.data(), 3, 5, 5};
  chunked::fill(s.q, 2.0, of_x);
  check(s.only(), {.kernel = "rows: fill", .rows = 7, .row_bytes = 24, .bytes = 7 * 24});
  CHECK(x == std::vector<double>(7 * 3, 2));
  chunked::update(s.q, base::linear_combination<double>{1, 1}, matrix_view<const double>(of_x), of_x);
  check(s.only(), {.kernel = "rows: update", .rows = 7, .row_bytes = 24, .bytes = 7 * 3 * 24});
  chunked::gemm<double>(s.q, false, false, 1, of_x, of_w, 0, of_y);
  check(s.only(), {.kernel = "gemm", .rows = 7, .row_bytes = 40, .bytes = 7 * (24 + 40), .work = 7 * 3 * 5});
  chunked::gemm<double>(s.q, false, false, 1, of_x, of_w, 1, of_y);
  CHECK(s.only().bytes == 7 * (24 + 2 * 40));
  chunked::gemm<double>(s.q, true, false, 1, of_x, of_y, 0, of_w);
  check(s.only(),
        {.kernel = "gemm of columns", .rows = 7, .row_bytes = 40, .bytes = 7 * (24 + 40), .work = 7 * 3 * 5});
  const std::vector<local_index> list{6, 2};
  local::pack_rows<double>(s.q, of_x, list, packed.data());
  check(s.only(), {.kernel = "list",
                   .rows = 2,
                   .row_bytes = 24,
                   .table_bytes = 7 * 24,
                   .bytes = 2 * (24 + 24 + sizeof(local_index))});
}

TEST_CASE("observed passes: a product gathers a row for each entry") {
  seen_queue s;
  const std::vector<local_index> offsets{0, 2, 2, 3}, columns{0, 3, 1};
  const std::vector<double> values{1, 2, 3}, x(4 * 2, 1);
  std::vector<double> y(3 * 2);
  const local::csr_view<double> a{3, 4, offsets.data(), columns.data(), values.data(), 3};
  local::entry_passes<host> passes;
  chunked::spmm_fused<double>(s.q, passes, 0, a, matrix_view<const double>{x.data(), 4, 2, 2}, {},
                              matrix_view<double>{y.data(), 3, 2, 2});
  check(s.only(), {.kernel = "product",
                   .rows = 3,
                   .entries = 3,
                   .row_bytes = 16,
                   .table_bytes = 4 * 16,
                   .bytes = sizeof(local_index) * (3 + 3) + 3 * 8 + 3 * 16 + 3 * 16});
  CHECK(y == std::vector<double>{3, 3, 0, 0, 3, 3});
}

TEST_CASE("observed passes: kernels that a kernel is made of are not seen, also after one that failed") {
  seen_queue s;
  std::vector<double> x(6);
  const matrix_view<double> of_x{x.data(), 6, 1, 1};
  const auto outer = [&](auto) { chunked::fill(s.q, 1.0, of_x); };
  local::by_rows(s.q, "outer", outer, local::writes(of_x));
  CHECK(s.only().kernel == "outer");
  CHECK(x == std::vector<double>(6, 1));
  local::by_rows(s.q, outer, local::writes(of_x));
  CHECK(s.only().kernel == "rows");
  const auto failing = [](auto) { throw error("no"); };
  CHECK_THROWS_AS(local::by_rows(s.q, "failing", failing, local::writes(of_x)), error);
  s.calls.clear();
  chunked::fill(s.q, 3.0, of_x);
  CHECK(s.only().kernel == "rows: fill");
  s.runs = false;
  chunked::fill(s.q, 4.0, of_x);
  CHECK(s.calls.size() == 1);
  CHECK(x == std::vector<double>(6, 3));
}

TEST_CASE("observed passes: not those of a queue with far memory") {
  const host_queue q;
  use_far(q, {.store = new_far_store(), .window = 4096, .from = 1000});
  CHECK_THROWS_AS(
      memory::observed(q, [](const kernel_call&, base::function_reference<void()> run) { run(); }), error);
}

TEST_CASE("observed passes: a product with an X of bfloat16, by its bytes, and left out") {
  seen_queue s;
  const std::vector<local_index> offsets{0, 2, 2, 3}, columns{0, 3, 1};
  const std::vector<float> values{1, 2, 3};
  const std::vector<base::bfloat16> x(4 * 2, base::bfloat16(1.0F));
  std::vector<float> y(3 * 2, 7);
  const csr_view<float> a{3, 4, offsets.data(), columns.data(), values.data()};
  const matrix_view<const base::bfloat16> of_x{x.data(), 4, 2, 2};
  const matrix_view<float> of_y{y.data(), 3, 2, 2};
  for (const bool runs : {false, true}) {
    s.runs = runs;
    local::entry_passes<host> passes;
    chunked::spmm_fused(s.q, passes, 0, a, of_x, {}, of_y);
    check(s.only(), {.kernel = "product",
                     .rows = 3,
                     .entries = 3,
                     .row_bytes = 8,
                     .table_bytes = 4 * 4,
                     .bytes = 6 * sizeof(local_index) + 3 * (4 + 4) + 3 * 8});
    CHECK(y == (runs ? std::vector<float>{3, 3, 0, 0, 3, 3} : std::vector<float>(6, 7)));
  }
}

}  // namespace test_observed_passes
