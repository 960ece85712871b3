// SPDX-License-Identifier: Apache-2.0
// Functions of single entries, on every layout, against the same function of the global indices.
#include "partita/algebra/elementwise.hpp"

#include "partita/base/function.hpp"
#include "support/matrices.hpp"

namespace test_elementwise {

using namespace test_support;

constexpr auto shapes = {matrix_shape{17, 9}, matrix_shape{2, 3}, matrix_shape{1, 1}, matrix_shape{6, 0},
                         matrix_shape{0, 4}};

/// body(mesh, layout, shape) on some meshes for some layouts; nothing may travel.
void everywhere(auto body) {
  on_some_layouts(shapes, [&](const host_mesh& m, layout l, matrix_shape size) {
    body(m, l, size);
    CHECK(m.ledger().entries().empty());
  });
}

double twice_less_one(double v) { return 2 * v - 1; }
double mixed(double a, double b) { return a - 3 * b; }
double placed(global_index i, global_index j, double v) { return static_cast<double>(100 * i + j) + v; }

TEST_CASE("functions that layers share") {
  static_assert(base::scaled<double>{3}(5) == 15);
  static_assert(base::linear_combination<float>{1, -2}(7, 3) == 1);
  static_assert(base::positive_part{}(-2.0) == 0 && base::positive_part{}(2.0F) == 2);
  static_assert(base::larger_of{}(2.0, 3.0) == 3 && base::larger_of{}(3.0F, -3.0F) == 3);
}

TEST_CASE("a copy") {
  everywhere([](const host_mesh& m, layout l, matrix_shape size) {
    auto x = generate<double>(m, l, size, field(1));
    const auto y = copy(x);
    fill(x, 3);
    check_equals(y, field(1), 0, "copy");
  });
}

TEST_CASE("map") {
  everywhere([](const host_mesh& m, layout l, matrix_shape size) {
    auto x = generate<double>(m, l, size, field(1));
    const auto expected = [](global_index i, global_index j) { return twice_less_one(element(i, j, 1)); };
    host_dense<> y(m, l, size);
    transform(x, y, twice_less_one);
    check_equals(y, expected, 0, "map");
    check_equals(x, field(1), 0, "X of map");
    transform(x, x, twice_less_one);
    check_equals(x, expected, 0, "map in place");
  });
}

struct step_of_three {
  constexpr void operator()(double x, double& a, double& b, double& c) const {
    a += x, b -= 2 * a, c = a * b;
  }
};

TEST_CASE("several matrices in one pass") {
  everywhere([](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1));
    auto a = generate<double>(m, l, size, field(2)), b = generate<double>(m, l, size, field(3)),
         c = generate<double>(m, l, size, field(4));
    algebra::update(x, step_of_three{}, a, b, c);
    const auto of_a = [](auto i, auto j) { return element(i, j, 2) + element(i, j, 1); };
    const auto of_b = [&](auto i, auto j) { return element(i, j, 3) - 2 * of_a(i, j); };
    check_equals(a, of_a, 0, "the first");
    check_equals(b, of_b, 0, "the second");
    check_equals(
        c, [&](auto i, auto j) { return of_a(i, j) * of_b(i, j); }, 0, "the third");
  });
}

TEST_CASE("zip") {
  everywhere([](const host_mesh& m, layout l, matrix_shape size) {
    auto a = generate<double>(m, l, size, field(1)), b = generate<double>(m, l, size, field(2));
    const auto expected = [](global_index i, global_index j) {
      return mixed(element(i, j, 1), element(i, j, 2));
    };
    host_dense<> y(m, l, size);
    zip(a, b, y, mixed);
    check_equals(y, expected, 0, "zip");
    check_equals(a, field(1), 0, "a of zip");
    check_equals(b, field(2), 0, "b of zip");
    zip(a, b, b, mixed);
    check_equals(b, expected, 0, "zip into b");
    zip(a, y, a, [](double u, double v) { return v - u; });
    check_equals(
        a, [&](global_index i, global_index j) { return expected(i, j) - element(i, j, 1); }, 0,
        "zip into a");
  });
}

TEST_CASE("transform_indexed: indices are those of the whole matrix") {
  everywhere([](const host_mesh& m, layout l, matrix_shape size) {
    auto x = generate<double>(m, l, size, field(1));
    const auto expected = [](global_index i, global_index j) { return placed(i, j, element(i, j, 1)); };
    host_dense<> y(m, l, size);
    transform_indexed(x, y, placed);
    check_equals(y, expected, 0, "transform_indexed");
    transform_indexed(x, x, placed);
    check_equals(x, expected, 0, "transform_indexed in place");
  });
}

TEST_CASE("add_row") {
  everywhere([](const host_mesh& m, layout l, matrix_shape size) {
    auto y = generate<double>(m, l, size, field(1));
    const auto bias = generate<replicated, double>(m, {1, size.cols}, field(2));
    add_row(bias, y);
    check_equals(
        y, [](global_index i, global_index j) { return element(i, j, 1) + element(0, j, 2); }, 0, "add_row");
    check_equals(bias, field(2), 0, "bias of add_row");
  });
}

TEST_CASE("elementwise: blockings of one's own, floats, several threads a rank") {
  on_mesh({2, 2, 1}, [](const host_mesh& outer) {
    const host_mesh m(outer.world(), outer.shape(), device_queue<host>(2));
    const blocking rows = blocking::given({1, 6}, m.shape(), nesting::rows);
    const blocking cols = blocking::given({5, 0}, m.shape(), nesting::cols);
    for_each_layout([&](layout l) {
      const auto x = generate<float>(m, l, rows, cols, field(1));
      host_dense<float> y(m, l, rows, cols);
      transform_indexed(
          x, y, [](global_index i, global_index j, float v) { return static_cast<float>(10 * i + j) + v; });
      check_equals(
          y,
          [](global_index i, global_index j) {
            return static_cast<float>(10 * i + j) + static_cast<float>(element(i, j, 1));
          },
          0, "transform_indexed of floats");
    });
  });
}

TEST_CASE("elementwise: operands that are not cut alike are named") {
  const auto refused = [](const std::string& message, auto act) {
    expect_error<shape_error>({2, 2, 1}, message, [&](const host_mesh& m) {
      auto a = generate<grid_2d.dense, double>(m, {5, 4}, field(1)),
           b = generate<grid_2d.dense, double>(m, {5, 3}, field(2)),
           tall = generate<grid_2d.dense, double>(m, {6, 4}, field(3));
      act(a, b, tall);
    });
  };
  refused("transform needs operands of the same shape and blockings, not 5 x 4 and 5 x 3",
          [](auto& a, auto& b, auto&) { transform(a, b, twice_less_one); });
  refused("transform needs operands of the same shape and blockings, not 5 x 4 and 6 x 4",
          [](auto& a, auto&, auto& tall) { transform(a, tall, twice_less_one); });
  refused("zip needs operands of the same shape and blockings, not 5 x 4 and 5 x 3",
          [](auto& a, auto& b, auto&) { zip(a, b, a, mixed); });
  refused("zip needs operands of the same shape and blockings, not 5 x 4 and 6 x 4",
          [](auto& a, auto&, auto& tall) { zip(a, a, tall, mixed); });
  refused("transform_indexed needs operands of the same shape and blockings, not 6 x 4 and 5 x 4",
          [](auto& a, auto&, auto& tall) { transform_indexed(tall, a, placed); });
  refused(
      "transform needs operands in the same layout, not (rows cut by row, columns by col) and (rows cut by",
      [](auto& a, auto&, auto&) {
        host_dense<> y(a.mesh(), vertex_rows, a.shape());
        transform(a, y, twice_less_one);
      });
  // Equal shapes, other cuts.
  refused(
      "transform needs operands of the same shape and blockings, not 5 x 4 and 5 x 4 with different "
      "blockings",
      [](auto& a, auto&, auto&) {
        const auto& m = a.mesh();
        host_dense<double, grid_2d.dense> other(m, blocking::given({1, 4}, m.shape(), nesting::rows),
                                                a.col_blocking());
        transform(a, other, twice_less_one);
      });
  for (const matrix_shape bias : {matrix_shape{1, 3}, matrix_shape{2, 4}, matrix_shape{4, 1}})
    refused(
        "a row of " + to_string(bias) + " cannot be added to every row of 5 x 4",
        [&](auto& a, auto&, auto&) { add_row(generate<replicated, double>(a.mesh(), bias, field(1)), a); });
}

}  // namespace test_elementwise
