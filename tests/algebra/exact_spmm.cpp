// SPDX-License-Identifier: Apache-2.0
// On a reproducible mesh A X and A^T X have the same bits everywhere, with the closed form's words.
#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/gemm.hpp"
#include "partita/algebra/reductions.hpp"
#include "partita/algebra/row_products.hpp"
#include "partita/algebra/vectors.hpp"
#include "partita/comm/self.hpp"
#include "support/spmm_problems.hpp"
#include "support/summing.hpp"

namespace test_exact_spmm {

using namespace test_support;

struct problem {
  matrix_shape shape{37, 29};  // of A
  global_index width = 5;

  template <class T>
  std::vector<triplet<T>> entries() const {
    std::vector<triplet<T>> all;
    for (const auto& e : sparse_entries(shape))
      all.push_back(
          {e.row, e.col, static_cast<T>(std::ldexp(e.value, static_cast<int>((e.row + e.col) % 19)))});
    return all;
  }
};

/// 3 A X + 2 Y or, transposed, 3 A^T X + 2 Y, on every rank.
template <class T>
std::vector<T> product_on(const communicator& world, mesh_shape shape, const policy& named, bool transpose,
                          symmetry kind, spmm_options options) {
  const problem p;
  const mesh<host> m(world, shape, summing(summation::reproducible, 1 + shape.row % 2), 40);
  const auto entries = p.entries<T>();
  const auto stored = distribute(m, named, p.shape, share(entries, m), kind);
  const auto a = transpose ? transposed(stored) : stored;
  const blocking features = blocking::even(p.width, shape, nesting::cols);
  const auto x = generate<T>(m, named.dense, a.col_blocking(), features, field(0));
  auto y = generate<T>(m, named.dense, a.row_blocking(), features, field(1));
  spmm_plan plan(a, x, options);
  plan(3, x, 2, y);
  run_as_predicted(m, plan, 1, x, 0, y);
  plan(3, x, 2, y);
  return collect(y);
}

template <class T>
void expect_one_result(bool transpose) {
  const auto expected = product_on<T>(self::world(), {1, 1, 1}, row_1d, transpose, symmetry::general, {});
  on_usual_meshes(std::array{2, 6, 8, 9}, [&](const host_mesh& m, const partita::policy& policy) {
    for (const spmm_options& o : every_option)
      for (const symmetry kind : {symmetry::general, symmetry::one_way})
        CHECK_MESSAGE((product_on<T>(m.world(), m.shape(), policy, transpose, kind, o) == expected),
                      std::string(policy.name), " on ", to_string(m.shape()));
  });
}

TEST_CASE("float: A X and A^T X have the same bits everywhere") {
  expect_one_result<float>(false);
  expect_one_result<float>(true);
}

TEST_CASE("double: A X and A^T X have the same bits everywhere") {
  expect_one_result<double>(false);
  expect_one_result<double>(true);
}

TEST_CASE("products are those of a fast mesh, to rounding") {
  const problem p;
  const mesh<host> exact(self::world(), {1, 1, 1}, summing(summation::reproducible));
  const mesh<host> fast(self::world(), {1, 1, 1});
  const auto on = [&](const mesh<host>& m) {
    const auto a = distribute(m, row_1d, p.shape, p.entries<double>());
    return collect(spmm(a, generate<double>(m, row_1d.dense, {p.shape.cols, p.width}, field(0))));
  };
  CHECK(largest_difference(on(exact), on(fast)) < 1e-14 * 0x1p19);
}

TEST_CASE("a product with what is not finite is not a number") {
  const mesh<host> m(self::world(), {1, 1, 1}, summing(summation::reproducible));
  const std::vector<triplet<double>> entries{{0, 0, 1.0}, {1, 1, 1.0}};
  const auto a = distribute(m, row_1d, {2, 2}, entries);
  const auto x = generate<double>(m, row_1d.dense, {2, 1}, [](auto i, auto) { return i == 0 ? NAN : 1.0; });
  CHECK(std::isnan(collect(spmm(a, x))[0]));
}

TEST_CASE("sums and column sums have the same bits everywhere; what sums otherwise throws") {
  const matrix_shape shape{41, 7};
  const auto value = [](global_index i, global_index j) { return std::ldexp(field(2)(i, j), int(i % 31)); };
  std::vector<double> sums;
  const auto check = [&](const communicator& world, mesh_shape on, bool first) {
    const mesh<host> m(world, on, summing(summation::reproducible));
    auto x = generate<double>(m, {axis::row, axis_set(axis::col)}, shape, value);
    dense<double, replicated, host> columns(m, matrix_shape{1, shape.cols});
    column_sums(x, columns);
    std::vector<double> found(columns.values().begin(), columns.values().end());
    found.push_back(sum(x));
    if (first) sums = found;
    CHECK(found == sums);
    const char* const what = "is not available on a reproducible mesh";
    expect_error<error>(what, [&] { dot(x, x); });
    expect_error<error>(what, [&] { inner(x, x); });
    expect_error<error>(what, [&] { row_softmax(x, x); });
  };
  check(self::world(), {1, 1, 1}, true);
  for (const mesh_shape on : {mesh_shape{2, 1, 1}, mesh_shape{2, 3, 1}, mesh_shape{1, 4, 2}})
    on_threads(on.size(), [&](const communicator& world) { check(world, on, false); });
}

/// X^T G, its column sums and the sum of X, of rows dealt to the ranks somehow, on parts of a mesh.
template <class T>
std::vector<double> sums_of_parts(const communicator& world) {
  const mesh<host> m(world, {world.size(), 1, 1}, summing(summation::reproducible));
  const auto part = mesh<host>::alone(m);
  std::vector<global_index> mine;
  for (global_index v = 0; v < 43; ++v)
    if (v * v % world.size() == world.rank()) mine.push_back(v);
  const auto value = [&](std::uint64_t of) {
    return [&mine, of](global_index i, global_index j) {
      const global_index v = mine[static_cast<std::size_t>(i)];
      return std::ldexp(field(of)(v, j), static_cast<int>(v % 31));
    };
  };
  const auto x = generate<vertex_rows, T>(part, {std::ssize(mine), 5}, value(3));  // (rows here, 5)
  const auto g = generate<vertex_rows, T>(part, {std::ssize(mine), 3}, value(4));  // (rows here, 3)
  dense<T, replicated, host> dw(part, matrix_shape{5, 3}), db(part, matrix_shape{1, 3});
  m.ledger().clear();
  algebra::weight_gradient_part(x, g, dw, &db);
  traffic expected = global_index{2} * algebra::detail::predicted_grid(part);
  for (const global_index elements : {15, 3})
    expected += algebra::detail::predicted_all_reduce(part, base::exact_sums<T> * elements);
  CHECK(m.ledger().total() == expected);
  std::vector<double> all(dw.values().begin(), dw.values().end());
  all.insert(all.end(), db.values().begin(), db.values().end());
  all.push_back(sum(x));
  return all;
}

TEST_CASE("on parts of a mesh sums over rows are those of all ranks' rows, whoever has which") {
  std::vector<double> single, twice;
  on_threads(1, [&](const communicator& world) {
    single = sums_of_parts<float>(world);
    twice = sums_of_parts<double>(world);
  });
  on_every_rank_count([&](const communicator& world) {
    CHECK(sums_of_parts<float>(world) == single);
    CHECK(sums_of_parts<double>(world) == twice);
  });
}

}  // namespace test_exact_spmm
