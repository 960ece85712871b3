// The host kernels against the reference: odd sizes, strides, empty blocks, several threads, and the same
// bits for all.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/local/kernels.hpp"
#include "partita/local/reference/kernels.hpp"
#include "support/blocks.hpp"

using partita::csr_view;
using partita::local_index;
using partita::matrix_view;
using test_support::block;
using test_support::distance;
using test_support::same_bits;
using host_kernels = partita::kernels<partita::host>;
using host_queue = partita::queue<partita::host>;
namespace reference = partita::reference;

namespace {

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

/// A skewed sparse block: row 0 is long, every third row is empty, offsets begin at 2.
template <class T>
struct sparse {
  local_index rows, cols;
  std::vector<local_index> offsets, columns{0, 0};
  std::vector<T> values{0, 0};

  sparse(local_index rows, local_index cols) : rows(rows), cols(cols), offsets{2} {
    for (local_index i = 0; i < rows; ++i) {
      const local_index length = cols == 0 || i % 3 == 1 ? 0 : i == 0 ? 3 * cols : 1 + i % 7;
      for (local_index e = 0; e < length; ++e) {
        columns.push_back(
            static_cast<local_index>(partita::random_bits(5, i, e) % static_cast<std::uint64_t>(cols)));
        values.push_back(static_cast<T>(partita::random_uniform(6, i, e) - 0.5));
      }
      offsets.push_back(static_cast<local_index>(columns.size()));
    }
  }
  csr_view<T> view() const { return {rows, cols, offsets.data(), columns.data(), values.data()}; }
};

/// Runs the kernel on copies of y with several threads: all must agree with `expected`, and in every bit with
/// each other.
template <class T, class Kernel>
void agree(const block<T>& y, const block<T>& expected, double allowed, Kernel kernel) {
  std::vector<T> first;
  for (const int threads : {1, 2, 3}) {
    block<T> result = y;
    kernel(host_queue(threads), result);
    INFO("rows ", y.rows, " cols ", y.cols, " threads ", threads);
    CHECK(distance(result.values, expected.values) < allowed);
    if (threads == 1) first = result.values;
    CHECK(same_bits(result.values, first));
  }
}

template <class T>
void check_spmm(local_index m, local_index k, local_index f) {
  const sparse<T> a(m, k);
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    block<T> x(k, f, 1), y(m, f, 2, 1);
    if (beta == 0) y.poison();
    block<T> expected = y;
    reference::spmm(a.view(), x.view(), beta, expected.view());
    INFO("k ", k, " beta ", beta);
    agree(y, expected, tolerance<T>,
          [&](auto q, auto& result) { host_kernels::spmm(q, a.view(), x.view(), beta, result.view()); });
  }
}

template <class T>
void check_gemm(local_index m, local_index n, local_index k, bool ta, bool tb) {
  for (const T beta : {T{0}, T{1}, T(-0.75)})
    for (const T alpha : {T{1}, T(0.5), T{0}}) {
      block<T> a(ta ? k : m, ta ? m : k, 1), b(tb ? n : k, tb ? k : n, 2, 0), c(m, n, 3, 2);
      if (beta == 0) c.poison();
      block<T> expected = c;
      reference::gemm(ta, tb, alpha, a.view(), b.view(), beta, expected.view());
      INFO("k ", k, " ta ", ta, " tb ", tb, " alpha ", alpha, " beta ", beta);
      agree(c, expected, tolerance<T> * (1 + std::sqrt(double(k))), [&](auto q, auto& result) {
        host_kernels::gemm(q, ta, tb, alpha, a.view(), b.view(), beta, result.view());
      });
    }
}

/// `kernel(queue, x, y, line)` against `expect(x, y, line)`: x and y are (m, n), line has m + n + 2 elements.
template <class T, class Kernel, class Expect>
void check_block(Kernel kernel, Expect expect) {
  const std::vector<std::array<local_index, 2>> shapes{{0, 0},     {0, 5},     {5, 0},    {1, 1},
                                                       {3, 7},     {17, 9},    {65, 8},   {1000, 33},
                                                       {257, 130}, {5000, 16}, {16500, 3}};
  for (const auto& [m, n] : shapes) {
    block<T> x(m, n, 11), y(m, n, 12, 1);
    const std::ptrdiff_t area = std::ptrdiff_t{y.rows} * y.stride;
    const block<T> line(1, m + n + 2, 13, 0);
    y.values.insert(y.values.end(), line.values.begin(), line.values.end());
    block<T> expected = y;
    expect(x.view(), expected.view(), expected.values.data() + area);
    agree(y, expected, tolerance<T>,
          [&](auto q, auto& result) { kernel(q, x.view(), result.view(), result.values.data() + area); });
  }
}

std::vector<local_index> some_labels(local_index rows, local_index cols) {
  std::vector<local_index> labels;
  for (local_index i = 0; i < rows; ++i) labels.push_back(i % 4 == 2 || cols == 0 ? -1 : (i * 5) % cols);
  return labels;
}

}  // namespace

TEST_CASE_TEMPLATE("cpu spmm: every width", T, float, double) {
  for (local_index f = 1; f <= 40; ++f) check_spmm<T>(23, 19, f);
  for (const local_index f : {63, 64, 65, 127, 128, 129, 256, 300}) check_spmm<T>(23, 19, f);
}

TEST_CASE_TEMPLATE("cpu spmm: many rows, and blocks without rows, columns or width", T, float, double) {
  for (const local_index f : {0, 1, 7, 32, 47, 130}) {
    check_spmm<T>(0, 5, f);
    check_spmm<T>(5, 0, f);
    check_spmm<T>(0, 0, f);
    check_spmm<T>(1, 1, f);
    check_spmm<T>(3001, 400, f);
  }
}

TEST_CASE_TEMPLATE("cpu gemm: odd shapes and all transpositions", T, float, double) {
  const std::vector<std::array<local_index, 3>> shapes{
      {0, 0, 0},     {0, 3, 4},     {3, 0, 4},      {3, 4, 0},     {1, 1, 1},
      {2, 3, 5},     {7, 31, 13},   {8, 32, 1},     {33, 65, 17},  {130, 7, 3},
      {40, 50, 600}, {16, 7, 5000}, {300, 129, 70}, {65, 300, 33}, {257, 4, 257}};
  for (const auto& [m, n, k] : shapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) check_gemm<T>(m, n, k, ta, tb);
}

TEST_CASE_TEMPLATE("cpu moves", T, float, double) {
  check_block<T>([](auto q, auto x, auto y, T*) { host_kernels::copy(q, x, y); },
                 [](auto x, auto y, T*) { reference::copy(x, y); });
  check_block<T>([](auto q, auto, auto y, T*) { host_kernels::fill(q, T(1.5), y); },
                 [](auto, auto y, T*) { reference::fill(T(1.5), y); });
  check_block<T>(
      [](auto q, auto x, auto y, T*) {
        std::vector<T> line(static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols));
        host_kernels::pack(q, x, line.data());
        host_kernels::unpack(q, line.data(), y);
      },
      [](auto x, auto y, T*) { reference::copy(x, y); });
  std::vector<local_index> rows;
  for (local_index i = 0; i < 3000; ++i) rows.push_back((i * 7) % 50);
  block<T> x(50, 21, 1);
  std::vector<T> expected(rows.size() * 21), result(rows.size() * 21);
  reference::gather_rows(x.view(), rows, expected.data());
  for (const int threads : {1, 2, 3}) {
    host_kernels::gather_rows(host_queue(threads), x.view(), rows, result.data());
    CHECK(same_bits(result, expected));
  }
}

TEST_CASE_TEMPLATE("cpu elementwise", T, float, double) {
  const auto square = [](T v) { return v * v + 1; };
  check_block<T>([=](auto q, auto x, auto y, T*) { host_kernels::map(q, square, x, y); },
                 [=](auto x, auto y, T*) { reference::map(square, x, y); });
  check_block<T>([=](auto q, auto, auto y, T*) { host_kernels::map(q, square, y, y); },
                 [=](auto, auto y, T*) { reference::map(square, y, y); });
  const auto place = [](local_index i, local_index j, T v) { return static_cast<T>(i * 3 + j) + v; };
  check_block<T>([=](auto q, auto x, auto y, T*) { host_kernels::map_indexed(q, place, x, y); },
                 [=](auto x, auto y, T*) { reference::map_indexed(place, x, y); });
  const auto minus = [](T a, T b) { return a - 2 * b; };
  check_block<T>([=](auto q, auto x, auto y, T*) { host_kernels::zip(q, minus, x, y, y); },
                 [=](auto x, auto y, T*) { reference::zip(minus, x, y, y); });
  check_block<T>([](auto q, auto, auto y, T* line) { host_kernels::add_row(q, line, y); },
                 [](auto, auto y, T* line) { reference::add_row(line, y); });
  check_block<T>([](auto q, auto, auto y, T* line) { host_kernels::scale_rows(q, line, y); },
                 [](auto, auto y, T* line) { reference::scale_rows(line, y); });
  check_block<T>([](auto q, auto, auto y, T* line) { host_kernels::divide_rows(q, line, y); },
                 [](auto, auto y, T* line) { reference::divide_rows(line, y); });
}

TEST_CASE_TEMPLATE("cpu reductions and softmax", T, float, double) {
  check_block<T>([](auto q, auto x, auto, T* line) { host_kernels::column_sums(q, x, line); },
                 [](auto x, auto, T* line) { reference::column_sums(x, line); });
  check_block<T>([](auto q, auto x, auto, T* line) { host_kernels::row_sums(q, x, line); },
                 [](auto x, auto, T* line) { reference::row_sums(x, line); });
  check_block<T>([](auto q, auto x, auto, T* line) { host_kernels::row_max(q, x, line); },
                 [](auto x, auto, T* line) { reference::row_max(x, line); });
  check_block<T>([](auto q, auto x, auto, T* line) { *line = host_kernels::sum(q, matrix_view<const T>(x)); },
                 [](auto x, auto, T* line) { *line = reference::sum(matrix_view<const T>(x)); });
  check_block<T>([](auto q, auto x, auto y, T* line) { host_kernels::softmax_exp(q, x, line, y, line); },
                 [](auto x, auto y, T* line) { reference::softmax_exp(x, line, y, line); });
}

TEST_CASE_TEMPLATE("cpu loss", T, float, double) {
  check_block<T>(
      [](auto q, auto x, auto y, T* line) {
        const auto labels = some_labels(x.rows, x.cols);
        line[0] = static_cast<T>(host_kernels::cross_entropy(q, x, labels.data(), T(0.25), y));
        line[1] = static_cast<T>(host_kernels::count_correct(q, x, labels.data()));
      },
      [](auto x, auto y, T* line) {
        const auto labels = some_labels(x.rows, x.cols);
        line[0] = static_cast<T>(reference::cross_entropy(x, labels.data(), T(0.25), y));
        line[1] = static_cast<T>(reference::count_correct(x, labels.data()));
      });
}
