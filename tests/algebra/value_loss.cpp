// SPDX-License-Identifier: Apache-2.0
// Losses and scores of values, by hand, and on meshes as on one rank.
#include "partita/algebra/value_loss.hpp"

#include "support/layers.hpp"
#include "support/summing.hpp"

namespace test_value_loss {

using namespace test_support;
using matrix = rows_matrix;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("losses of two counted vertices of three, by hand") {
  const auto m = alone();
  const matrix z = from(m, {3, 2}, {1, 2, 7, 7, 0, -3}), t = from(m, {3, 2}, {0.5, 2, none, none, 3, 0});
  matrix g(m, z.shape());  // errors: 0.5, 0, -3, -3
  CHECK(algebra::value_loss(z, t, g, algebra::squared_error{}) == (0.25 + 9 + 9) / 4);
  CHECK(values(g) == std::vector<double>{0.25, 0, 0, 0, -1.5, -1.5});
  CHECK(algebra::value_loss(z, t, g, algebra::absolute_error{}) == 6.5 / 4);
  CHECK(values(g) == std::vector<double>{0.25, 0, 0, 0, -0.25, -0.25});
  CHECK(algebra::value_loss(z, t, g, algebra::huber_error{2}) == (0.125 + 2 * (2 * (3 - 1.0))) / 4);
  CHECK(values(g) == std::vector<double>{0.125, 0, 0, 0, -0.5, -0.5});
}

TEST_CASE("scores by hand") {
  const auto m = alone();
  const matrix z = from(m, {4, 2}, {1, 5, 2, 5, 9, 9, 6, 5}),
               t = from(m, {4, 2}, {1, 5, 3, 5, none, none, 5, 5});
  const algebra::value_scores s = algebra::score_values(z, t);
  CHECK(s.root_mean_square == doctest::Approx(std::sqrt(2.0 / 6)).epsilon(1e-15));
  CHECK(s.mean_absolute == doctest::Approx(2.0 / 6).epsilon(1e-15));
  CHECK(s.r_squared == doctest::Approx((1 - 2.0 / 8 + 1) / 2).epsilon(1e-14));
  const matrix off = from(m, {1, 1}, {1}), target = from(m, {1, 1}, {2});
  CHECK(algebra::score_values(off, target).r_squared == 0);
  CHECK(std::isnan(algebra::score_values(off, from(m, {1, 1}, {none})).root_mean_square));
}

TEST_CASE("single targets may be missing, and equal ones leave no variance to explain") {
  const auto m = alone();
  const matrix z = from(m, {4, 2}, {1, 5, 2, 6, 3, 7, 4, 8}),
               t = from(m, {4, 2}, {2, 5, none, 5, none, 5, 5, 5});
  const algebra::value_scores s = algebra::score_values(z, t);  // errors: -1, -1; 0, 1, 2, 3
  CHECK(s.root_mean_square == doctest::Approx(std::sqrt(16.0 / 6)).epsilon(1e-15));
  CHECK(s.r_squared == doctest::Approx((1 - 2 / 4.5) / 2).epsilon(1e-14));
  matrix g(m, z.shape());
  CHECK(algebra::value_loss(z, t, g, algebra::squared_error{}) == doctest::Approx(16.0 / 6).epsilon(1e-15));
  const auto tenth =
      generate<vertex_rows, double>(m, {10, 1}, [](global_index, global_index) { return 0.1; });
  CHECK(algebra::score_values(tenth, tenth).r_squared == 1);
  CHECK(algebra::score_values(generate<vertex_rows, double>(m, {10, 1}, field(0)), tenth).r_squared == 0);
  CHECK_THROWS_WITH_AS(algebra::huber_error{-1}, doctest::Contains("not -1"), error);
}

TEST_CASE("losses and scores of an uneven matrix do not depend on the mesh") {
  const matrix_shape shape{23, 3};
  const auto target = [](global_index i, global_index j) { return i % 4 == 1 ? none : 3 * element(i, j, 1); };
  const auto found = [&](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, shape, field(0)),
               t = generate<vertex_rows, double>(m, shape, target);
    matrix g(m, shape);
    const double loss = algebra::value_loss(z, t, g, algebra::huber_error{0.5});
    const algebra::value_scores s = algebra::score_values(z, t);
    std::vector<double> all{loss, s.root_mean_square, s.mean_absolute, s.r_squared};
    for (const double x : collect(g)) all.push_back(x);
    return all;
  };
  const std::vector<double> wanted = found(alone());
  for (const mesh_shape mesh : some_meshes)
    on_mesh(mesh, [&](const host_mesh& m) { CHECK(largest_difference(found(m), wanted) < 1e-14); });
}

TEST_CASE("reproducible meshes give the same bits") {
  std::vector<std::vector<double>> found;
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{2, 1, 1}, mesh_shape{2, 3, 1}})
    on_threads(shape.places(), [&](const communicator& world) {
      const host_mesh m(world, shape, summing(summation::reproducible));
      const auto z = generate<vertex_rows, double>(m, {23, 3}, field(0)),
                 t = generate<vertex_rows, double>(m, {23, 3}, field(1));
      matrix g(m, z.shape());
      const double loss = algebra::value_loss(z, t, g, algebra::squared_error{});
      const algebra::value_scores s = algebra::score_values(z, t);
      if (world.rank() == 0) found.push_back({loss, s.root_mean_square, s.mean_absolute, s.r_squared});
    });
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
}

TEST_CASE("operands of other shapes are refused by the name of the verb") {
  const auto m = alone();
  const matrix z(m, {4, 3}), narrow(m, {4, 2});
  matrix g(m, {4, 3}), other(m, {4, 2});
  const auto loss = [&](const matrix& t, matrix& gradient) {
    (void)algebra::value_loss(z, t, gradient, algebra::squared_error{});
  };
  CHECK_THROWS_WITH_AS(loss(narrow, g), doctest::Contains("value_loss of values and targets needs"),
                       shape_error);
  CHECK_THROWS_WITH_AS(loss(z, other), doctest::Contains("value_loss of values and their gradient needs"),
                       shape_error);
  CHECK_THROWS_WITH_AS((void)algebra::score_values(z, narrow),
                       doctest::Contains("score_values of values and targets needs"), shape_error);
}

TEST_CASE("what has no loss is refused") {
  expect_error<error>({2, 1, 1}, "those of 5 x 3 have none", [](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, {5, 3}, [](global_index, global_index) { return none; });
    matrix g(m, {5, 3});
    (void)algebra::value_loss(z, z, g, algebra::squared_error{});
  });
}

}  // namespace test_value_loss
