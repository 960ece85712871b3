// SPDX-License-Identifier: Apache-2.0
// Products with far operands: as near ones, with the bytes of the closed form.
#include "partita/local/chunked_products.hpp"

#include <doctest/doctest.h>

#include "partita/local/kernels.hpp"
#include "partita/memory/far_plan.hpp"
#include "support/far_place.hpp"
#include "support/product_size.hpp"
#include "support/ranks.hpp"

namespace test_chunked_products {

using namespace test_support;
using host_queue = device_queue<host>;
namespace chunked = local::chunked;

/// The slot with which the products of a have so many chunks.
std::size_t slot_for(const sparse_block<double>& a, product_size size, std::size_t chunks) {
  std::size_t low = 0, high = std::size_t{1} << 26;
  while (high - low > 256) {
    size.slot = (low + high) / 512 * 256;
    bool fewer = false;
    try {
      fewer = local::far_plan<host>(host_queue(), a.rows, a.cols, a.offsets.data(), a.view().columns,
                                    size.of(a.cols))
                  .chunks()
                  .size() <= chunks;
    } catch (const budget_error&) {
    }
    (fewer ? high : low) = size.slot;
  }
  return high;
}

void check_moved(const memory::far_traffic& t, const memory::far_traffic& expected) {
  CHECK(t.read == expected.read);
  CHECK(t.written == expected.written);
  CHECK(t.chunks == expected.chunks);
  CHECK(t.operations == expected.operations);
  CHECK(t.near == expected.near);
  CHECK(t.rows_read == expected.rows_read);
}

/// Products with one block, and the closed forms of what they move.
struct products {
  const host_queue& q;
  const csr_view<double>& a;
  local::entry_passes<host> passes = {};

  template <class F>
  static auto straight(const F& f, const csr_view<double>& a, matrix_view<const double> x, double beta,
                       matrix_view<double> y) {
    return f(local::reads_entries(a.values, 1), local::gathers(x), local::result(y, beta));
  }
  void multiply(matrix_view<const double> x, const local::spmm_epilogue<double>& fusion,
                matrix_view<double> y) {
    chunked::spmm_fused(q, passes, 0, a, x, fusion, y);
  }
  void multiply_transposed(matrix_view<const double> x, double alpha, double beta, matrix_view<double> y) {
    chunked::spmm_transposed(q, passes, 0, a, x, alpha, beta, y);
  }
  memory::far_traffic predicted(matrix_view<const double> x, double beta, matrix_view<double> y) {
    return straight([&](auto... o) { return passes.predicted(q, 0, a, {}, o...); }, a, x, beta, y);
  }
  memory::far_traffic predicted_transposed(matrix_view<const double> x, double beta, matrix_view<double> y) {
    return passes.predicted(q, 0, a, {}, local::reads_entries(a.values, 1), local::reads(x),
                            local::adds(y, beta));
  }
  std::span<const local::far_chunk> chunks(matrix_view<const double> x, double beta, matrix_view<double> y) {
    return straight([&](auto... o) { return passes.chunks(q, 0, a, {}, o...); }, a, x, beta, y);
  }
};

constexpr local::spmm_epilogue<double> epilogues[] = {
    {},
    {.alpha = -0.75, .beta = 1},
    {.beta = 0.5, .relu = true},
    {.alpha = 2, .relu = true, .drop = {{7, std::uint64_t{1} << 51, 1.25}, 1000, 3}}};

/// y on far memory against y on near memory, bit for bit in the rows that are in one chunk, twice: the second
/// time with other values.
void check(sparse_block<double> a, product_size size, local::spmm_epilogue<double> fusion, std::size_t from,
           int threads) {
  far_place place(2 * size.slot, from, threads);
  block<double> x(a.cols, size.width, 1), y(a.rows, size.width, 2);
  const block<double> bias(1, size.width, 3, placing{0, 0});
  if (fusion.relu) fusion.bias = bias.data();
  const auto of_a = place.put(a, size.structure, size.values);
  const auto of_x = place.put(x, size.column_operand), of_y = place.put(y, size.row_operand);
  products of{place.q, of_a};
  const memory::far_traffic expected = of.predicted(of_x, fusion.beta, of_y);
  for (int run = 0; run < 2; ++run) {
    spmm_fused(place.near, a.view(), x.view(), fusion, y.view());
    const memory::far_traffic before = far_of(place.q)->traffic();
    const auto allocations = place.q.meter()->allocations();
    of.multiply(of_x, fusion, of_y);
    const memory::far_traffic t = far_of(place.q)->traffic() - before;
    CHECK(place.q.meter()->allocations() == allocations);
    check_moved(t, expected);
    CHECK(distance(values_of<double>(of_y), values_of<double>(y.view())) < 1e-13);
    for (const local::far_chunk& c : of.chunks(of_x, fusion.beta, of_y))
      if (!c.splits_first_row && !c.splits_last_row)
        CHECK(same_bits(values_of<double>(of_y.block(c.first_row, 0, c.rows, size.width)),
                        values_of<double>(y.view().block(c.first_row, 0, c.rows, size.width))));
    for (std::size_t e = 0; e < a.values.size(); ++e)
      const_cast<double*>(of_a.values)[e - a.values_lead] = a.values[e] = 1 - 2 * a.values[e];
    for (local_index i = 0; i < y.rows; ++i)  // the pieces of a row round otherwise than the whole row
      std::copy_n(y.view().row_data(i), y.cols, of_y.row_data(i));
  }
}

/// What a product adds to a forecast, and leaves as it is, against what it then moves.
TEST_CASE("far products: a rehearsal says what will be moved, and moves nothing") {
  const auto a = directed<double>(201, 150);
  for (unsigned far = 1; far < 16; ++far)
    for (const double beta : {0.0, 0.5, 1.0})
      for (const bool transposes : {false, true}) {
        const product_size size{(far & 1) != 0, (far & 2) != 0,
                                (far & 4) != 0, (far & 8) != 0,
                                !transposes,    5,
                                sizeof(double), 6144};
        far_place place(2 * size.slot, 1);
        const auto of_a = place.put(a, size.structure, size.values);
        const block<double> of_columns(a.cols, 5, 1), of_rows(a.rows, 5, 2);
        const auto x =
            place.put(transposes ? of_rows : of_columns, transposes ? size.row_operand : size.column_operand);
        const auto y =
            place.put(transposes ? of_columns : of_rows, transposes ? size.column_operand : size.row_operand);
        products of{place.q, of_a};
        const auto run = [&] {
          if (transposes)
            of.multiply_transposed(x, 1, beta, y);
          else
            of.multiply(x, {.beta = beta}, y);
        };
        const auto old = values_of<double>(y);
        far_forecast said;
        const memory::far_traffic before = far_of(place.q)->traffic();
        {
          const memory::far_rehearsal rehearsal(*far_of(place.q), said);
          run();
        }
        CHECK(far_of(place.q)->traffic().read == before.read);
        CHECK(same_bits(values_of<double>(y), old));
        run();
        const memory::far_traffic t = far_of(place.q)->traffic() - before, expected = said.total();
        check_moved(t, expected);
      }
}

TEST_CASE("far products: in 1, 2, 7 and 50 chunks as on near memory, with the bytes of the closed form") {
  const auto a = directed<double>(601, 350);
  for (const local_index width : {1, 3, 64})
    for (const std::size_t chunks : {1, 2, 7, 50}) {
      product_size size{true, true, true, true, true, width, sizeof(double)};
      size.slot = slot_for(a, size, chunks);
      const local::far_plan<host> plan(host_queue(), a.rows, a.cols, a.offsets.data(), a.view().columns,
                                       size.of(a.cols));
      CHECK(plan.chunks().size() <= chunks);
      CHECK(plan.chunks().size() + chunks / 4 >= chunks);
      for (const auto& fusion : epilogues) check(a, size, fusion, 1, width == 3 ? 3 : 1);
    }
}

TEST_CASE("far products: whichever operands are far, and where the program is near") {
  const auto a = directed<double>(201, 150);
  for (unsigned far = 1; far < 16; ++far)
    for (const std::size_t from : {std::size_t{1}, std::size_t{1} << 30})
      for (const auto& fusion : epilogues)
        check(a,
              {(far & 1) != 0, (far & 2) != 0, (far & 4) != 0, (far & 8) != 0, true, 5, sizeof(double), 6144},
              fusion, from, 1);
}

/// As check, for a^T; bit for bit where y is near.
void check_transposed(const sparse_block<double>& unsorted, product_size size, double alpha, double beta,
                      std::size_t from) {
  const sparse_block<double> a = unsorted.ascending();
  size.reuses = false;
  far_place place(2 * size.slot, from);
  block<double> x(a.rows, size.width, 1), y(a.cols, size.width, 2);
  const auto of_a = place.put(a, size.structure, size.values);
  const auto of_x = place.put(x, size.row_operand), of_y = place.put(y, size.column_operand);
  products of{place.q, of_a};
  const memory::far_traffic expected = of.predicted_transposed(of_x, beta, of_y);
  for (int run = 0; run < 2; ++run) {
    spmm_transposed(place.near, a.view(), x.view(), alpha, beta, y.view());
    const memory::far_traffic before = far_of(place.q)->traffic();
    const auto allocations = place.q.meter()->allocations();
    of.multiply_transposed(of_x, alpha, beta, of_y);
    const memory::far_traffic t = far_of(place.q)->traffic() - before;
    CHECK(place.q.meter()->allocations() == allocations);
    CHECK(t.read == expected.read);
    CHECK(t.written == expected.written);
    CHECK(t.rows_read == expected.rows_read);
    CHECK(distance(values_of<double>(of_y), values_of<double>(y.view())) < 1e-13);
    if (!size.column_operand) CHECK(same_bits(values_of<double>(of_y), values_of<double>(y.view())));
  }
}

TEST_CASE("far products with the transpose: in 1, 2, 7 and 50 chunks as on near memory") {
  const auto a = directed<double>(601, 350);
  for (const local_index width : {1, 3, 64})
    for (const std::size_t chunks : {1, 2, 7, 50})
      for (const double beta : {0.0, 1.0, -0.5}) {
        product_size size{true, true, true, true, false, width, sizeof(double)};
        size.slot = slot_for(a, size, chunks);
        check_transposed(a, size, 2, beta, 1);
      }
}

TEST_CASE("far products with the transpose: whichever operands are far") {
  const auto a = directed<double>(201, 150);
  for (unsigned far = 1; far < 16; ++far)
    for (const std::size_t from : {std::size_t{1}, std::size_t{1} << 30})
      for (const double beta : {0.0, 1.0, -0.5})
        check_transposed(
            a,
            {(far & 1) != 0, (far & 2) != 0, (far & 4) != 0, (far & 8) != 0, false, 5, sizeof(double), 6144},
            -0.75, beta, from);
}

TEST_CASE("far products: rows in pieces, with every epilogue") {
  const sparse_block<double> a({3, 400, 0, 300, 2, 1, 500}, 300);
  for (unsigned far = 8; far < 16; ++far) {
    const product_size size{
        (far & 1) != 0, (far & 2) != 0, (far & 4) != 0, true, true, 7, sizeof(double), 4096};
    for (const auto& fusion : epilogues) check(a, size, fusion, 1, 1);
    check_transposed(a, size, 2, 0.5, 1);
  }
}

TEST_CASE("far products: floats, empty operands and one that is far only in part") {
  for (const auto& [rows, cols] : {std::pair(0, 5), {5, 0}, {0, 0}, {1, 1}, {57, 31}})
    for (const local_index width : {0, 1, 7}) {
      sparse_block<float> a(rows, cols);
      far_place place(1 << 14);
      block<float> x(cols, width, 1), y(rows, width, 2);
      const auto of_y = place.put(y, true);
      const auto of_a = place.put(a, true, true);
      spmm(place.near, a.view(), x.view(), 0.5F, y.view());
      local::entry_passes<host> passes;
      chunked::spmm(place.q, passes, 0, of_a, place.put(x, true), 0.5F, of_y);
      CHECK((far_of(place.q)->traffic().operations > 0) == (rows > 0));
      CHECK(same_bits(values_of<float>(of_y), values_of<float>(y.view())));
    }
}

TEST_CASE("far products: what is near does not pass, and every block has a plan of its own") {
  const sparse_block<double> a(40, 30), b(40, 30, 0, 1);
  far_place place(1 << 14);
  block<double> x(30, 4, 1), y(40, 4, 2);
  local::entry_passes<host> passes;
  int calls = 0;
  chunked::spmm_fused(place.q, passes, 0, a.view(), x.view(), {}, y.view(), [&] { ++calls; });
  chunked::spmm_fused(place.near, passes, 0, place.put(a, true, true), x.view(), {}, y.view(),
                      [&] { ++calls; });
  CHECK(calls == 2);
  CHECK(far_of(place.q)->traffic().operations == 0);
  // other blocks that are received in the same memory
  auto of_a = place.put(a, true, true);
  for (int run = 0; run < 2; ++run)
    for (std::size_t number = 0; number < 3; ++number) {
      sparse_block<double> other = a;
      for (local_index& c : other.columns) c = (c + static_cast<local_index>(number)) % 30;
      std::copy(other.columns.begin(), other.columns.end(), const_cast<local_index*>(of_a.columns));
      block<double> expected(40, 4, 2);
      spmm(place.near, other.view(), x.view(), 0.0, expected.view());
      chunked::spmm(place.q, passes, number, of_a, place.put(x, true), 0.0, y.view());
      CHECK(same_bits(values_of<double>(y.view()), values_of<double>(expected.view())));
    }
}

TEST_CASE("far products: bytes near are those of entries, with a row each, and of rows of Y") {
  const sparse_block<double> a(std::vector<local_index>(200, 6), 6);
  far_place place(8192);
  const csr_view<double> of_a = place.put(a, true, true);
  const block<double> of_columns(6, 4, 1), of_rows(200, 4, 2);
  const auto x = place.put(of_columns, true), y = place.put(of_rows, true);
  products of{place.q, of_a};
  CHECK(of.predicted(x, 0.5, y).operations == 1);
  CHECK(of.predicted(x, 0.5, y).near == 1200 * (4 + 8 + 32) + 2 * 200 * 32);
  CHECK(of.predicted(x, 0, y).near == 1200 * (4 + 8 + 32) + 200 * 32);
  CHECK(of.predicted_transposed(y, 0.5, x).near == 1200 * (4 + 8 + 2 * 32) + 200 * 32);
}

TEST_CASE("far products: shapes that do not fit are named") {
  far_place place(1 << 14);
  const auto a = place.put(sparse_block<double>(4, 5), true, true);
  block<double> x(4, 2, 1), y(4, 2, 2);
  local::entry_passes<host> passes;
  expect_error<shape_error>("spmm: x is 4 x 2 but the x that a needs is 5 x 2",
                            [&] { chunked::spmm(place.q, passes, 0, a, x.view(), 0.0, y.view()); });
}

}  // namespace test_chunked_products
