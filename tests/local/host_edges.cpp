// SPDX-License-Identifier: Apache-2.0
// The host's kernels of a pattern's entries: the reference, adjoints, and gradients as differences.

#include "laws/edge_laws.hpp"
#include "partita/local/exact.hpp"

using namespace test_support;

namespace {

/// Ordered products against the reference, and those of one row alone against those of all rows.
template <class T>
void check_ordered(local_index m, local_index k, partita::local::head_slice s) {
  const sparse_block<T> p(m, k);
  const partita::local::csr_view<T> a = p.pattern();
  const local_index f = s.heads * s.head_width;
  const block<T> x(k, f, 1), y(m, f, 2), dots(m, s.heads, 5);
  const block<T> values = edge_block(p, s.heads, 3), others = edge_block(p, s.heads, 4);
  const weight_of_entry<T> weight{};
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width);
  const auto check = [&](const block<T>& to, auto kernel, auto expect) {
    agree_with<host>(to, tolerance<T>, kernel, expect);
  };
  check(
      y,
      [&](auto& at, auto& r) {
        ordered_edge_multiply(at.queue, at.pattern(p), s, at(values.values), at(x), r.view());
      },
      [&](auto& r) { reference::edge_multiply(a, s, values.data(), x.view(), T{0}, r.view()); });
  check(
      y,
      [&](auto& at, auto& r) {
        T* const weights = at.template room<T>(values.values.size());
        ordered_edge_apply_multiply(at.queue, at.pattern(p), s, weight, weights, at(x), r.view());
      },
      [&](auto& r) {
        std::vector<T> weights(values.values.size());
        reference::edge_apply_multiply(a, s, weight, weights.data(), x.view(), T{0}, r.view());
      });
  for (const T beta : {T{0}, T{1}})
    check(
        values,
        [&](auto& at, auto& r) {
          ordered_edge_dot(at.queue, at.pattern(p), s, at(y), at(x), beta, r.data());
        },
        [&](auto& r) { reference::edge_dot(a, s, y.view(), x.view(), beta, r.data()); });
  check(
      dots,
      [&](auto& at, auto& r) {
        ordered_row_dot(at.queue, at.pattern(p), s.heads, at(values.values), at(others.values), r.view());
      },
      [&](auto& r) { reference::edge_row_dot(a, s.heads, values.data(), others.data(), r.view()); });
  const std::vector<T> ones(values.values.size(), T{1});
  check(
      dots,
      [&](auto& at, auto& r) {
        ordered_row_sum(at.queue, at.pattern(p), s.heads, at(values.values), r.view());
      },
      [&](auto& r) { reference::edge_row_dot(a, s.heads, values.data(), ones.data(), r.view()); });

  block<T> all = y, alone = y;
  const partita::device_queue<host> q(3);
  ordered_edge_multiply(q, a, s, values.data(), x.view(), all.view());
  for (local_index i = 0; i < m; ++i) {
    const partita::local::csr_view<T> row{1,         k,       a.offsets + i,
                                          a.columns, nullptr, a.offsets[i + 1] - a.offsets[i]};
    ordered_edge_multiply(q, row, s, values.data(), x.view(), alone.view().block(i, 0, 1, f));
  }
  CHECK(all.values == alone.values);
}

}  // namespace

TEST_CASE_TEMPLATE("cpu edges: ordered products", T, float, double) {
  for (const partita::local::head_slice s : {partita::local::head_slice{1, 41}, {3, 5}, {8, 8}, {9, 1}})
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {4, 0}, {1, 1}, {23, 19}, {301, 40}})
      check_ordered<T>(m, k, s);
}
TEST_CASE("cpu edges: ordered products refuse shapes that do not fit") {
  const sparse_block<double> p(4, 3);
  const block<double> x(3, 4, 1), narrow_one(3, 2, 1);
  block<double> y(4, 4, 2), values = edge_block(p, 2, 3);
  const partita::device_queue<host> q;
  CHECK_THROWS_AS(ordered_edge_multiply(q, p.pattern(), {2, 2}, values.data(), narrow_one.view(), y.view()),
                  partita::shape_error);
  CHECK_THROWS_AS(ordered_edge_dot(q, p.pattern(), {2, 2}, x.view(), x.view(), 0.0, values.data()),
                  partita::shape_error);
  CHECK_THROWS_AS(ordered_row_sum(q, p.pattern(), 2, values.data(), y.view()), partita::shape_error);
  CHECK_THROWS_AS(ordered_row_dot(q, p.pattern(), 2, values.data(), values.data(), y.view()),
                  partita::shape_error);
}

template <class T>
partita::on_host::exact_views<T> views_of(std::vector<block<double>>& levels) {
  partita::on_host::exact_views<T> views;
  for (std::size_t l = 0; l < views.size(); ++l) views[l] = levels[l].view();
  return views;
}

/// Each term is rounded by itself, whatever columns a vector has beside it.
TEST_CASE_TEMPLATE("cpu exact: sums of every width have the bits of terms one by one", T, float, double) {
  const sparse_block<T> p({3, 0, 40, 1, 17, 2, 9}, 13);
  const partita::local::csr_view<T> a = p.view();
  const auto grid = partita::base::exact_grid::of_products(1, 1, 512);
  const auto term = [](auto part, T x, T y) {
    double sum = 0;
    part.template add_product<T>(double{x}, double{y}, sum);
    return sum;
  };
  for (local_index n = 1; n <= 70; ++n) {
    CAPTURE(n);
    const partita::device_queue<host> q(1 + n % 3);
    const block<T> x(a.cols, n, 1), y(a.rows, n, 2), left(a.rows, 5, 3);
    CHECK(magnitude(q, y.view()) <= 0.5);
    constexpr std::size_t levels = partita::base::exact_sums<T>;
    std::vector<block<double>> before(levels, block<double>(a.rows, n, 4)),
        all_inner(levels, block<double>(5, n, 5));
    partita::base::for_exact_parts<T>(grid, [&](int level, auto part) {
      for (double& v : before[static_cast<std::size_t>(level)].values) v = part(v);
    });
    std::vector<block<double>> fresh = before, added = before;
    exact_spmm(q, a, x.view(), grid, 0.0, views_of<T>(fresh));
    exact_spmm(q, a, x.view(), grid, 1.0, views_of<T>(added));
    exact_inner(q, left.view(), y.view(), grid, views_of<T>(all_inner));
    partita::base::for_exact_parts<T>(grid, [&](int level, auto part) {
      const auto l = static_cast<std::size_t>(level);
      block<double>& inner = all_inner[l];
      block<double> columns(1, n, 6, 0);
      int wrong = 0;
      for (local_index i = 0; i < a.rows; ++i)
        for (local_index j = 0; j < n; ++j) {
          double sum = 0;
          for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
            sum += term(part, a.values[e], x.view()(a.columns[e], j));
          wrong += fresh[l].view()(i, j) != sum;
          wrong += added[l].view()(i, j) != before[l].view()(i, j) + sum;
        }
      exact_column_sums(q, y.view(), part, columns.data());
      for (local_index j = 0; j < n; ++j) {
        double all = 0;
        for (local_index i = 0; i < a.rows; ++i) all += part(double{y.view()(i, j)});
        wrong += columns.data()[j] != all;
        for (local_index k = 0; k < 5; ++k) {
          double sum = 0;
          for (local_index i = 0; i < a.rows; ++i) sum += term(part, left.view()(i, k), y.view()(i, j));
          wrong += inner.view()(k, j) != sum;
        }
      }
      CHECK(wrong == 0);
    });
  }
}
TEST_CASE("cpu exact: blocks of rows and panels of terms leave no row out") {
  const sparse_block<float> p(1100, 37);
  const partita::local::csr_view<float> a = p.view();
  const auto grid = partita::base::exact_grid::of_products(1, 1, 4096);
  const auto part = grid.coarse();
  for (const local_index n : {1, 5, 17, 33}) {
    const partita::device_queue<host> q(2);
    const block<float> x(a.cols, n, 1), y(a.rows, n, 2), left(a.rows, 3, 3);
    block<double> product(a.rows, n, 4), inner(3, n, 5);
    exact_spmm(q, a, x.view(), grid, 0, {product.view()});
    exact_inner(q, left.view(), y.view(), grid, {inner.view()});
    int wrong = 0;
    for (local_index j = 0; j < n; ++j) {
      for (local_index i = 0; i < a.rows; ++i) {
        double sum = 0;
        for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
          sum += part(double{a.values[e]} * double{x.view()(a.columns[e], j)});
        wrong += product.view()(i, j) != sum;
      }
      for (local_index k = 0; k < 3; ++k) {
        double sum = 0;
        for (local_index i = 0; i < a.rows; ++i)
          sum += part(double{left.view()(i, k)} * double{y.view()(i, j)});
        wrong += inner.view()(k, j) != sum;
      }
    }
    CHECK(wrong == 0);
  }
}
TEST_CASE_TEMPLATE("cpu exact: sums of the most units are exact, and those of what is not finite are NaN", T,
                   float, double) {
  // As many as the grid is for, and the largest there can be: together nearly 2^51 units.
  const local_index terms = 255, n = 11;
  const T most = std::nextafter(T(2), T(0));
  std::vector<local_index> offsets{0, 0, terms}, columns(terms, 0);
  for (const T sign : {T(1), T(-1)}) {
    const std::vector<T> values(terms, most), x(n, sign * most);
    const partita::local::csr_view<T> a{2, 1, offsets.data(), columns.data(), values.data(), terms};
    std::vector<block<double>> sums(partita::base::exact_sums<T>, block<double>(2, n, 1));
    const auto multiply = [&](const partita::base::exact_grid& grid) {
      exact_spmm(partita::device_queue<host>(), a, partita::matrix_view<const T>{x.data(), 1, n}, grid, 0.0,
                 views_of<T>(sums));
    };
    const auto grid = partita::base::exact_grid::of_products(double{most}, double{most}, terms);
    multiply(grid);
    partita::base::for_exact_parts<T>(grid, [&](int level, auto part) {
      double sum = 0;
      for (local_index e = 0; e < terms; ++e)
        part.template add_product<T>(double{most}, double{sign * most}, sum);
      for (local_index j = 0; j < n; ++j) {
        CHECK(sums[static_cast<std::size_t>(level)].view()(0, j) == 0);
        CHECK(sums[static_cast<std::size_t>(level)].view()(1, j) == sum);
      }
    });
    multiply(partita::base::exact_grid::of_products(std::numeric_limits<double>::infinity(), 1, terms));
    for (const block<double>& of_level : sums)
      for (local_index j = 0; j < n; ++j) {
        CHECK(of_level.view()(0, j) == 0);
        CHECK(std::isnan(of_level.view()(1, j)));
      }
    multiply(partita::base::exact_grid::of_products(1e300, 1e300, terms));  // whose C is infinite
    for (local_index j = 0; j < n; ++j) {
      CHECK(sums[0].view()(0, j) == 0);
      CHECK(std::isnan(sums[0].view()(1, j)));
    }
  }
}
TEST_CASE("cpu exact: the magnitude of what is not a number is infinite") {
  const partita::device_queue<host> q(2);
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<float> x(5000, -0.25F);
  const auto of = [&] { return magnitude(q, std::span<const float>(x)); };
  CHECK(of() == 0.25);
  x[4999] = -3;
  CHECK(of() == 3);
  x[17] = static_cast<float>(inf);
  CHECK(of() == inf);
  x[17] = std::numeric_limits<float>::quiet_NaN();
  CHECK(of() == inf);
  CHECK(magnitude(q, std::span<const float>()) == 0);
}
TEST_CASE_TEMPLATE("cpu edges: the gradient of a softmax with row sums of its own", T, float, double) {
  for (const local_index heads : {0, 1, 2, 3, 8, 9, 64, 65})
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {23, 19}, {2, 1000}})
      check_fused_gradient<T, host>(sparse_block<T>(m, k), m, k, heads);
}
TEST_CASE_TEMPLATE("cpu edges: rows of as many entries as scores are kept, and more", T, float, double) {
  for (const local_index heads : {1, 8, 64}) {
    const local_index kept = partita::on_host::edge_detail::buffered / heads;
    const sparse_block<T> p({kept - 1, 0, kept, kept + 1, 3 * kept + 5}, 77);
    check_fused_gradient<T, host>(p, 5, 77, heads);
    const scored<T> given(p, 5, 77, heads);
    agree_with<host>(
        block<T>(5, heads, 3), tolerance<T>,
        [&](auto& at, auto& y) {
          edge_log_sum(at.queue, at.pattern(p), heads, given.slope, at(given.source), at(given.target),
                       y.view());
        },
        [&](auto& y) {
          reference::edge_log_sum<T>(p.pattern(), heads, given.slope, given.source.view(),
                                     given.target.view(), y.view());
        });
  }
}
TEST_CASE_TEMPLATE("cpu edges: log sums of some heads have the bits of those of all", T, float, double) {
  const partita::device_queue<host> q(2);
  for (const local_index heads : {1, 3, 8, 12}) {
    const sparse_block<T> p({1000, 0, 300, 2500}, 2500);
    const scored<T> given(p, 4, 2500, heads);
    block<T> all(4, heads, 3), some(4, heads, 4);
    edge_log_sum(q, p.pattern(), heads, given.slope, given.source.view(), given.target.view(), all.view());
    for (local_index first = 0; first < heads; first += 2)
      for (const local_index count : {1, 2, 5}) {
        if (first + count > heads) continue;
        edge_log_sum(q, p.pattern(), count, given.slope, given.source.view().block(0, first, 2500, count),
                     given.target.view().block(0, first, 4, count), some.view().block(0, first, 4, count),
                     heads);
        for (local_index i = 0; i < 4; ++i)
          for (local_index h = first; h < first + count; ++h) CHECK(some.view()(i, h) == all.view()(i, h));
      }
  }
}
TEST_CASE_TEMPLATE("cpu edges: scores of vectors of heads", T, float, double) {
  for (const local_index heads : {2, 4, 17, 64, 65})
    for (const auto& [m, k] : std::vector<std::array<local_index, 2>>{{23, 19}, {2, 1000}})
      check_scores<T, host>(m, k, heads);
}
TEST_CASE_TEMPLATE("cpu edges: products of many whole heads", T, float, double) {
  for (const partita::local::head_slice s :
       {partita::local::head_slice{2, 8, 0}, {9, 8, 0}, {9, 8, 24}, {64, 8, 0}, {65, 16, 0}, {9, 33, 33}})
    for (const local_index left : {0, 1})
      check_products<T, host>(23, 19, s, (s.heads - left) * s.head_width - s.first_col);
}
TEST_CASE("cpu edges: a score of minus infinity has no weight, and a NaN spoils its row and head only") {
  const double infinity = std::numeric_limits<double>::infinity();
  const sparse_block<double> p({300, 2}, 300);
  const partita::local::csr_view<double> a = p.pattern();
  const partita::device_queue<host> q(2);
  block<double> source(300, 8, 1), target(2, 8, 2), log_sum(2, 8, 3), expected = log_sum;
  for (local_index e = a.offsets[0]; e < a.offsets[0] + 256; ++e) source.view()(a.columns[e], 3) = -infinity;
  edge_log_sum(q, a, 8, 0.2, source.view(), target.view(), log_sum.view());
  reference::edge_log_sum<double>(a, 8, 0.2, source.view(), target.view(), expected.view());
  CHECK(std::isfinite(expected.view()(0, 3)));
  CHECK(log_sum.view()(0, 3) == doctest::Approx(expected.view()(0, 3)).epsilon(1e-12));
  source.view()(a.columns[a.offsets[1]], 5) = std::numeric_limits<double>::quiet_NaN();
  edge_log_sum(q, a, 8, 0.2, source.view(), target.view(), log_sum.view());
  for (local_index h = 0; h < 8; ++h) CHECK(std::isnan(log_sum.view()(1, h)) == (h == 5));
}

TEST_CASE("cpu edges: products are adjoint to each other") { products_are_adjoint<host>(); }
TEST_CASE("cpu edges: gradients of softmax are differences") { gradients_of_softmax_are_differences<host>(); }
TEST_CASE("cpu edges: scores that overflow exp have a finite softmax") {
  large_scores_have_a_finite_softmax<host>();
}
TEST_CASE("cpu edges refuse shapes that do not fit") { edges_refuse_shapes(queues<host>()[1]); }
TEST_CASE_TEMPLATE("cpu aggregate: an infinite neighbour counts, and nothing below it does", T, float,
                   double) {
  an_infinite_neighbour_counts<T, host>();
}
TEST_CASE_TEMPLATE("cpu aggregate: a neighbour that is NaN counts", T, float, double) {
  a_neighbour_that_is_nan_counts<T, host>();
}
TEST_CASE_TEMPLATE("cpu edges: products of slices cut anywhere", T, float, double) {
  products_of_slices_cut_anywhere<T, host>();
}
TEST_CASE_TEMPLATE("cpu edges: scores and maps", T, float, double) { scores_and_maps<T, host>(); }
TEST_CASE_TEMPLATE("cpu aggregate: largest neighbours and the way back", T, float, double) {
  largest_neighbours<T, host>();
}
