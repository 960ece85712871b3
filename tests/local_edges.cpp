// Kernels of the entries of a sparse pattern and of largest neighbours: the reference against numbers
// computed by hand, the host against the reference, adjoints against each other, and gradients against
// differences.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/local/kernels.hpp"
#include "partita/local/reference/kernels.hpp"

using partita::csr_view;
using partita::head_slice;
using partita::local_index;
using partita::matrix_view;
using host_kernels = partita::kernels<partita::host>;
using host_queue = partita::queue<partita::host>;
namespace reference = partita::reference;

namespace {

/// A block inside a larger allocation: the columns between `cols` and `stride` must survive every kernel.
template <class T>
struct block {
  std::vector<T> values;
  local_index rows, cols, stride;

  block(local_index rows, local_index cols, std::uint64_t seed, local_index gap = 3)
      : values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols + gap)),
        rows(rows),
        cols(cols),
        stride(cols + gap) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(partita::random_uniform(seed, static_cast<std::int64_t>(i), 7) - 0.5);
  }
  block(local_index rows, local_index cols, std::vector<T> values)
      : values(std::move(values)), rows(rows), cols(cols), stride(cols) {}
  matrix_view<T> view() { return {values.data(), rows, cols, stride}; }
  T* data() { return values.data(); }
  void poison() {
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) view()(i, j) = std::numeric_limits<T>::quiet_NaN();
  }
};

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double d = std::abs(double(a[i]) - double(b[i])) / (1 + std::abs(double(b[i])));
    worst = d <= worst ? worst : (d == d ? d : std::numeric_limits<double>::infinity());
  }
  return worst;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// A skewed pattern without values: row 0 is long, every third row is empty, offsets begin at 2.
struct pattern {
  local_index rows, cols;
  std::vector<local_index> offsets, columns{0, 0};

  pattern(local_index rows, local_index cols) : rows(rows), cols(cols), offsets{2} {
    for (local_index i = 0; i < rows; ++i) {
      const local_index length = cols == 0 || i % 3 == 1 ? 0 : i == 0 ? 3 * cols : 1 + i % 7;
      for (local_index e = 0; e < length; ++e)
        columns.push_back(
            static_cast<local_index>(partita::random_bits(5, i, e) % static_cast<std::uint64_t>(cols)));
      offsets.push_back(static_cast<local_index>(columns.size()));
    }
  }
  local_index entries() const { return static_cast<local_index>(columns.size()); }
  template <class T>
  csr_view<T> view() const {
    return {rows, cols, offsets.data(), columns.data(), nullptr};
  }
};

/// Runs `kernel(queue, y)` with several threads: all must agree with what `expect(y)` does, and in every bit
/// with each other.
template <class T, class Kernel, class Expect>
void agree(const block<T>& y, Kernel kernel, Expect expect) {
  block<T> expected = y;
  expect(expected);
  std::vector<T> first;
  for (const int threads : {1, 2, 3}) {
    block<T> result = y;
    kernel(host_queue(threads), result);
    INFO("rows ", y.rows, " cols ", y.cols, " threads ", threads);
    CHECK(distance(result.values, expected.values) < tolerance<T>);
    if (threads == 1) first = result.values;
    CHECK(same_bits(result.values, first));
  }
}

template <class T>
void check_scores(local_index m, local_index k, local_index heads) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  const T slope = T(0.2);
  block<T> source(k, heads, 1), target(m, heads, 2), edges(p.entries(), heads, 3, 0),
      u(p.entries(), heads, 4, 0);
  block<T> sums(m, heads, 5), log_sum(m, heads, 6), row_dot(m, heads, 7);
  for (T& v : source.values) v *= 20;
  const auto s = source.view(), t = target.view();
  INFO("m ", m, " k ", k, " heads ", heads);
  agree(
      edges, [&](auto q, auto& y) { host_kernels::edge_scores(q, a, heads, slope, s, t, y.data()); },
      [&](auto& y) { reference::edge_scores(a, heads, slope, s, t, y.data()); });
  agree(
      sums, [&](auto q, auto& y) { host_kernels::edge_log_sum(q, a, heads, slope, s, t, y.view()); },
      [&](auto& y) { reference::edge_log_sum(a, heads, slope, s, t, y.view()); });
  reference::edge_log_sum(a, heads, slope, s, t, log_sum.view());
  agree(
      edges,
      [&](auto q, auto& y) {
        host_kernels::edge_softmax(q, a, heads, slope, s, t, log_sum.view(), y.data());
      },
      [&](auto& y) { reference::edge_softmax(a, heads, slope, s, t, log_sum.view(), y.data()); });
  agree(
      sums,
      [&](auto q, auto& y) { host_kernels::edge_row_dot(q, a, heads, u.data(), edges.data(), y.view()); },
      [&](auto& y) { reference::edge_row_dot(a, heads, u.data(), edges.data(), y.view()); });
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    block<T> both(k + m, heads, 8);
    if (beta == 0) both.poison();
    const auto halves = [=](auto& y, auto gradient) {
      gradient(y.view().block(0, 0, k, heads), y.view().block(k, 0, m, heads));
    };
    agree(
        both,
        [&](auto q, auto& y) {
          halves(y, [&](auto ds, auto dt) {
            host_kernels::edge_softmax_gradient(q, a, heads, slope, s, t, log_sum.view(), u.data(),
                                                row_dot.view(), beta, ds, dt);
          });
        },
        [&](auto& y) {
          halves(y, [&](auto ds, auto dt) {
            reference::edge_softmax_gradient(a, heads, slope, s, t, log_sum.view(), u.data(), row_dot.view(),
                                             beta, ds, dt);
          });
        });
  }
}

template <class T>
void check_maps(local_index m, local_index k, local_index heads) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  block<T> edges(p.entries(), heads, 3, 0), u(p.entries(), heads, 4, 0), v(p.entries(), heads, 5, 0);
  const auto f = [](local_index i, local_index c, local_index h, T value) {
    return value * static_cast<T>((i + 3 * c + 5 * h) % 4);
  };
  INFO("m ", m, " k ", k, " heads ", heads);
  agree(
      edges, [&](auto q, auto& y) { host_kernels::edge_apply(q, a, heads, f, u.data(), y.data()); },
      [&](auto& y) { reference::edge_apply(a, heads, f, u.data(), y.data()); });
  agree(
      u, [&](auto q, auto& y) { host_kernels::edge_apply(q, a, heads, f, y.data(), y.data()); },
      [&](auto& y) { reference::edge_apply(a, heads, f, u.data(), y.data()); });
  agree(
      edges, [&](auto q, auto& y) { host_kernels::edge_row_softmax(q, a, heads, u.data(), y.data()); },
      [&](auto& y) { reference::edge_row_softmax(a, heads, u.data(), y.data()); });
  agree(
      u, [&](auto q, auto& y) { host_kernels::edge_row_softmax(q, a, heads, y.data(), y.data()); },
      [&](auto& y) { reference::edge_row_softmax(a, heads, y.data(), y.data()); });
  agree(
      edges,
      [&](auto q, auto& y) {
        host_kernels::edge_row_softmax_gradient(q, a, heads, u.data(), v.data(), y.data());
      },
      [&](auto& y) { reference::edge_row_softmax_gradient(a, heads, u.data(), v.data(), y.data()); });
  for (const bool left : {true, false})
    agree(
        u,
        [&](auto q, auto& y) {
          host_kernels::edge_row_softmax_gradient(q, a, heads, left ? y.data() : v.data(),
                                                  left ? v.data() : y.data(), y.data());
        },
        [&](auto& y) {
          reference::edge_row_softmax_gradient(a, heads, left ? u.data() : v.data(),
                                               left ? v.data() : u.data(), y.data());
        });
}

/// Columns [s.first_col, s.first_col + f) of x and y.
template <class T>
void check_products(local_index m, local_index k, head_slice s, local_index f) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  block<T> x(k, f, 1), y(m, f, 2, 1), values(p.entries(), s.heads, 3, 0);
  INFO("m ", m, " k ", k, " heads ", s.heads, " of ", s.head_width, " from ", s.first_col);
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    INFO("f ", f, " beta ", beta);
    block<T> to_x = x, to_y = y, to_values = values;
    if (beta == 0)
      for (block<T>* out : {&to_x, &to_y}) out->poison();
    if (beta == 0 && p.entries() > 2)
      std::fill(to_values.values.begin() + 2 * s.heads, to_values.values.end(),
                std::numeric_limits<T>::quiet_NaN());
    agree(
        to_y,
        [&](auto q, auto& r) {
          host_kernels::edge_multiply(q, a, s, values.data(), x.view(), beta, r.view());
        },
        [&](auto& r) { reference::edge_multiply(a, s, values.data(), x.view(), beta, r.view()); });
    agree(
        to_x,
        [&](auto q, auto& r) {
          host_kernels::edge_multiply_transposed(q, a, s, values.data(), y.view(), beta, r.view());
        },
        [&](auto& r) { reference::edge_multiply_transposed(a, s, values.data(), y.view(), beta, r.view()); });
    agree(
        to_values,
        [&](auto q, auto& r) { host_kernels::edge_dot(q, a, s, y.view(), x.view(), beta, r.data()); },
        [&](auto& r) { reference::edge_dot(a, s, y.view(), x.view(), beta, r.data()); });
  }
}

/// Two tiles with columns [7, 7 + k) and [7 + k, 7 + 2k), then the way back to one of them.
template <class T>
void check_max(local_index m, local_index k, local_index f) {
  const pattern p(m, k);
  const csr_view<T> a = p.view<T>();
  block<T> x(k, f, 1), x2(k, f, 2, 0), dy(m, f, 3, 1), both(2 * m, f, 4), dx(k, f, 5);
  for (block<T>* tile : {&x, &x2})
    for (T& v : tile->values) v = std::floor(v * 8);
  std::vector<local_index> indices(static_cast<std::size_t>(m) * static_cast<std::size_t>(f));
  const matrix_view<local_index> arg{indices.data(), m, f, f};
  INFO("m ", m, " k ", k, " f ", f);
  const auto second_half = [&](auto& r) {
    for (local_index i = 0; i < m; ++i)
      for (local_index j = 0; j < f; ++j) r.view()(m + i, j) = static_cast<T>(arg(i, j));
  };
  agree(
      both,
      [&](auto q, auto& r) {
        const auto y = r.view().block(0, 0, m, f);
        host_kernels::max_aggregate(q, a, x.view(), 7, true, y, arg);
        host_kernels::max_aggregate(q, a, x2.view(), 7 + k, false, y, arg);
        host_kernels::finish_max(q, y, matrix_view<const local_index>(arg));
        second_half(r);
      },
      [&](auto& r) {
        const auto y = r.view().block(0, 0, m, f);
        reference::max_aggregate(a, x.view(), 7, true, y, arg);
        reference::max_aggregate(a, x2.view(), 7 + k, false, y, arg);
        reference::finish_max(y, matrix_view<const local_index>(arg));
        second_half(r);
      });
  agree(
      dx, [&](auto q, auto& r) { host_kernels::max_scatter(q, arg, dy.view(), 7 + k, r.view()); },
      [&](auto& r) { reference::max_scatter<T>(arg, dy.view(), 7 + k, r.view()); });
  std::vector<local_index> rows;
  for (local_index i = 0; i < m && k > 0; ++i) rows.push_back((i * 7) % k);
  const block<T> from(m, f, 6, 0);
  agree(
      dx, [&](auto q, auto& r) { host_kernels::scatter_add_rows(q, from.values.data(), rows, r.view()); },
      [&](auto& r) { reference::scatter_add_rows(from.values.data(), rows, r.view()); });
}

template <class T>
double inner(const std::vector<T>& a, const std::vector<T>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += double{a[i]} * double{b[i]};
  return total;
}

/// Two heads of two columns; entries 1 and 2 are those of row 0 and entry 3 is that of row 2.
struct small_case {
  std::vector<local_index> offsets{1, 3, 3, 4}, columns{9, 0, 2, 1};
  csr_view<double> a{3, 3, offsets.data(), columns.data(), nullptr};
  std::vector<double> edges{-1, -1, 2, 3, 5, 7, 11, 13}, out{-1, -1, 0, 0, 0, 0, 0, 0};
  block<double> x{3, 2, {1, 2, 3, 4, 5, 6}}, y{3, 2, std::vector<double>(6, 100)};
};

using numbers = std::vector<double>;

}  // namespace

TEST_CASE("reference edges: scores, by hand") {
  small_case c;
  block<double> source{3, 2, {1, 2, 3, -4, -5, 6}}, target{3, 2, {1, -1, 0, 0, 2, -3}};
  reference::edge_scores(c.a, 2, 0.5, source.view(), target.view(), c.out.data());
  CHECK(c.out == numbers{-1, -1, 2, 1, -2, 5, 5, -3.5});
  reference::edge_log_sum(c.a, 2, 0.5, source.view(), target.view(), c.y.view());
  CHECK(distance(c.y.values, {2.0181499279, 5.0181499279, 0, 0, 5, -3.5}) < 1e-9);
  reference::edge_softmax(c.a, 2, 0.5, source.view(), target.view(), c.y.view(), c.out.data());
  CHECK(distance(c.out, {-1, -1, 0.98201379, 0.01798621, 0.01798621, 0.98201379, 1, 1}) < 1e-8);
  reference::edge_apply(
      c.a, 2, [](int i, int col, int h, double v) { return 1000 * i + 100 * col + 20 * h + v; },
      c.edges.data(), c.out.data());
  CHECK(c.out == numbers{-1, -1, 2, 23, 205, 227, 2111, 2133});
}

TEST_CASE("reference edges: softmax over rows and gradients, by hand") {
  small_case c;
  block<double> source{3, 2, numbers(6)}, target{3, 2, {1, -1, 9, 9, 2, -3}}, dsource{3, 2, numbers(6, 10)};
  block<double> log_sum{3, 2, {1, -0.5, 9, 9, 2, -1.5}}, row_dot{3, 2, {1, 1, 9, 9, 3, 5}};
  reference::edge_softmax_gradient(c.a, 2, 0.5, source.view(), target.view(), log_sum.view(), c.edges.data(),
                                   row_dot.view(), 0.5, dsource.view(), c.y.view());
  CHECK(dsource.values == numbers{6, 6, 13, 9, 9, 8});
  CHECK(c.y.values == numbers{55, 54, 50, 50, 58, 54});
  const numbers in{-1, -1, 0, std::log(3.0), std::log(3.0), std::log(5.0), 4, -4};
  reference::edge_row_softmax(c.a, 2, in.data(), c.out.data());
  CHECK(distance(c.out, {-1, -1, 0.25, 0.375, 0.75, 0.625, 1, 1}) < 1e-15);
  const numbers alpha{-1, -1, 0.25, 0.5, 0.75, 0.5, 1, 1}, dalpha{-1, -1, 4, 2, 8, 6, 9, 9};
  reference::edge_row_softmax_gradient(c.a, 2, alpha.data(), dalpha.data(), c.out.data());
  CHECK(c.out == numbers{-1, -1, -0.75, -1, 0.75, 1, 0, 0});
  reference::edge_row_dot(c.a, 2, alpha.data(), dalpha.data(), c.y.view());
  CHECK(c.y.values == numbers{7, 4, 0, 0, 9, 9});
}

TEST_CASE("reference edges: products of a slice that begins and ends inside a head, by hand") {
  small_case c;
  const head_slice s{2, 2, 1};
  reference::edge_multiply(c.a, s, c.edges.data(), c.x.view(), 0.5, c.y.view());
  CHECK(c.y.values == numbers{77, 98, 50, 50, 83, 102});
  block<double> to{3, 2, numbers(6, 10)};
  reference::edge_multiply_transposed(c.a, s, c.edges.data(), c.x.view(), 1.0, to.view());
  CHECK(to.values == numbers{12, 16, 65, 88, 15, 24});
  reference::edge_dot(c.a, s, c.x.view(), c.x.view(), 10.0, c.edges.data());
  CHECK(c.edges == numbers{-1, -1, 21, 34, 55, 82, 125, 154});
  reference::edge_dot(c.a, {2, 2, 2}, c.x.view(), c.x.view(), 0.0, c.edges.data());
  CHECK(c.edges == numbers{-1, -1, 0, 5, 0, 17, 0, 39});
}

TEST_CASE("reference aggregate: two tiles and the way back, by hand") {
  small_case c;
  block<double> first{3, 2, {1, 2, 7, 0, 1, 5}}, second{3, 2, {1, 9, -1, 3, 4, 4}};
  std::vector<local_index> arg(6, 77);
  const matrix_view<local_index> where{arg.data(), 3, 2, 2};
  reference::max_aggregate(c.a, first.view(), 10, true, c.y.view(), where);
  const double lowest = std::numeric_limits<double>::lowest();
  CHECK(c.y.values == numbers{1, 5, lowest, lowest, 7, 0});
  CHECK(arg == std::vector<local_index>{10, 12, -1, -1, 11, 11});
  reference::max_aggregate(c.a, second.view(), 20, false, c.y.view(), where);
  reference::finish_max(c.y.view(), matrix_view<const local_index>(where));
  CHECK(c.y.values == numbers{4, 9, 0, 0, 7, 3});
  CHECK(arg == std::vector<local_index>{22, 20, -1, -1, 11, 21});
  block<double> dx{3, 2, numbers(6, 10)};
  reference::max_scatter(matrix_view<const local_index>(where), c.x.view(), 20, dx.view());
  CHECK(dx.values == numbers{10, 12, 10, 16, 11, 10});
  const std::vector<local_index> rows{2, 0, 2};
  reference::scatter_add_rows(c.x.values.data(), rows, dx.view());
  CHECK(dx.values == numbers{13, 16, 10, 16, 17, 18});
}

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
