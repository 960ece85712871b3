// SPDX-License-Identifier: Apache-2.0
// Dense products by register tiles, in every instruction set: sizes around those of tiles, panels and pieces.
#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "partita/local/kernels.hpp"
#include "reference/gemm.hpp"

using partita::local_index, partita::matrix_view;

namespace {

/// rows x cols numbers in memory that ends with the last of them, `gap` between rows.
template <class T>
class block {
 public:
  block(local_index rows, local_index cols, local_index gap, std::uint64_t seed, bool whole)
      : values_(std::make_unique<T[]>(size(rows, cols, gap))), view_{values_.get(), rows, cols, cols + gap} {
    for (std::size_t i = 0; i < size(rows, cols, gap); ++i) {
      const double u = partita::base::random_uniform(seed, static_cast<std::int64_t>(i), 0);
      values_[i] = static_cast<T>(whole ? std::floor(9 * u) - 4 : u - 0.5);
    }
  }
  matrix_view<const T> read() const { return view_; }
  matrix_view<T> write() { return view_; }
  /// The same block in numbers of U, rounded to nearest.
  template <class U>
  block<U> as() const {
    block<U> other(view_.rows, view_.cols, 1, 0, true);
    for (local_index i = 0; i < view_.rows; ++i)
      for (local_index j = 0; j < view_.cols; ++j) other.write()(i, j) = static_cast<U>(view_(i, j));
    return other;
  }
  bool operator==(const block& other) const {
    for (local_index i = 0; i < view_.rows; ++i)
      for (local_index j = 0; j < view_.cols; ++j)
        if (view_(i, j) != other.view_(i, j)) return false;
    return true;
  }

 private:
  static std::size_t size(local_index rows, local_index cols, local_index gap) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols + gap) -
           static_cast<std::size_t>(gap);
  }
  std::unique_ptr<T[]> values_;
  matrix_view<T> view_;
};

struct sizes {
  local_index m, n, k;
};

/// Whether the product of small integers is exactly the reference's on so many threads.
template <class T>
bool is_exact(int threads, sizes s, bool ta, bool tb, T beta) {
  const auto [m, n, k] = s;
  const block<T> a(ta ? k : m, ta ? m : k, 2, 1, true), b(tb ? n : k, tb ? k : n, 1, 2, true);
  block<T> c(m, n, 3, 3, true), expected(m, n, 3, 3, true);
  const partita::device_queue<partita::host> q(threads);
  gemm(q, ta, tb, T(1.5), a.read(), b.read(), beta, c.write());
  partita::reference::gemm(ta, tb, T(1.5), a.read(), b.read(), beta, expected.write());
  return c == expected;
}

}  // namespace

TEST_CASE_TEMPLATE("tiles, panels and pieces cover every shape", T, float, double) {
  const std::vector<sizes> shapes = {{1, 1, 1},    {6, 64, 3},    {7, 65, 257}, {24, 16, 256},
                                     {25, 33, 40}, {48, 130, 20}, {23, 31, 70}, {8, 48, 17},
                                     {5, 300, 9},  {300, 5, 9},   {7, 5, 8200}, {40, 9, 300}};
  for (const sizes& s : shapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const T beta : {T{0}, T(0.5)}) {
          INFO("s.m ", s.m, ", s.n ", s.n, ", s.k ", s.k);
          CHECK(is_exact<T>(1 + (s.m + s.k) % 3, s, ta, tb, beta));
        }
}

TEST_CASE_TEMPLATE("products of every width are exact", T, float, double) {
  for (local_index width = 1; width <= 70; ++width) {
    CAPTURE(width);
    CHECK(is_exact<T>(1, {29, width, 11}, false, false, T{0}));
    CHECK(is_exact<T>(1, {width, 13, 19}, true, false, T{0}));
  }
}

TEST_CASE_TEMPLATE("sums do not depend on the number of threads", T, float, double) {
  for (const sizes& s : {sizes{777, 70, 33}, sizes{50, 900, 33}, sizes{33, 20, 20000}})
    for (const bool ta : {false, true}) {
      const auto [m, n, k] = s;
      const block<T> a(ta ? k : m, ta ? m : k, 0, 1, false), b(k, n, 0, 2, false);
      block<T> one(m, n, 0, 3, false);
      gemm(partita::device_queue<partita::host>(1), ta, false, T(1), a.read(), b.read(), T(0.5), one.write());
      for (const int threads : {2, 3, 8}) {
        block<T> many(m, n, 0, 3, false);
        gemm(partita::device_queue<partita::host>(threads), ta, false, T(1), a.read(), b.read(), T(0.5),
             many.write());
        CHECK(one == many);
      }
    }
}

TEST_CASE_TEMPLATE("rows end the same in panels, columns and pieces", T, float, double) {
  for (const sizes& s : {sizes{9001, 17, 5}, sizes{50, 900, 33}, sizes{33, 20, 20000}}) {
    const auto [m, n, k] = s;
    const block<T> a(m, k, 1, 1, true), b(k, n, 2, 2, true), bias(1, n, 0, 3, true), dc(m, n, 1, 4, true);
    const partita::device_queue<partita::host> q(3);
    block<T> c(m, n, 3, 5, true), expected(m, n, 3, 5, true), da(m, k, 1, 6, true),
        expected_da(m, k, 1, 6, true);
    gemm_bias_relu(q, a.read(), b.read(), bias.read().data, true, T(0.5), c.write());
    partita::reference::gemm_bias_relu<T>(a.read(), b.read(), bias.read().data, true, T(0.5),
                                          expected.write());
    CHECK(c == expected);
    gemm_relu_backward(q, dc.read(), b.read(), a.read(), da.write());
    partita::reference::gemm_relu_backward<T>(dc.read(), b.read(), a.read(), expected_da.write());
    CHECK(da == expected_da);
  }
}

/// What is stored in 2 bytes has the bits of the floats that it is, and is off by what rounding to 8 bits, a
/// unit roundoff of 2^-8, and a sum of k terms in float can make of the sum of absolute values.
TEST_CASE("an A of bfloat16: the bits of its floats, within the bound of their rounding") {
  using partita::base::bfloat16;
  for (const sizes& s : {sizes{7, 65, 257}, sizes{25, 33, 40}, sizes{1, 1, 1}, sizes{7, 5, 8200}})
    for (const bool ta : {false, true})
      for (const float beta : {0.F, 0.5F}) {
        const auto [m, n, k] = s;
        const partita::device_queue<partita::host> q(1 + m % 3);
        const block<float> exact(ta ? k : m, ta ? m : k, 2, 1, false), b(k, n, 1, 2, false);
        const auto stored = exact.as<bfloat16>();
        const auto widened = stored.as<float>();
        block<float> c(m, n, 3, 3, false), expected(m, n, 3, 3, false);
        const block<float> old(m, n, 3, 3, false);
        gemm(q, ta, false, 1.5F, stored.read(), b.read(), beta, c.write());
        gemm(q, ta, false, 1.5F, widened.read(), b.read(), beta, expected.write());
        CHECK(c == expected);
        const double most = 0x1p-8 + (k + 4) * 0x1p-23;
        int beyond = 0;
        for (local_index i = 0; i < m; ++i)
          for (local_index j = 0; j < n; ++j) {
            double sum = double{beta} * old.read()(i, j), size = std::abs(sum);
            for (local_index p = 0; p < k; ++p) {
              const double term = 1.5 * (ta ? exact.read()(p, i) : exact.read()(i, p)) * b.read()(p, j);
              sum += term, size += std::abs(term);
            }
            if (!(std::abs(c.read()(i, j) - sum) <= most * size)) ++beyond;
          }
        CHECK(beyond == 0);
      }
}
