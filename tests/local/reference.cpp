// SPDX-License-Identifier: Apache-2.0
// Every reference function against numbers computed by hand.
#include <array>
#include <doctest/doctest.h>

#include "reference/kernels.hpp"

namespace test_local_reference {

using partita::local_index, partita::matrix_view, partita::local::csr_view;
namespace reference = partita::reference;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class T>
struct block {
  std::vector<T> values;
  local_index rows, cols;

  operator matrix_view<T>() { return {values.data(), rows, cols, cols}; }
  matrix_view<T> view() { return *this; }
};

TEST_CASE("reference spmm: hand-computed, with an empty row and beta") {
  // a = [1 0 2; 0 0 0; 0 -3 0]
  const std::array<local_index, 4> offsets{0, 2, 2, 3};
  const std::array<local_index, 3> columns{0, 2, 1};
  const std::array<double, 3> values{1, 2, -3};
  const partita::local::csr_view<double> a{3, 3, offsets.data(), columns.data(), values.data()};
  block<double> x{{1, 2, 3, 4, 5, 6}, 3, 2};
  block<double> y{{not_a_number, not_a_number, not_a_number, not_a_number, not_a_number, not_a_number}, 3, 2};
  reference::spmm(a, x.view(), 0, y.view());
  CHECK(y.values == std::vector<double>{11, 14, 0, 0, -9, -12});
  reference::spmm(a, x.view(), 0.5, y.view());
  CHECK(y.values == std::vector<double>{16.5, 21, 0, 0, -13.5, -18});
}

TEST_CASE("reference spmm_transposed: hand-computed, with an empty column, alpha and beta") {
  // a = [1 0 2 0; 0 0 -3 0]
  const std::array<local_index, 3> offsets{0, 2, 3}, columns{0, 2, 2};
  const std::array<double, 3> values{1, 2, -3};
  const partita::local::csr_view<double> a{2, 4, offsets.data(), columns.data(), values.data()};
  block<double> x{{1, 2, 3, 4}, 2, 2}, y{std::vector<double>(8, not_a_number), 4, 2};
  reference::spmm_transposed(a, x.view(), 1, 0, y.view());
  CHECK(y.values == std::vector<double>{1, 2, 0, 0, -7, -8, 0, 0});
  reference::spmm_transposed(a, x.view(), 2, 0.5, y.view());
  CHECK(y.values == std::vector<double>{2.5, 5, 0, 0, -17.5, -20, 0, 0});
}

TEST_CASE("reference spmm: offsets need not begin at 0") {
  const std::array<local_index, 3> offsets{1, 2, 3}, columns{0, 1, 0};
  const std::array<float, 3> values{100, 2, 3};
  block<float> x{{1, 10}, 2, 1}, y{{0, 0}, 2, 1};
  reference::spmm(partita::local::csr_view<float>{2, 2, offsets.data(), columns.data(), values.data()},
                  x.view(), 0, y.view());
  CHECK(y.values == std::vector<float>{20, 3});
}

TEST_CASE("reference spmm_fused: with beta, bias and cut, by hand") {
  // A = [1 0 2; 0 0 0; 0 -3 0]
  const std::array<local_index, 4> offsets{0, 2, 2, 3};
  const std::array<local_index, 3> columns{0, 2, 1};
  const std::array<double, 3> values{1, 2, -3};
  const std::array<double, 2> bias{-1000, 7};
  const partita::local::csr_view<double> a{3, 3, offsets.data(), columns.data(), values.data()};
  block<double> x{{1, 2, 3, 4, 5, 6}, 3, 2}, y{{10, 20, 30, 40, 50, 60}, 3, 2};
  reference::spmm_fused(a, x.view(), {1, 0.5, bias.data(), false}, y.view());
  CHECK(y.values == std::vector<double>{-984, 31, -985, 27, -984, 25});
  reference::spmm_fused(a, x.view(), {1, 0, bias.data(), true}, y.view());
  CHECK(y.values == std::vector<double>{0, 21, 0, 7, 0, 0});
}

TEST_CASE("reference gemm_bias_relu: a product, a bias and a cut, by hand") {
  block<double> a{{1, 2, 3, 4}, 2, 2}, b{{1, -1, 2, -2}, 2, 2}, c{std::vector<double>(4, not_a_number), 2, 2};
  const std::array<double, 2> bias{10, 6};
  reference::gemm_bias_relu(a.view(), b.view(), bias.data(), false, 0, c.view());
  CHECK(c.values == std::vector<double>{15, 1, 21, -5});
  reference::gemm_bias_relu(a.view(), b.view(), bias.data(), true, 0, c.view());
  CHECK(c.values == std::vector<double>{15, 1, 21, 0});
  reference::gemm_bias_relu(a.view(), b.view(), nullptr, true, -1, c.view());
  CHECK(c.values == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("reference gradients of gemm_bias_relu: of the weight, the bias and what a relu cut, by hand") {
  block<double> a{{1, 0, 3, 4}, 2, 2}, dc{{1, -1, 2, 5}, 2, 2}, b{{1, 2, 3, 4}, 2, 2};
  block<double> db{std::vector<double>(4, not_a_number), 2, 2},
      dz{std::vector<double>(4, not_a_number), 2, 2};
  std::array<double, 2> dbias{};
  reference::gemm_bias_gradient(a.view(), dc.view(), db.view(), dbias.data());
  CHECK(db.values == std::vector<double>{7, 14, 8, 20});
  CHECK(dbias == std::array<double, 2>{3, 4});
  reference::gemm_relu_backward(dc.view(), b.view(), a.view(), dz.view());
  CHECK(dz.values == std::vector<double>{-1, 0, 12, 26});
}

TEST_CASE("reference gemm: all four transpositions give the product computed by hand") {
  // [1 2 3; 4 5 6] [7 8; 9 10; 11 12] = [58 64; 139 154]
  block<double> a{{1, 2, 3, 4, 5, 6}, 2, 3}, at{{1, 4, 2, 5, 3, 6}, 3, 2};
  block<double> b{{7, 8, 9, 10, 11, 12}, 3, 2}, bt{{7, 9, 11, 8, 10, 12}, 2, 3};
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      block<double> c{{not_a_number, not_a_number, not_a_number, not_a_number}, 2, 2};
      reference::gemm(ta, tb, 1, (ta ? at : a).view(), (tb ? bt : b).view(), 0, c.view());
      CHECK(c.values == std::vector<double>{58, 64, 139, 154});
      reference::gemm(ta, tb, 2, (ta ? at : a).view(), (tb ? bt : b).view(), -1, c.view());
      CHECK(c.values == std::vector<double>{58, 64, 139, 154});
    }
}

TEST_CASE("reference gemm: no inner dimension, and alpha = 0, leave beta c") {
  block<double> none{{}, 0, 0}, c{{1, 2}, 1, 2};
  reference::gemm(false, false, 1, matrix_view<const double>{nullptr, 1, 0, 0},
                  matrix_view<const double>{nullptr, 0, 2, 2}, 3, c.view());
  CHECK(c.values == std::vector<double>{3, 6});
  block<double> a{{not_a_number}, 1, 1}, b{{1, 1}, 1, 2};
  reference::gemm(false, false, 0, a.view(), b.view(), 2, c.view());
  CHECK(c.values == std::vector<double>{6, 12});
}

TEST_CASE("reference moves: copy, fill, pack, unpack, lists of rows, sparse_to_dense on a strided block") {
  std::vector<float> memory{1, 2, 9, 3, 4, 9};
  const matrix_view<float> x{memory.data(), 2, 2, 3};
  block<float> y{{0, 0, 0, 0}, 2, 2};
  reference::copy(x, y.view());
  CHECK(y.values == std::vector<float>{1, 2, 3, 4});
  std::vector<float> line(4);
  reference::pack(x, line.data());
  CHECK(line == std::vector<float>{1, 2, 3, 4});
  const std::vector<float> other{5, 6, 7, 8};
  reference::unpack(other.data(), x);
  CHECK(memory == std::vector<float>{5, 6, 9, 7, 8, 9});
  std::vector<float> gathered(6);
  const std::array<local_index, 3> rows{1, 0, 1};
  reference::gather_rows(x, rows, gathered.data());
  CHECK(gathered == std::vector<float>{7, 8, 5, 6, 7, 8});
  const std::array<local_index, 2> distinct{1, 0};
  const std::array<float, 4> summands{1, 2, 3, 4};
  reference::scatter_add_rows(summands.data(), distinct, x);
  CHECK(memory == std::vector<float>{8, 10, 9, 8, 10, 9});
  reference::fill(-1, x);
  CHECK(memory == std::vector<float>{-1, -1, 9, -1, -1, 9});
  const std::array<local_index, 3> offsets{1, 1, 3}, columns{-1, 1, 0};
  const std::array<float, 3> values{-2, 4, 6};
  reference::sparse_to_dense({2, 2, offsets.data(), columns.data(), values.data()}, x);
  CHECK(memory == std::vector<float>{0, 0, 9, 6, 4, 9});
}

TEST_CASE("reference maps: map, zip, transform_indexed, add_row, divide_rows") {
  block<double> x{{1, 2, 3, 4}, 2, 2}, y{{0, 0, 0, 0}, 2, 2};
  reference::transform([](double v) { return v * v; }, x.view(), y.view());
  CHECK(y.values == std::vector<double>{1, 4, 9, 16});
  reference::zip([](double a, double b) { return a - b; }, y.view(), x.view(), y.view());
  CHECK(y.values == std::vector<double>{0, 2, 6, 12});
  reference::transform_indexed([](local_index i, local_index j, double v) { return 100 * i + 10 * j + v; },
                               x.view(), y.view());
  CHECK(y.values == std::vector<double>{1, 12, 103, 114});
  const std::array<double, 2> two{2, 4};
  reference::add_row(two.data(), x.view());
  CHECK(x.values == std::vector<double>{3, 6, 5, 8});
  reference::divide_rows(two.data(), x.view());
  CHECK(x.values == std::vector<double>{1.5, 3, 1.25, 2});
}

TEST_CASE("reference reductions: sums, maxima and what they are of nothing") {
  block<double> x{{1, -2, 3, -4, -5, -6}, 2, 3};
  std::vector<double> columns(3), rows(2);
  reference::column_sums(x.view(), columns.data());
  CHECK(columns == std::vector<double>{-3, -7, -3});
  reference::row_sums(x.view(), rows.data());
  CHECK(rows == std::vector<double>{2, -15});
  reference::row_max(x.view(), rows.data());
  CHECK(rows == std::vector<double>{3, -4});
  CHECK(reference::sum(x.view()) == -13);
  const matrix_view<double> empty{nullptr, 2, 0, 0};
  reference::row_max(empty, rows.data());
  CHECK(rows == std::vector<double>(2, -std::numeric_limits<double>::infinity()));
  reference::row_sums(empty, rows.data());
  CHECK(rows == std::vector<double>{0, 0});
  CHECK(reference::sum(empty) == 0);
}

TEST_CASE("reference softmax_exp: exponentials of differences and their sums") {
  block<double> x{{1000, 1000 + std::log(2.0), 0, std::log(3.0)}, 2, 2}, y{{0, 0, 0, 0}, 2, 2};
  const std::array<double, 2> maxima{1000, 0};
  std::array<double, 2> sums{};
  reference::softmax_exp(x.view(), maxima.data(), y.view(), sums.data());
  const std::array<double, 4> expected{1, 2, 1, 3};
  for (std::size_t i = 0; i < 4; ++i) CHECK(y.values[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  CHECK(sums[0] == doctest::Approx(3));
  CHECK(sums[1] == doctest::Approx(4));
}

TEST_CASE("reference cross_entropy: softmax (1/4, 3/4), one row not counted, large logits") {
  const double l3 = std::log(3.0);
  block<double> x{{0, l3, 5, 6, 1000, 1000 + l3}, 3, 2}, g{std::vector<double>(6, not_a_number), 3, 2};
  const std::array<local_index, 3> labels{0, -1, 1};
  const double loss = reference::cross_entropy(x.view(), labels.data(), 2, g.view());
  CHECK(loss == doctest::Approx(std::log(4.0) + std::log(4.0 / 3)));
  const std::array<double, 6> expected{-1.5, 1.5, 0, 0, 0.5, -0.5};
  for (std::size_t i = 0; i < 6; ++i) CHECK(g.values[i] == doctest::Approx(expected[i]));
}

TEST_CASE("reference count_correct: the first largest wins, unlabelled rows do not count") {
  block<float> x{{1, 3, 3, 0, 0, 0, 2, 1, 0, 7, 8, 9}, 4, 3};
  const std::array<local_index, 4> labels{1, 1, 0, -1};
  CHECK(reference::count_correct(x.view(), labels.data()) == 2);
  const std::array<local_index, 4> others{2, 0, 1, 2};
  CHECK(reference::count_correct(x.view(), others.data()) == 2);
}

}  // namespace test_local_reference
