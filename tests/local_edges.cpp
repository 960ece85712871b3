// The host's kernels of the entries of a sparse pattern against the reference, adjoints against each other,
// and gradients against differences.
#include "support/edges.hpp"

using namespace test_support;

TEST_CASE_TEMPLATE("cpu edges: scores and maps", T, float, double) {
  for (const local_index heads : {0, 1, 3, 8, 9})
    for (const auto& [m, k] : std::vector<std::array<local_index, 2>>{
             {0, 0}, {0, 4}, {4, 0}, {1, 1}, {23, 19}, {2, 1000}, {3001, 400}}) {
      check_scores<T>(m, k, heads);
      check_maps<T>(m, k, heads);
    }
}

TEST_CASE_TEMPLATE("cpu edges: products of slices cut anywhere", T, float, double) {
  for (const local_index heads : {1, 3, 8})
    for (const local_index width : {1, 2, 4, 5, 8, 16, 33}) {
      const local_index all = heads * width;
      for (const local_index first : {0, 1, 7, 16})
        for (const local_index cut : {0, 1, 11})
          if (first + cut <= all) check_products<T>(23, 19, {heads, width, first}, all - first - cut);
    }
  for (const auto& [m, k] :
       std::vector<std::array<local_index, 2>>{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {2, 1000}, {3001, 400}})
    for (const head_slice s :
         {head_slice{1, 41, 3}, {3, 5, 2}, {8, 8, 0}, {8, 8, 12}, {2, 130, 5}, {9, 1, 0}})
      check_products<T>(m, k, s, s.heads * s.head_width - s.first_col);
}

TEST_CASE_TEMPLATE("cpu aggregate: largest neighbours and sums into rows", T, float, double) {
  for (const local_index f : {0, 1, 7, 16, 33, 64})
    for (const auto& [m, k] :
         std::vector<std::array<local_index, 2>>{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {23, 19}, {3001, 400}})
      check_max<T>(m, k, f);
}

TEST_CASE_TEMPLATE("cpu aggregate: an infinite neighbour counts, and nothing below it does", T, float,
                   double) {
  small_case c;
  const T infinity = std::numeric_limits<T>::infinity();
  block<T> x(3, 2, std::vector<T>(6, -infinity)), y(3, 2, 1, 0);
  std::vector<local_index> arg(6, 77);
  const matrix_view<local_index> where{arg.data(), 3, 2, 2};
  const csr_view<T> a{3, 3, c.offsets.data(), c.columns.data(), nullptr};
  host_kernels::max_aggregate(host_queue(2), a, x.view(), 0, true, y.view(), where);
  host_kernels::finish_max(host_queue(2), y.view(), matrix_view<const local_index>(where));
  CHECK(arg == std::vector<local_index>{0, 0, -1, -1, 1, 1});
  CHECK(y.values == std::vector<T>{-infinity, -infinity, 0, 0, -infinity, -infinity});
}

TEST_CASE("cpu edges: products are adjoint to each other") {
  const pattern p(301, 40);
  const csr_view<double> a = p.view<double>();
  const host_queue q(2);
  const head_slice s{8, 5, 3};
  block<double> x(40, 31, 1, 0), y(301, 31, 2, 0), values(p.entries(), 8, 3, 0);
  std::fill_n(values.values.begin(), 16, 0.0);
  block<double> ax = y, aty = x, dvalues = values;
  host_kernels::edge_multiply(q, a, s, values.data(), x.view(), 0.0, ax.view());
  host_kernels::edge_multiply_transposed(q, a, s, values.data(), y.view(), 0.0, aty.view());
  host_kernels::edge_dot(q, a, s, y.view(), x.view(), 0.0, dvalues.data());
  const double product = inner(ax.values, y.values);
  CHECK(std::abs(product) > 1e-3);
  CHECK(inner(x.values, aty.values) == doctest::Approx(product).epsilon(1e-12));
  CHECK(inner(values.values, dvalues.values) == doctest::Approx(product).epsilon(1e-12));
}

TEST_CASE("cpu edges: gradients of softmax are differences") {
  const pattern p(8, 6);
  const csr_view<double> a = p.view<double>();
  const host_queue q(2);
  const local_index heads = 3;
  block<double> source(6, heads, 1, 0), target(8, heads, 2, 0), log_sum(8, heads, 3, 0), row_dot = log_sum;
  block<double> weights(p.entries(), heads, 4, 0), alpha = weights, dscores = weights, scores = weights;
  std::fill_n(weights.values.begin(), 2 * heads, 0.0);
  const auto s = source.view(), t = target.view();
  const auto loss = [&] {
    host_kernels::edge_log_sum(q, a, heads, 0.2, s, t, log_sum.view());
    host_kernels::edge_softmax(q, a, heads, 0.2, s, t, log_sum.view(), alpha.data());
    return inner(alpha.values, weights.values);
  };
  const auto row_loss = [&] {
    host_kernels::edge_row_softmax(q, a, heads, scores.data(), alpha.data());
    return inner(alpha.values, weights.values);
  };
  const auto check_differences = [](numbers& at, const numbers& gradient, const auto& f, std::size_t from) {
    constexpr double step = 1e-6;
    for (std::size_t i = from; i < at.size(); ++i) {
      const double here = at[i];
      at[i] = here + step;
      const double above = f();
      at[i] = here - step;
      const double below = f();
      at[i] = here;
      CHECK(std::abs((above - below) / (2 * step) - gradient[i]) < 1e-8);
    }
  };
  loss();
  block<double> dsource = source, dtarget = target;
  host_kernels::edge_row_dot(q, a, heads, alpha.data(), weights.data(), row_dot.view());
  host_kernels::edge_softmax_gradient(q, a, heads, 0.2, s, t, log_sum.view(), weights.data(), row_dot.view(),
                                      0.0, dsource.view(), dtarget.view());
  CHECK(inner(dsource.values, dsource.values) > 1e-3);
  check_differences(source.values, dsource.values, loss, 0);
  check_differences(target.values, dtarget.values, loss, 0);
  row_loss();
  host_kernels::edge_row_softmax_gradient(q, a, heads, alpha.data(), weights.data(), dscores.data());
  check_differences(scores.values, dscores.values, row_loss, 2 * std::size_t{heads});
}

TEST_CASE("cpu edges: scores that overflow exp have a finite softmax") {
  small_case c;
  const host_queue q(2);
  block<double> source{3, 2, {1e4, -1e6, 0, -1e6, 1e4, -1e4}}, target{3, 2, numbers(6)};
  host_kernels::edge_log_sum(q, c.a, 2, 0.5, source.view(), target.view(), c.y.view());
  host_kernels::edge_softmax(q, c.a, 2, 0.5, source.view(), target.view(), c.y.view(), c.out.data());
  CHECK(distance(c.out, {-1, -1, 0.5, 0, 0.5, 1, 1, 1}) < 1e-9);
  const numbers in{0, 0, 1e4, -1e6, 1e4, -1e4, 1e4, 1e4};
  host_kernels::edge_row_softmax(q, c.a, 2, in.data(), c.out.data());
  CHECK(c.out == numbers{-1, -1, 0.5, 0, 0.5, 1, 1, 1});
}

TEST_CASE("cpu edges refuse shapes that do not fit") {
  small_case c;
  const host_queue q(2);
  block<double> four(4, 2, 1);
  std::vector<local_index> arg(8);
  const matrix_view<local_index> where{arg.data(), 4, 2, 2};
  const auto x = c.x.view(), y = c.y.view(), wrong = four.view();
  double* const out = c.out.data();
  CHECK_THROWS_AS(host_kernels::edge_scores(q, c.a, 2, 0.5, wrong, x, out), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_scores(q, c.a, 3, 0.5, x, x, out), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_log_sum(q, c.a, 2, 0.5, x, x, wrong), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_softmax(q, c.a, 2, 0.5, x, x, wrong, out), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_softmax_gradient(q, c.a, 2, 0.5, x, x, x, out, wrong, 0.0, y, y),
                  partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_row_dot(q, c.a, 2, out, out, wrong), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_multiply(q, c.a, {1, 2, 0}, out, wrong, 0.0, y), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_multiply_transposed(q, c.a, {1, 2, 0}, out, wrong, 0.0, y),
                  partita::shape_error);
  CHECK_THROWS_AS(host_kernels::edge_dot(q, c.a, {1, 2, 1}, x, x, 0.0, out), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::max_aggregate(q, c.a, x, 0, true, y, where), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::max_scatter(q, where, x, 0, y), partita::shape_error);
  try {
    host_kernels::edge_multiply(q, c.a, {2, 2, 3}, out, x, 0.0, y);
    FAIL("edge_multiply accepted columns of no head");
  } catch (const partita::shape_error& failure) {
    CHECK(std::string(failure.what()) == "edge_multiply: columns [3, 5) are not among 2 heads of 2");
  }
}
