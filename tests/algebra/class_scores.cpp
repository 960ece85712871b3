// SPDX-License-Identifier: Apache-2.0
// Confusion matrices and areas under ROC curves, by hand and beside every pair counted.
#include "partita/algebra/class_scores.hpp"

#include "support/layers.hpp"

namespace test_class_scores {

using namespace test_support;
using matrix = rows_matrix;

algebra::vertex_labels<host> labels_of(const host_mesh& m, const blocking& rows,
                                       const std::vector<global_index>& label) {
  return {m, rows, [&](global_index v) { return label[static_cast<std::size_t>(v)]; }};
}

TEST_CASE("a confusion matrix and its macro-F1, by hand") {
  const auto m = alone();
  const matrix z = from(m, {5, 3}, {1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2, 1, 9, 9, 9});
  const auto found = algebra::confusion(z, labels_of(m, z.row_blocking(), {0, 0, 1, 1, -1}));
  CHECK(found.counts == std::vector<global_index>{1, 1, 0, 1, 1, 0, 0, 0, 0});
  CHECK(found(1, 0) == 1);
  CHECK(found.macro_f1() == 0.5);  // class 2 is neither a label nor predicted
  const auto none = algebra::confusion(z, labels_of(m, z.row_blocking(), {-1, -1, -1, -1, -1}));
  CHECK(std::isnan(none.macro_f1()));
}

TEST_CASE("a label that is no class has no place in a confusion matrix") {
  const auto m = alone();
  const matrix z = from(m, {2, 2}, {1, 0, 0, 1});
  CHECK_THROWS_WITH_AS(algebra::confusion(z, labels_of(m, z.row_blocking(), {0, 7})),
                       doctest::Contains("vertex 1 has label 7 of 2 classes"), error);
}

TEST_CASE("labels of other rows have no place in a confusion matrix") {
  const auto m = alone();
  const matrix z = from(m, {2, 2}, {1, 0, 0, 1});
  const blocking one = blocking::even(1, m.shape(), nesting::rows);
  CHECK_THROWS_WITH_AS(algebra::confusion(z, labels_of(m, one, {0})),
                       doctest::Contains("labels of 1 rows were given for logits of 2 x 2"), shape_error);
}

TEST_CASE("a counted logit that is not a number has no place in a confusion matrix, on any rank") {
  expect_error<error>({2, 1, 1}, "those of 1 counted vertices are not", [](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, {5, 2}, [](global_index i, global_index) {
      return i < 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    });
    (void)algebra::confusion(z, labels_of(m, z.row_blocking(), {0, -1, 1, 1, 0}));
  });
}

TEST_CASE("an area under a ROC curve, by hand, with equal logits") {
  const auto m = alone();
  const matrix z = from(m, {5, 2}, {1, 0, 2, 0, 2, 0, 3, 0, 9, 9}),
               t = from(m, {5, 2}, {0, 1, 1, 1, 0, 1, 1, 1, -1, -1});
  CHECK(algebra::area_under_roc(z, t) == (1 + 0.5 + 1 + 1) / 4);  // the second column has no negatives
  CHECK(std::isnan(algebra::area_under_roc(z, from(m, {5, 2}, std::vector<double>(10, 1)))));
}

TEST_CASE("every mesh has the counts of one rank, and every pair of vertices is counted") {
  const matrix_shape shape{29, 3};
  const auto logit = [](global_index i, global_index j) { return std::round(8 * element(i, j, 3)); };
  const auto target = [](global_index i, global_index j) {
    return i % 5 == 2 ? -1.0 : static_cast<double>(partita::base::random_bits(5, i, j) % 2);
  };
  const auto label = [](global_index v) { return v % 4 == 3 ? -1 : v * v % 3; };
  double area = 0;
  for (global_index c = 0; c < shape.cols; ++c) {
    double right = 0, pairs = 0;
    for (global_index p = 0; p < shape.rows; ++p)
      for (global_index n = 0; n < shape.rows; ++n) {
        if (target(p, c) != 1 || target(n, c) != 0) continue;
        right += logit(p, c) > logit(n, c) ? 1 : logit(p, c) == logit(n, c) ? 0.5 : 0;
        ++pairs;
      }
    area += right / pairs;
  }
  area /= 3;
  std::vector<global_index> wanted(9);
  for (global_index v = 0; v < shape.rows; ++v) {
    if (label(v) < 0) continue;
    global_index best = 0;
    for (global_index c = 1; c < 3; ++c) best = logit(v, c) > logit(v, best) ? c : best;
    ++wanted[static_cast<std::size_t>(label(v) * 3 + best)];
  }
  for (const mesh_shape mesh : some_meshes)
    on_mesh(mesh, [&](const host_mesh& m) {
      const auto z = generate<vertex_rows, double>(m, shape, logit),
                 t = generate<vertex_rows, double>(m, shape, target);
      CHECK(algebra::area_under_roc(z, t) == area);
      CHECK(algebra::confusion(z, algebra::vertex_labels<host>(m, z.row_blocking(), label)).counts == wanted);
    });
}

TEST_CASE("a logit that is not a number has no place in a ROC curve, on any rank") {
  expect_error<error>({2, 1, 1}, "needs logits that are numbers", [](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, {5, 1}, [](global_index i, global_index) {
      return i == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    });
    (void)algebra::area_under_roc(
        z, generate<vertex_rows, double>(m, {5, 1}, [](global_index i, global_index) { return i % 2; }));
  });
}

}  // namespace test_class_scores
