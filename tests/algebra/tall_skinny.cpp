// SPDX-License-Identifier: Apache-2.0
// Orthonormal columns on every layout: what Q and R promise for every condition and scale; traffic.
#include "partita/algebra/tall_skinny.hpp"

#include "support/matrices.hpp"

namespace test_tall_skinny {

using namespace test_support;

/// How Q and R are computed.
enum class way { cholesky, householder, either };

template <class T>
constexpr double eps = std::numeric_limits<T>::epsilon();

/// What this rank receives in a QR of X, which has f columns.
template <class T, layout L>
traffic words(const host_dense<T, L>& x, way by) {
  const auto& m = x.mesh();
  const layout l = x.layout(), wide = partition::full_width(l);
  const global_index f = x.shape().cols;
  const int p = m.shape().size(wide.rows), r = partition::rank_in_group(m.shape(), wide.rows, m.at());
  traffic v = redistributed(m.shape(), m.at(), x.row_blocking(), x.col_blocking(), l, wide) +
              redistributed(m.shape(), m.at(), x.row_blocking(), x.col_blocking(), wide, l) +
              2 * all_reduced(f * f, r, p);
  const auto height = [&](int q) {
    const coordinates at = partition::group_member(m.shape(), wide.rows, m.at(), q);
    return std::min(f, x.row_blocking().block(wide.rows, at).size());
  };
  if (by == way::householder && r > 0) v += {(height(r) + f) * f, 1};
  for (int q = 1; by == way::householder && r == 0 && q < p; ++q)
    if (height(q) > 0) v += {height(q) * f, 1};
  return v;
}

/// The largest |Q^T Q - I| and |X - Q R|, the latter relative to the largest element of each column.
struct deviations {
  double of_orthonormality = 0, of_product = 0;
};
deviations deviations_of(const std::vector<double>& x, const std::vector<double>& q,
                         const std::vector<double>& r, matrix_shape shape) {
  const auto [n, f] = shape;
  const auto at = [f = f](const std::vector<double>& a, global_index i, global_index j) {
    return a[static_cast<std::size_t>(i * f + j)];
  };
  const auto worst = [](double a, double b) { return b <= a ? a : b == b ? b : INFINITY; };
  deviations d;
  for (global_index i = 0; i < f; ++i)
    for (global_index j = 0; j < f; ++j) {
      double product = i == j ? -1 : 0;
      for (global_index k = 0; k < n; ++k) product += at(q, k, i) * at(q, k, j);
      d.of_orthonormality = worst(d.of_orthonormality, std::abs(product));
    }
  for (global_index j = 0; j < f; ++j) {
    double largest = 0, difference = 0;
    for (global_index i = 0; i < n; ++i) {
      double product = at(x, i, j);
      for (global_index k = 0; k < f; ++k) product -= at(q, i, k) * at(r, k, j);
      difference = worst(difference, std::abs(product));
      largest = std::max(largest, std::abs(at(x, i, j)));
    }
    d.of_product = worst(d.of_product, largest > 0 ? difference / largest : difference);
  }
  return d;
}

template <class T>
std::vector<double> as_double(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

/// Q and R of x: what they promise, by which way, and that a second run gives the same bits. Returns R.
template <class T, layout L>
std::vector<T> check_qr(const host_dense<T, L>& x, way by, bool singular = false) {
  const auto& m = x.mesh();
  const global_index n = x.shape().rows, f = x.shape().cols;
  m.ledger().clear();
  const auto [q, r] = qr(x);
  if (by != way::either)
    same(heard(m), words(x, by), "qr");
  else
    CHECK((heard(m) == words(x, way::cholesky) || heard(m) == words(x, way::householder)));
  const std::vector<T> of_x = collect(x), of_q = collect(q), of_r = collect(r);
  CHECK((q.layout() == x.layout() && q.row_blocking() == x.row_blocking() &&
         q.col_blocking() == x.col_blocking()));
  for (global_index i = 0; i < f; ++i) {
    const auto diagonal = of_r[static_cast<std::size_t>(i * f + i)];
    CHECK((singular ? diagonal >= 0 : diagonal > 0));
    for (global_index j = 0; j < i; ++j) CHECK(of_r[static_cast<std::size_t>(i * f + j)] == 0);
  }
  if (m.rank() == 0) {
    const auto d = deviations_of(as_double(of_x), as_double(of_q), as_double(of_r), x.shape());
    const double tolerance = 4 * eps<T> * std::sqrt(static_cast<double>(n * f));
    CHECK_MESSAGE((d.of_orthonormality <= tolerance && d.of_product <= tolerance), to_string(x.shape()),
                  " on mesh ", to_string(m.shape()), ", ", to_string(x.layout()), ": Q^T Q - I is ",
                  d.of_orthonormality, ", X - Q R is ", d.of_product);
  }
  const auto again = qr(x);
  CHECK(collect(again.q) == of_q);
  CHECK(collect(again.r) == of_r);
  const auto everywhere = m.world().all_gather(of_r);
  for (std::size_t i = 0; i < everywhere.size(); ++i) CHECK(everywhere[i] == of_r[i % of_r.size()]);
  return of_r;
}

/// Powers 0 to f - 1 of points in [0, 1]; with 18 columns the condition number is above 1e12.
auto vandermonde(global_index rows) {
  return [rows](global_index i, global_index j) {
    return std::pow(static_cast<double>(i + 1) / static_cast<double>(rows), static_cast<double>(j));
  };
}

constexpr auto few_meshes = {mesh_shape{1, 1, 1}, mesh_shape{2, 1, 1}, mesh_shape{2, 3, 1},
                             mesh_shape{2, 2, 2}};

TEST_CASE("qr: every layout, uneven blocks, fewer rows on a rank than columns") {
  for (const mesh_shape shape :
       {mesh_shape{1, 1, 1}, mesh_shape{3, 1, 1}, mesh_shape{2, 2, 1}, mesh_shape{2, 3, 2}})
    on_mesh(shape, [](const host_mesh& m) {
      for (const layout l : every_layout())
        for (const matrix_shape size :
             {matrix_shape{41, 5}, matrix_shape{7, 7}, matrix_shape{1, 1}, matrix_shape{6, 0}}) {
          const auto x = generate<double>(m, l, size, field(1));
          check_qr(x, way::cholesky);
        }
    });
}

TEST_CASE("qr: static layouts and both precisions") {
  for (const mesh_shape shape : few_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      check_qr(generate<vertex_rows, float>(m, {41, 5}, field(1)), way::cholesky);
      check_qr(generate<vertex_rows, double>(m, {41, 5}, field(1)), way::cholesky);
      check_qr(generate<grid_2d.dense, double>(m, {41, 5}, field(1)), way::cholesky);
      check_qr(generate<replicated, double>(m, {41, 5}, field(1)), way::cholesky);
    });
}

TEST_CASE("qr: blockings of one's own, with empty ranks") {
  for (const mesh_shape shape : {mesh_shape{4, 1, 1}, mesh_shape{2, 2, 2}})
    on_mesh(shape, [](const host_mesh& m) {
      std::vector<global_index> sizes(static_cast<std::size_t>(m.shape().row), 0);
      sizes.back() = 19;
      if (sizes.size() > 2) sizes[1] = 2;
      const blocking rows = blocking::given(sizes, m.shape(), nesting::rows),
                     cols = blocking::even(4, m.shape(), nesting::cols);
      for_each_layout([&](layout l) {
        check_qr(generate<double>(m, l, rows, cols, field(1)), way::cholesky);
        check_qr(generate<double>(m, l, rows, cols,
                                  [](global_index i, global_index) { return static_cast<double>(i + 1); }),
                 way::householder, true);
      });
    });
}

TEST_CASE("qr and gram with the products of CBLAS") {
  on_threads(4, [](const communicator& world) {
    const host_mesh m(world, {2, 2, 1}, device_queue<host>(2, blas_gemm()));
    const auto x = generate<vertex_rows, double>(m, {301, 37}, field(1));
    check_qr(x, way::cholesky);
    check_qr(generate<vertex_rows, double>(m, {60, 18}, vandermonde(60)), way::householder);
    const auto g = gram(x);
    for (local_index i = 0; i < 37; ++i)
      for (local_index j = 0; j < i; ++j) CHECK(g.local()(i, j) == g.local()(j, i));
  });
}

TEST_CASE("qr: what is known of R") {
  // R^T R = X^T X has one solution with a positive diagonal.
  on_mesh({2, 1, 2}, [](const host_mesh& m) {
    const auto x = generate<vertex_rows, double>(m, {41, 5}, field(1));
    std::vector<double> g = collect(gram(x));
    REQUIRE(lapack::cholesky(matrix_view<double>{g.data(), 5, 5, 5}));
    CHECK(largest_difference(check_qr(x, way::cholesky), g) < 1e-13);
  });
}

TEST_CASE("qr: ill-conditioned columns") {
  for (const mesh_shape shape : few_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      const matrix_shape size{60, 18};
      std::vector<double> values = whole(size, vandermonde(60)), u(60 * 18), v(18 * 18), sigma(18);
      lapack::svd(matrix_view<double>{values.data(), 60, 18, 18}, {u.data(), 60, 18, 18}, sigma,
                  {v.data(), 18, 18, 18});
      CHECK(sigma[0] / sigma[17] > 1e12);
      for_each_layout([&](layout l) {
        check_qr(generate<double>(m, l, size, vandermonde(60)), way::householder);
        check_qr(generate<double>(m, l, {60, 9}, vandermonde(60)), way::cholesky);
      });
      check_qr(generate<vertex_rows, float>(m, {60, 9}, vandermonde(60)), way::householder);
    });
}

TEST_CASE("qr: columns that are more and more alike") {
  // The second differs from the first by 10^-k, and the others have components along the difference.
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{2, 1, 2}})
    on_mesh(shape, [](const host_mesh& m) {
      for (int k = 0; k < 19; ++k)
        for (const std::uint64_t number : {1, 2, 3}) {
          const auto alike = [=](global_index i, global_index j) {
            return j != 1 ? element(i, j, number)
                          : element(i, 0, number) + std::pow(10.0, -k) * element(i, 1, number);
          };
          const way by = k < 7 ? way::cholesky : k < 10 ? way::either : way::householder;
          check_qr(generate<vertex_rows, double>(m, {41, 5}, alike), by, k > 15);
          check_qr(generate<vertex_rows, float>(m, {41, 5}, alike), way::either, k > 6);
        }
    });
}

TEST_CASE("qr: any scale, also of columns") {
  const auto scaled = [](double number) {
    return [number](global_index i, global_index j) { return number * element(i, j, 1); };
  };
  const auto graded = [](global_index i, global_index j) {
    return std::pow(10.0, static_cast<double>(4 * j)) * element(i, j, 1);
  };
  for (const mesh_shape shape : few_meshes)
    on_mesh(shape, [&](const host_mesh& m) {
      const matrix_shape size{41, 5};
      check_qr(generate<vertex_rows, double>(m, size, scaled(1e-140)), way::cholesky);
      check_qr(generate<vertex_rows, double>(m, size, scaled(1e-170)), way::householder);
      check_qr(generate<vertex_rows, double>(m, size, scaled(1e150)), way::cholesky);
      check_qr(generate<vertex_rows, double>(m, size, scaled(1e160)), way::householder);
      check_qr(generate<vertex_rows, double>(m, size, scaled(1e307)), way::householder);
      check_qr(generate<vertex_rows, float>(m, size, scaled(1e30)), way::householder);
      check_qr(generate<vertex_rows, double>(m, size, graded), way::cholesky);
    });
}

TEST_CASE("qr: singular") {
  const auto of_rank_2 = [](global_index i, global_index j) {
    return static_cast<double>((i + 1) % 7) + static_cast<double>(j) * static_cast<double>(i % 3);
  };
  const auto zero_column = [](global_index i, global_index j) { return j == 1 ? 0 : element(i, j, 1); };
  const auto zero = [](global_index, global_index) { return 0.0; };
  for (const mesh_shape shape : few_meshes)
    on_mesh(shape, [&](const host_mesh& m) {
      for_each_layout([&](layout l) {
        const matrix_shape size{23, 4};
        const auto r = check_qr(generate<double>(m, l, size, of_rank_2), way::householder, true);
        CHECK(std::abs(r[2 * 4 + 2]) < 1e-13 * r[0]);
        CHECK(std::abs(r[3 * 4 + 3]) < 1e-13 * r[0]);
        check_qr(generate<double>(m, l, size, zero_column), way::householder, true);
        check_qr(generate<double>(m, l, size, zero), way::householder, true);
      });
    });
}

TEST_CASE("qr: errors, on every rank") {
  expect_error<shape_error>({2, 1, 1}, "qr needs an X with at least as many rows as columns, not of 3 x 4",
                            [](const host_mesh& m) {
                              qr(generate<vertex_rows, double>(m, {3, 4}, field(1)));
                            });
  const std::string sentence =
      "qr: X of 23 x 4 has elements that are not finite, or columns whose norms overflow";
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double number : {std::nan(""), infinity, -infinity})
    for (const mesh_shape shape : few_meshes)
      on_mesh(shape, [&](const host_mesh& m) {
        const auto spoilt = [&](global_index i, global_index j) {
          return i == 21 && j == 2 ? number : element(i, j, 1);
        };
        for_each_layout([&](layout l) {
          const auto x = generate<double>(m, l, {23, 4}, spoilt);
          std::string said;
          try {
            qr(x);
          } catch (const error& e) {
            said = e.what();
          }
          CHECK(said == sentence);
        });
      });
}

}  // namespace test_tall_skinny
