// SPDX-License-Identifier: Apache-2.0
// Cross-entropy with label smoothing and class weights: torch's formula by hand, labels alone, and every
// mesh.
#include "partita/algebra/soft_targets.hpp"

#include "partita/algebra/loss.hpp"
#include "support/layers.hpp"
#include "support/summing.hpp"

namespace test_soft_targets {

using namespace test_support;
using matrix = rows_matrix;

const std::vector<double> logits{0.5, -1, 2, 3, 0, 1, 7, 7, 7, -2, 0.25, 1};
const std::vector<global_index> labels{2, 1, -1, 0};
global_index label_of(global_index v) { return labels[static_cast<std::size_t>(v)]; }

/// (1 - s) w_y nll + s / C sum over c of w_c nll_c, over the sum of w_y: torch.nn.functional.cross_entropy.
double by_hand(const std::vector<double>& weights, double s) {
  double loss = 0, total = 0;
  for (std::size_t v = 0; v < labels.size(); ++v) {
    if (labels[v] < 0) continue;
    const double* const z = logits.data() + 3 * v;
    const double log_sum = std::log(std::exp(z[0]) + std::exp(z[1]) + std::exp(z[2]));
    const auto y = static_cast<std::size_t>(labels[v]);
    loss += (1 - s) * weights[y] * (log_sum - z[y]);
    for (std::size_t c = 0; c < 3; ++c) loss += s / 3 * weights[c] * (log_sum - z[c]);
    total += weights[y];
  }
  return loss / total;
}

double soft_loss(const matrix& z, const algebra::target_options& how, matrix& gradient) {
  return algebra::soft_cross_entropy(
      z, algebra::soft_targets<double>(z.mesh(), z.row_blocking(), 3, label_of, how), gradient);
}

TEST_CASE("class weights and smoothing, by hand, with the gradient of finite differences") {
  const auto m = alone();
  matrix z = from(m, {4, 3}, logits), g(m, z.shape()), unused(m, z.shape());
  for (const double s : {0.0, 0.1})
    for (const std::vector<double>& w : {std::vector<double>{1, 1, 1}, {0.5, 2, 1}, {0, 3, 1}}) {
      const algebra::target_options how{s, w};
      CHECK(soft_loss(z, how, g) == doctest::Approx(by_hand(w, s)).epsilon(1e-14));
      for (std::size_t k = 0; k < logits.size(); ++k) {
        const double here = z.values()[k], step = 1e-6;
        z.values()[k] = here + step;
        const double above = soft_loss(z, how, unused);
        z.values()[k] = here - step;
        const double below = soft_loss(z, how, unused);
        z.values()[k] = here;
        CHECK(g.values()[k] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-7));
      }
    }
}

TEST_CASE("without options it is cross_entropy, on every mesh") {
  const matrix_shape shape{23, 5};
  const auto label = [](global_index v) { return v % 3 == 1 ? -1 : v * v % 5; };
  const auto logit = [](global_index i, global_index j) { return 40 * element(i, j, 4); };
  for (const mesh_shape mesh : some_meshes)
    on_mesh(mesh, [&](const host_mesh& m) {
      const auto z = generate<vertex_rows, double>(m, shape, logit);
      matrix g(m, shape), wanted(m, shape);
      const auto q = algebra::soft_targets<double>(m, z.row_blocking(), shape.cols, label);
      const double hard =
          algebra::cross_entropy(z, algebra::vertex_labels<host>(m, z.row_blocking(), label), wanted);
      CHECK(algebra::soft_cross_entropy(z, q, g) == doctest::Approx(hard).epsilon(1e-13));
      CHECK(largest_difference(values(g), values(wanted)) < 1e-15);
    });
}

TEST_CASE("reproducible meshes give the same bits") {
  std::vector<std::vector<double>> found;
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{2, 1, 1}, mesh_shape{2, 3, 1}})
    on_threads(shape.places(), [&](const communicator& world) {
      const host_mesh m(world, shape, summing(summation::reproducible));
      const auto z = generate<vertex_rows, double>(m, {23, 5}, field(2));
      matrix g(m, z.shape());
      const auto q = algebra::soft_targets<double>(m, z.row_blocking(), 5,
                                                   [](global_index v) { return v % 5; }, {.smoothing = 0.1});
      std::vector<double> all{algebra::soft_cross_entropy(z, q, g)};
      for (const double x : collect(g)) all.push_back(x);
      if (world.rank() == 0) found.push_back(all);
    });
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
}

TEST_CASE("logits that are far apart have finite losses") {
  const auto m = alone();
  const matrix z = from(m, {1, 3}, {2000, 0, -2000});
  matrix g(m, z.shape());
  const auto q = algebra::soft_targets<double>(m, z.row_blocking(), 3, [](global_index) { return 1; },
                                               {.smoothing = 0.3});
  CHECK(algebra::soft_cross_entropy(z, q, g) == doctest::Approx(0.8 * 2000 + 0.1 * 4000).epsilon(1e-14));
}

TEST_CASE("counts of classes and the weights that balance them") {
  const auto m = alone();
  const auto counts = algebra::class_counts(m, blocking::even(4, m.shape(), nesting::rows), 4, label_of);
  CHECK(counts == std::vector<global_index>{1, 1, 1, 0});
  const std::vector<global_index> uneven{6, 0, 3};
  CHECK(algebra::balanced_weights(uneven) == std::vector<double>{0.5, 0, 1});
}

TEST_CASE("options without a meaning are refused by what is wrong") {
  const auto m = alone();
  const auto says = [&](const algebra::target_options& how, const char* text) {
    CHECK_THROWS_WITH_AS(
        algebra::soft_targets<double>(m, blocking::even(4, m.shape(), nesting::rows), 3, label_of, how),
        doctest::Contains(text), error);
  };
  says({.smoothing = 1}, "in [0, 1), not 1");
  says({.class_weights = {1, 2}}, "2 class weights were given for 3 classes");
  says({.class_weights = {1, -2, 1}}, "a class weight is -2");
  says({.class_weights = {0, 0, 0}}, "together have weight 0");
  CHECK_THROWS_WITH_AS(algebra::class_counts(m, blocking::even(4, m.shape(), nesting::rows), 2, label_of),
                       doctest::Contains("vertex 0 has label 2 of 2 classes"), error);
  CHECK_THROWS_WITH_AS(algebra::class_counts(m, blocking::even(4, m.shape(), nesting::rows), 2,
                                             [](global_index v) { return -v; }),
                       "vertex 2 has label -2; one that is not counted has label -1", error);
  const matrix z = from(m, {4, 3}, logits), narrow(m, {4, 2});
  matrix g(m, z.shape()), other(m, {4, 2});
  CHECK_THROWS_WITH_AS(algebra::soft_cross_entropy(z, narrow, g),
                       doctest::Contains("soft_cross_entropy of logits and targets needs"), shape_error);
  CHECK_THROWS_WITH_AS(algebra::soft_cross_entropy(z, z, other),
                       doctest::Contains("soft_cross_entropy of logits and their gradient needs"),
                       shape_error);
}

}  // namespace test_soft_targets
