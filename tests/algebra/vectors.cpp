// SPDX-License-Identifier: Apache-2.0
// Inner products, norms and updates, whole and column by column, on every layout, with what travels.
#include "partita/algebra/vectors.hpp"

#include "support/matrices.hpp"

namespace test_vectors {

using namespace test_support;

constexpr auto shapes = {matrix_shape{23, 10}, matrix_shape{19, 1}, matrix_shape{2, 3}, matrix_shape{5, 0},
                         matrix_shape{0, 4}};
constexpr double tolerance = 1e-13;

double column_dot(global_index j, global_index rows, std::uint64_t a, std::uint64_t b) {
  double total = 0;
  for (global_index i = 0; i < rows; ++i) total += element(i, j, a) * element(i, j, b);
  return total;
}
double whole_dot(matrix_shape size, std::uint64_t a, std::uint64_t b) {
  double total = 0;
  for (global_index j = 0; j < size.cols; ++j) total += column_dot(j, size.rows, a, b);
  return total;
}

traffic reduced(const host_mesh& m, layout l, global_index count) {
  return all_reduced(count, partition::rank_in_group(m.shape(), l.used(), m.at()), m.shape().size(l.used()));
}

auto numbers_of_columns(const host_mesh& m, matrix_shape size, std::uint64_t number) {
  return generate<replicated, double>(m, {1, size.cols}, field(number));
}

TEST_CASE("dot and norm of a whole matrix: the same bits on every rank") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1)), y = generate<double>(m, l, size, field(2));
    const double product = dot(x, y);
    CHECK(std::abs(product - whole_dot(size, 1, 2)) <= tolerance);
    same(heard(m), reduced(m, l, 1), "dot");
    m.ledger().clear();
    CHECK(std::abs(norm(x) - std::sqrt(whole_dot(size, 1, 1))) <= tolerance);
    same(heard(m), reduced(m, l, 1), "norm");
    double least_and_most[] = {-product, product};
    m.world().all_reduce(std::span<double>(least_and_most), reduction::max);
    CHECK(-least_and_most[0] == least_and_most[1]);
  });
}

TEST_CASE("dot and norm of columns") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1)), y = generate<double>(m, l, size, field(2));
    auto products = numbers_of_columns(m, size, 3);
    dot(x, y, products);
    same(heard(m), reduced(m, l, size.cols), "dot of columns");
    const auto expected = [&](global_index, global_index j) { return column_dot(j, size.rows, 1, 2); };
    check_equals(products, expected, tolerance, "dot of columns");
    norm(x, products);
    const auto length = [&](global_index, global_index j) {
      return std::sqrt(column_dot(j, size.rows, 1, 1));
    };
    check_equals(products, length, tolerance, "norm of columns");
  });
}

TEST_CASE("axpy by one number and by one a column, scale_columns") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1));
    auto y = generate<double>(m, l, size, field(2));
    const auto factors = numbers_of_columns(m, size, 3);
    axpy(-0.5, x, y);
    const auto once = [](auto i, auto j) { return element(i, j, 2) - 0.5 * element(i, j, 1); };
    check_equals(y, once, tolerance, "axpy");
    axpy(factors, x, y);
    const auto twice = [&](auto i, auto j) { return once(i, j) + element(0, j, 3) * element(i, j, 1); };
    check_equals(y, twice, tolerance, "axpy of columns");
    scale_columns(factors, y);
    check_equals(
        y, [&](auto i, auto j) { return twice(i, j) * element(0, j, 3); }, tolerance, "scale_columns");
    check_equals(x, field(1), 0, "X");
    CHECK(m.ledger().entries().empty());
  });
}

TEST_CASE("a vector and an update of itself") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    auto x = generate<double>(m, l, size, field(1));
    axpy(2, x, x);
    axpy(numbers_of_columns(m, size, 3), x, x);
    check_equals(
        x, [](auto i, auto j) { return 3 * element(i, j, 1) * (1 + element(0, j, 3)); }, tolerance, "axpy");
  });
}

TEST_CASE("float matrices are summed in double precision") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    const auto x =
        generate<float>(m, vertex_rows, {1001, 1}, [](auto i, auto) { return i == 0 ? 4096.0F : 1.0F; });
    CHECK(dot(x, x) == 16'778'216.0F);  // in single precision 2^24 + 1 is 2^24
  });
}

template <class T>
void norms_of_all_sizes() {
  using limits = std::numeric_limits<T>;
  const std::vector<T> sizes = {T(0), limits::denorm_min(), limits::min(),
                                T(1), limits::max() / 8,    limits::infinity()};
  on_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const auto width = std::ssize(sizes);
    const auto columns = generate<T>(m, layout{axis::row, axis::col}, {4, width},
                                     [&](auto, auto j) { return sizes[static_cast<std::size_t>(j)]; });
    host_dense<T, replicated> norms(m, {1, width});
    norm(columns, norms);
    for (std::size_t j = 0; j < sizes.size(); ++j) {
      const auto one =
          generate<T>(m, layout{axis::row, axis::col}, {4, 1}, [&](auto, auto) { return sizes[j]; });
      CHECK(norm(one) == 2 * sizes[j]);
      CHECK(norms.values()[j] == 2 * sizes[j]);
    }
  });
}
TEST_CASE("norms of huge and of tiny numbers") {
  norms_of_all_sizes<float>();
  norms_of_all_sizes<double>();
}

TEST_CASE("a NaN shows in every product") {
  on_mesh({2, 2, 1}, [](const host_mesh& m) {
    const auto one_bad = [](global_index i, global_index j) {
      return i == 3 && j == 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    };
    const auto x = generate<double>(m, layout{axis::row, axis::col}, {7, 3}, one_bad);
    dense<double, replicated, host> norms(m, {1, 3});
    norm(x, norms);
    CHECK(norms.values()[0] == std::sqrt(7.0));
    CHECK(std::isnan(norms.values()[1]));
    CHECK(std::isnan(norm(x)));
  });
}

TEST_CASE("operands that do not fit are named") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const auto x = generate<double>(m, vertex_rows, {7, 3}, field(1)),
               z = generate<double>(m, vertex_rows, {7, 4}, field(1));
    auto y = generate<double>(m, replicated, {7, 3}, field(1));
    dense<double, replicated, host> four(m, {1, 4});
    CHECK_THROWS_WITH_AS(dot(x, z), "dot needs operands of the same shape and blockings, not 7 x 3 and 7 x 4",
                         shape_error);
    CHECK_THROWS_AS(dot(x, y), shape_error);
    CHECK_THROWS_AS(axpy(1, x, y), shape_error);
    CHECK_THROWS_WITH_AS(dot(x, x, four),
                         "dot of 7 x 3 needs one number per column in a matrix of 1 x 3, not of 1 x 4",
                         shape_error);
    CHECK_THROWS_WITH_AS(norm(x, four),
                         "norm of 7 x 3 needs one number per column in a matrix of 1 x 3, not of 1 x 4",
                         shape_error);
    CHECK_THROWS_AS(axpy(four, y, y), shape_error);
    CHECK_THROWS_AS(scale_columns(four, y), shape_error);
  });
}

}  // namespace test_vectors
