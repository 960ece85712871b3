// SPDX-License-Identifier: Apache-2.0
// Factorisations of small matrices: what they promise of their factors, on blocks with padded rows.
#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "partita/local/lapack/small.hpp"
#include "support/ranks.hpp"

using partita::local_index, partita::matrix_view;
namespace lapack = partita::lapack;

namespace {

/// A rows x cols block whose rows are `gap` elements further apart than they are long; the gaps hold a number
/// that nothing may change.
template <class T>
struct block {
  block(local_index m, local_index n, local_index gap = 0)
      : rows(m), cols(n), stride(n + gap), values(static_cast<std::size_t>(m * (n + gap)), T(77)) {}
  block(local_index m, local_index n, local_index gap, std::uint64_t seed) : block(m, n, gap) {
    for (local_index i = 0; i < m; ++i)
      for (local_index j = 0; j < n; ++j)
        view()(i, j) = static_cast<T>(partita::base::random_uniform(seed, i, j) - 0.5);
  }

  matrix_view<T> view() { return {values.data(), rows, cols, stride}; }
  T operator()(local_index i, local_index j) const {
    return values[static_cast<std::size_t>(i * stride + j)];
  }
  bool gaps_are_whole() const {
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = cols; j < stride; ++j)
        if ((*this)(i, j) != T(77)) return false;
    return true;
  }

  local_index rows, cols, stride;
  std::vector<T> values;
};

/// The largest difference between a(i, j) and b(i, j).
double distance(local_index m, local_index n, auto a, auto b) {
  double worst = 0;
  for (local_index i = 0; i < m; ++i)
    for (local_index j = 0; j < n; ++j) {
      const double d = std::abs(static_cast<double>(a(i, j)) - static_cast<double>(b(i, j)));
      worst = d == d ? std::max(worst, d) : std::numeric_limits<double>::infinity();
    }
  return worst;
}

/// sum over k of a(i, k) b(k, j).
auto times(local_index inner, auto a, auto b) {
  return [=](local_index i, local_index j) {
    double sum = 0;
    for (local_index k = 0; k < inner; ++k)
      sum += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
    return sum;
  };
}
auto transpose(auto a) {
  return [=](local_index i, local_index j) { return a(j, i); };
}
constexpr auto identity = [](local_index i, local_index j) { return i == j ? 1.0 : 0.0; };

template <class T>
constexpr double eps = std::numeric_limits<T>::epsilon();

/// I + S S^T / n of a random S: symmetric, well conditioned.
template <class T>
block<T> positive_definite(local_index n, local_index gap) {
  const block<T> s(n, n, 0, 5);
  const auto product = times(n, s, transpose(s));
  block<T> g(n, n, gap);
  for (local_index i = 0; i < n; ++i)
    for (local_index j = 0; j < n; ++j) g.view()(i, j) = static_cast<T>(identity(i, j) + product(i, j) / n);
  return g;
}

constexpr auto sizes = {0, 1, 2, 5, 33, 80};

}  // namespace

TEST_CASE_TEMPLATE("cholesky: R^T R = G, and what R solves", T, float, double) {
  for (const local_index n : sizes)
    for (const local_index gap : {0, 3}) {
      CAPTURE(n);
      const block<T> g = positive_definite<T>(n, gap);
      block<T> r = g;
      for (local_index i = 1; i < n; ++i)  // what is below the diagonal is not read
        std::fill_n(r.view().row_data(i), i, std::numeric_limits<T>::quiet_NaN());
      REQUIRE(lapack::cholesky(r.view()));
      CHECK(distance(n, n, times(n, transpose(r), r), g) < 10 * eps<T>);
      for (local_index i = 0; i < n; ++i) {
        CHECK(r(i, i) > 0);
        for (local_index j = 0; j < i; ++j) CHECK(r(i, j) == 0);
      }
      const block<T> b(n, 4, gap, 6);
      block<T> x = b;
      lapack::solve_upper(r.view(), x.view(), true);
      lapack::solve_upper(r.view(), x.view());
      CHECK(distance(n, 4, times(n, g, x), b) < 30 * eps<T>);
      block<T> inverse = r;
      REQUIRE(lapack::invert_upper(inverse.view()));
      CHECK(distance(n, n, times(n, r, inverse), identity) < 10 * eps<T>);
      CHECK((r.gaps_are_whole() && x.gaps_are_whole() && inverse.gaps_are_whole()));
    }
}

TEST_CASE_TEMPLATE("cholesky refuses what is not positive definite", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  const auto refused = [](block<T> g) { return !lapack::cholesky(g.view()); };
  for (const T number : {T(0), T(-1), nan, infinity}) {
    block<T> one(1, 1);
    one.view()(0, 0) = number;
    CHECK(refused(one));
    for (const local_index n : {5, 80})
      for (const local_index at : {0, 2, n - 1}) {
        block<T> g = positive_definite<T>(n, 1);
        g.view()(at, at) = number;
        CHECK(refused(g));
        block<T> beside = positive_definite<T>(n, 1);
        if (!(number < 1)) {
          beside.view()(0, n - 1) = number;
          CHECK(refused(beside));
        }
      }
  }
  block<T> singular(2, 2);  // (1, 1)^T (1, 1)
  std::fill_n(singular.values.data(), 4, T(1));
  CHECK(refused(singular));
}

TEST_CASE_TEMPLATE("invert_upper: a singular triangle stays as it is", T, float, double) {
  block<T> r(5, 5, 2, 3);
  r.view()(3, 3) = 0;
  const block<T> before = r;
  CHECK(!lapack::invert_upper(r.view()));
  CHECK(r.values == before.values);
}

TEST_CASE_TEMPLATE("qr: Q R = A and Q^T Q = I, tall, square and wide", T, float, double) {
  for (const auto& shape : std::vector<std::array<local_index, 2>>{
           {0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 4}, {7, 1}, {9, 4}, {40, 40}, {4, 9}, {200, 33}})
    for (const local_index gap : {0, 2})
      for (const bool singular : {false, true}) {
        const auto [m, n] = shape;
        const local_index k = std::min(m, n);
        INFO("m ", m, ", n ", n);
        block<T> a(m, n, gap, 4);
        for (local_index i = 0; singular && i < m; ++i)  // all columns but the last are one
          for (local_index j = 0; j + 1 < n; ++j) a.view()(i, j) = static_cast<T>(i % 3);
        block<T> q = a, r(k, n, gap);
        lapack::qr(q.view(), r.view());
        CHECK(distance(m, n, times(k, q, r), a) <= (m + n) * eps<T>);
        CHECK(distance(k, k, times(m, transpose(q), q), identity) <= (m + n) * eps<T>);
        for (local_index i = 0; i < k; ++i)
          for (local_index j = 0; j < std::min(i, n); ++j) CHECK(r(i, j) == 0);
        CHECK((q.gaps_are_whole() && r.gaps_are_whole()));
      }
}

TEST_CASE_TEMPLATE("symmetric_eigen: A V = V diag(values)", T, float, double) {
  for (const local_index n : sizes)
    for (const local_index gap : {0, 3}) {
      CAPTURE(n);
      const block<T> a = positive_definite<T>(n, gap);
      block<T> v = a;
      std::vector<T> values(static_cast<std::size_t>(n));
      lapack::symmetric_eigen(v.view(), values);
      CHECK(std::is_sorted(values.begin(), values.end()));
      CHECK(distance(n, n, times(n, transpose(v), v), identity) < 50 * eps<T>);
      const auto scaled = [&](local_index i, local_index j) {
        return v(i, j) * values[static_cast<std::size_t>(j)];
      };
      CHECK(distance(n, n, times(n, a, v), scaled) < 50 * eps<T>);
      CHECK(v.gaps_are_whole());
    }
}

TEST_CASE_TEMPLATE("generalized_eigen: A V = B V diag(values), V^T B V = I", T, float, double) {
  for (const local_index n : sizes)
    for (const local_index gap : {0, 3}) {
      CAPTURE(n);
      block<T> a(n, n, gap, 9);
      for (local_index i = 0; i < n; ++i)
        for (local_index j = 0; j < i; ++j) a.view()(i, j) = a(j, i);
      const block<T> b = positive_definite<T>(n, gap);
      block<T> v = a, factor = b;
      std::vector<T> values(static_cast<std::size_t>(n));
      REQUIRE(lapack::generalized_eigen(v.view(), factor.view(), values));
      CHECK(std::is_sorted(values.begin(), values.end()));
      const auto scaled = [&](local_index i, local_index j) {
        return v(i, j) * values[static_cast<std::size_t>(j)];
      };
      CHECK(distance(n, n, times(n, transpose(v), times(n, b, v)), identity) < 50 * eps<T>);
      CHECK(distance(n, n, times(n, a, v), times(n, b, scaled)) < 100 * eps<T>);
      CHECK((v.gaps_are_whole() && factor.gaps_are_whole()));
    }
  block<T> a = positive_definite<T>(3, 0), b(3, 3);
  std::fill_n(b.values.data(), 9, T(1));
  std::vector<T> values(3);
  CHECK(!lapack::generalized_eigen(a.view(), b.view(), values));
}

TEST_CASE_TEMPLATE("svd: A = U diag(values) V^T, also of rank 1 and 0", T, float, double) {
  for (const auto& shape : std::vector<std::array<local_index, 2>>{
           {0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 4}, {7, 1}, {9, 4}, {4, 9}, {20, 20}, {50, 12}})
    for (const int rank : {0, 1, 50}) {
      const auto [m, n] = shape;
      const local_index k = std::min(m, n);
      INFO("m ", m, ", n ", n, ", rank ", rank);
      block<T> a(m, n, 2, 8);
      for (local_index i = 0; rank < 2 && i < m; ++i)
        for (local_index j = 0; j < n; ++j) a.view()(i, j) = static_cast<T>(rank * (i + 1) * (j + 2)) / 1024;
      block<T> spent = a, u(m, k, 1), v(k, n, 3);
      std::vector<T> values(static_cast<std::size_t>(k));
      lapack::svd(spent.view(), u.view(), values, v.view());
      CHECK(std::is_sorted(values.rbegin(), values.rend()));
      if (k > 1 && rank < 2) CHECK(values[1] <= 10 * eps<T> * values[0]);
      const auto scaled = [&](local_index i, local_index j) {
        return u(i, j) * values[static_cast<std::size_t>(j)];
      };
      CHECK(distance(m, n, times(k, scaled, v), a) <= (m + n) * eps<T>);
      CHECK(distance(k, k, times(m, transpose(u), u), identity) <= (m + n) * eps<T>);
      CHECK(distance(k, k, times(n, v, transpose(v)), identity) <= (m + n) * eps<T>);
      CHECK((spent.gaps_are_whole() && u.gaps_are_whole() && v.gaps_are_whole()));
    }
}

TEST_CASE("shapes that do not fit are named, and NaN") {
  using partita::error, partita::shape_error, test_support::expect_error;
  block<double> a(4, 3), square(3, 3, 0, 1), r(2, 3);
  std::vector<double> values(2);
  expect_error<shape_error>("a Cholesky factorisation needs a square matrix, not 4 x 3",
                            [&] { static_cast<void>(lapack::cholesky(a.view())); });
  expect_error<shape_error>("solve_upper: b is 2 x 3 but the b that r needs is 3 x 3",
                            [&] { lapack::solve_upper(square.view(), r.view()); });
  expect_error<shape_error>("qr: r is 2 x 3 but the r of a is 3 x 3",
                            [&] { lapack::qr(a.view(), r.view()); });
  expect_error<shape_error>("a symmetric eigenproblem writes 3 eigenvalues, not 2",
                            [&] { lapack::symmetric_eigen(square.view(), values); });
  expect_error<shape_error>("generalized_eigen: a is 3 x 3 but b is 2 x 3", [&] {
    static_cast<void>(lapack::generalized_eigen(square.view(), r.view(), values));
  });
  expect_error<shape_error>("svd: v_transposed is 2 x 3 but the v_transposed of a is 3 x 3",
                            [&] { lapack::svd(a.view(), block<double>(4, 3).view(), values, r.view()); });
  expect_error<shape_error>("a block of 3 x 3 has 2 elements from one row to the next", [&] {
    static_cast<void>(lapack::cholesky(matrix_view<double>{square.view().data, 3, 3, 2}));
  });
  square.view()(0, 1) = std::nan("");
  expect_error<error>("LAPACK's geqrf of 3 x 3 failed with info -4: an argument contains NaN",
                      [&] { lapack::qr(square.view(), block<double>(3, 3).view()); });
  values.resize(3);
  expect_error<error>("LAPACK's syevd of 3 x 3 failed with info -5: an argument contains NaN",
                      [&] { lapack::symmetric_eigen(square.view(), values); });
}

#ifdef OPENBLAS_VERSION

TEST_CASE("small problems leave OpenBLAS its number of threads") {
  openblas_set_num_threads(3);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.emplace_back([] {
        for (int repeat = 0; repeat < 20; ++repeat) {
          block<double> g = positive_definite<double>(20, 0);
          static_cast<void>(lapack::cholesky(g.view()));
        }
      });
  }
  CHECK(openblas_get_num_threads() == 3);
}

#endif
