// Layers by hand-computed numbers, by finite differences, and independent of the number of ranks.
#include <doctest/doctest.h>

#include "partita/algebra/loss.hpp"
#include "partita/comm/self.hpp"
#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/model.hpp"
#include "partita/nn/normalization.hpp"
#include "partita/nn/optimizer.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"

namespace test_nn {

using namespace partita;
using namespace test_support;

namespace {

mesh<host> alone() { return mesh<host>(self::world(), {1, 1, 1}); }
using matrix = dense<double, vertex_rows, host>;

matrix from(const mesh<host>& m, matrix_shape shape, std::vector<double> values) {
  return generate<vertex_rows, double>(m, shape, [&](global_index i, global_index j) {
    return values[static_cast<std::size_t>(i * shape.cols + j)];
  });
}
std::vector<double> values(const matrix& x) { return {x.values().begin(), x.values().end()}; }

}  // namespace

TEST_CASE("normalisation of two vertices and one weighted edge") {
  const std::vector<triplet<double>> edge{{1, 0, 3.0}};  // from 0 to 1
  const auto a = nn::gcn_normalized(self::world(), 2, edge);
  REQUIRE(a.size() == 3);
  CHECK(a[0] == triplet<double>{1, 0, 3.0 * (1 / std::sqrt(4.0))});
  CHECK(a[1] == triplet<double>{0, 0, 1.0});
  CHECK(a[2] == triplet<double>{1, 1, 0.25});
}

TEST_CASE("cross-entropy of two counted vertices of three") {
  const auto m = alone();
  const matrix z = from(m, {3, 2}, {0, 0, 5, 7, std::log(3.0), 0});
  const std::vector<global_index> label{0, -1, 1};
  const nn::vertex_labels<host> labels(m, z.row_blocking(),
                                   [&](global_index v) { return label[static_cast<std::size_t>(v)]; });
  matrix g(m, z.shape());
  CHECK(labels.counted() == 2);
  CHECK(nn::cross_entropy(z, labels, g) == doctest::Approx((std::log(2.0) + std::log(4.0)) / 2).epsilon(1e-14));
  CHECK(largest_difference(values(g), {-0.25, 0.25, 0, 0, 0.375, -0.375}) < 1e-15);
  CHECK(nn::accuracy(z, labels) == 0.5);
}

TEST_CASE("logistic loss of one counted vertex of two") {
  const auto m = alone();
  const matrix z = from(m, {2, 2}, {0, std::log(3.0), 9, 9}), t = from(m, {2, 2}, {1, 0, -1, -1});
  matrix g(m, z.shape());
  CHECK(nn::logistic_loss(z, t, 1, g) == doctest::Approx((std::log(2.0) + std::log(4.0)) / 2).epsilon(1e-14));
  CHECK(largest_difference(values(g), {-0.25, 0.375, 0, 0}) < 1e-15);
  const matrix huge = from(m, {1, 2}, {800, -800}), wrong = from(m, {1, 2}, {0, 1});
  matrix gradient(m, huge.shape());
  CHECK(nn::logistic_loss(huge, wrong, 1, gradient) == 800);
}

TEST_CASE("dropout keeps the mean, and neither it nor Glorot depends on ranks") {
  const auto m = alone();
  const matrix_shape shape{200, 50};
  const auto ones = generate<vertex_rows, double>(m, shape, [](auto, auto) { return 1; });
  matrix dropped(m, shape);
  const dropout_mask mask{0.3, {1, 2, 3}};
  dropout(ones, dropped, mask);
  CHECK(sum(dropped) / 10000 == doctest::Approx(1).epsilon(0.02));
  for (double v : dropped.values()) CHECK((v == 0 || v == 1 / 0.7));
  const auto made = [&](const mesh<host>& on) {
    const nn::builder<double, host> b(on, ones.row_blocking(), {.seed = 5});
    return collect(b.glorot("W", {30, 20}).value());
  };
  const std::vector<double> serial = values(dropped), weights = made(m);
  const double bound = std::sqrt(6.0 / 50);
  for (double w : weights) CHECK(std::abs(w) <= bound);
  CHECK(*std::max_element(weights.begin(), weights.end()) > 0.9 * bound);

  on_threads(6, [&](const communicator& world) {
    const mesh<host> six(world, {3, 2, 1});
    auto x = generate<vertex_rows, double>(six, shape, [](auto, auto) { return 1; });
    dropout(x, x, mask);
    CHECK(collect(x) == serial);
    CHECK(made(six) == weights);
  });
}

TEST_CASE("relu and dropout, forward and backward from the output alone") {
  const auto m = alone();
  const matrix x = from(m, {1, 4}, {-1, 2, 0, 3}), dy = from(m, {1, 4}, {10, 20, 30, 40});
  matrix y(m, x.shape()), dx(m, x.shape());
  const auto run = [&](const dropout_mask& mask) {
    transform(x, y, [](double v) { return v; });
    transform(dy, dx, [](double v) { return v; });
    nn::relu::forward(y, mask);
    nn::relu::backward(y, dx, mask);
  };
  run({});
  CHECK(values(y) == std::vector<double>{0, 2, 0, 3});
  CHECK(values(dx) == std::vector<double>{0, 20, 0, 40});
  const dropout_mask mask{0.5, {9, 1, 1}};
  run(mask);
  for (std::size_t i = 0; i < 4; ++i) {
    const double keep = y.values()[i] > 0 ? 2 : 0;
    CHECK(y.values()[i] == keep * std::max(0.0, x.values()[i]));
    CHECK(dx.values()[i] == keep * dy.values()[i]);
  }
}

TEST_CASE("one step of SGD and two of Adam, by hand") {
  nn::parameters<double, host> set(alone());
  auto &w = set.add("W", {1, 1}, 0.25), &b = set.add("b", {1, 1});
  const double& bias = b.value().values()[0];
  const auto reset = [&] {
    fill(set.values(), 2);
    fill(set.gradients(), 1);
  };
  reset();
  nn::sgd<double, host>(0.5).step(set);
  CHECK(w.value().values()[0] == 2 - 0.5 * 1.5);
  CHECK(bias == 1.5);
  reset();
  nn::adam<double, host> optimizer(0.1);
  optimizer.step(set);
  CHECK(bias == doctest::Approx(2 - 0.1 / (1 + 1e-8)).epsilon(1e-15));
  fill(b.gradient(), -2);
  optimizer.step(set);
  const double first = (0.9 * 0.1 - 0.1 * 2) / (1 - 0.81),
               second = (0.999 * 0.001 + 0.001 * 4) / (1 - 0.999 * 0.999);
  CHECK(bias ==
        doctest::Approx(2 - 0.1 / (1 + 1e-8) - 0.1 * first / (std::sqrt(second) + 1e-8)).epsilon(1e-13));
}

TEST_CASE("a loss without counted vertices is refused") {
  expect_error<error>("of logits of 5 x 3 none counts", [] {
    on_threads(2, [](const communicator& world) {
      const mesh<host> m(world, {2, 1, 1});
      const auto z = generate<vertex_rows, double>(m, {5, 3}, field(0));
      matrix g(m, {5, 3});
      (void)nn::cross_entropy(z, nn::vertex_labels<host>(m, z.row_blocking(), [](global_index) { return -1; }), g);
    });
  });
}

TEST_CASE("gradients of a gcn on a directed weighted graph agree with finite differences, on every policy") {
  const matrix_shape shape{19, 19};
  const auto entries = sparse_entries(shape, 4);
  for_each_mesh(std::array{4}, [&](auto policy, mesh_shape mesh_size) {
    on_threads(4, [&](const communicator& world) {
      const mesh<host> m(world, mesh_size);
      const auto mine = share(entries, m.rank(), m.size());
      const auto a = distribute(m, policy, shape, mine);
      const nn::vertex_labels<host> labels(m, a.row_blocking(),
                                       [](global_index v) { return v % 4 == 0 ? -1 : v % 3; });
      auto model = nn::convolutions<nn::gcn_conv>(a, {5, 4, 3}, {.seed = 11, .dropout = 0.4});
      const auto input = generate<vertex_rows, double>(m, {19, 5}, field(0));
      matrix g(m, {19, 3});
      const nn::pass training{.training = true, .epoch = 3};
      const auto loss = [&] { return nn::cross_entropy(model.forward(input, training), labels, g); };
      auto& set = model.parameters();
      for (std::size_t i : {1, 3})  // no biases of zero: rows of zeros in A would sit at the kink of relu
        fill(set.list()[i].value(), 0.1);
      (void)loss();
      model.backward(g);
      const std::vector<double> gradient = collect(set.gradients());
      const std::span<double> entries_of_set = set.values().values();
      for (std::size_t i = 0; i < gradient.size(); i += 3) {
        const double before = entries_of_set[i], h = 1e-6;
        entries_of_set[i] = before + h;
        const double above = loss();
        entries_of_set[i] = before - h;
        const double below = loss();
        entries_of_set[i] = before;
        CHECK((above - below) / (2 * h) == doctest::Approx(gradient[i]).epsilon(1e-5).scale(0.1));
      }
    });
  });
}

}  // namespace test_nn
