// Max convolutions, layer normalisation and residual layers: by hand, by finite differences, at any number of
// ranks.
#include <doctest/doctest.h>

#include "examples/training/host.hpp"
#include "partita/comm/self.hpp"
#include "partita/nn/layer_norm.hpp"
#include "partita/nn/residual.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"

namespace test_layers {

using namespace partita;
using namespace test_support;

namespace {

using matrix = dense<double, vertex_rows, host>;
using builder = nn::builder<double, host>;
using convolution = nn::sage_max_conv<double, host>;

mesh<host> alone() { return mesh<host>(self::world(), {1, 1, 1}); }
matrix from(const mesh<host>& m, matrix_shape shape, const std::vector<double>& values) {
  return generate<vertex_rows, double>(m, shape, [&](global_index i, global_index j) {
    return values[static_cast<std::size_t>(i * shape.cols + j)];
  });
}
std::vector<double> values(const matrix& x) { return {x.values().begin(), x.values().end()}; }
/// Parameter i of those that were made with b.
void assign(const builder& b, std::size_t i, const std::vector<double>& values) {
  std::copy(values.begin(), values.end(), b.parameters()->list()[i].value().values().begin());
}

/// The edges, of which every rank has a share, as sage_max takes them.
sparse<double, dynamic_layout, host> edges_of(const mesh<host>& m, const policy& p, global_index n,
                                              const std::vector<triplet<double>>& edges) {
  return distribute(m, rows_of(p.sparse), {n, n}, share(edges, m.rank(), m.size()), symmetry::one_way);
}

/// Edges to 0 from 1, 2 and 3, to 2 from 0 and 1; vertices 1 and 3 have no in-neighbours.
sparse<double, dynamic_layout, host> four_vertices(const mesh<host>& m) {
  return edges_of(m, row_1d, 4, {{0, 3, 9.}, {0, 1, -1.}, {2, 1, 1.}, {0, 2, 1.}, {2, 0, 1.}});
}
const std::vector<double> four_features{1, -5, 2, -4, -1, -3, 2, -9};

/// Compares every gradient of the sum of (weights * layer(h)) with finite differences, and what one forward
/// and backward receive with what is predicted. Every rank must call.
void check_gradients(const builder& b, nn::layer<double, host>&& layer, matrix& h) {
  const auto& m = h.mesh();
  auto& set = *b.parameters();
  const auto weights = generate<vertex_rows, double>(m, {h.shape().rows, layer.width()},
                                                     [](auto i, auto j) { return element(j, i + 5); });
  matrix z = b.rows(layer.width()), dh(m, h.row_blocking(), h.col_blocking());
  m.ledger().clear();
  layer.forward(h, z, {});
  layer.backward(h, weights, &dh);
  same(heard(m), layer.predicted(), "one forward and backward");
  set.sum_gradients();
  const std::vector<double> gradient = collect(set.gradients()), whole = collect(dh);
  const auto slope = [&](double* entry) {  // null where other ranks have it
    const double before = entry ? *entry : 0, step = 1e-6;
    const auto loss = [&](double value) {
      if (entry) *entry = value;
      layer.forward(h, z, {});
      zip(z, weights, z, [](double a, double b) { return a * b; });
      return sum(z);
    };
    const double above = loss(before + step), below = loss(before - step);
    if (entry) *entry = before;
    return (above - below) / (2 * step);
  };
  for (std::size_t i = 0; i < gradient.size(); ++i)
    CHECK(slope(&set.values().values()[i]) == doctest::Approx(gradient[i]).epsilon(1e-6));
  for (global_index e = 0; e < static_cast<global_index>(whole.size()); e += 2) {
    const global_index v = e / h.shape().cols, j = e % h.shape().cols;
    double* const mine =
        h.row_range().contains(v)
            ? &h.values()[static_cast<std::size_t>((v - h.row_range().begin) * h.shape().cols + j)]
            : nullptr;
    CHECK(slope(mine) == doctest::Approx(whole[static_cast<std::size_t>(e)]).epsilon(1e-6));
  }
}

/// The same matrix in compressed rows.
sparse_rows<double, host> compressed(const matrix& h) {
  std::vector<triplet<double>> entries;
  for (global_index v = h.row_range().begin; v < h.row_range().end; ++v)
    for (local_index j = 0; j < h.local().cols; ++j) {
      const double x = h.local()(static_cast<local_index>(v - h.row_range().begin), j);
      if (x != 0) entries.push_back({v, j, x});
    }
  return {h.mesh(), h.row_blocking(), h.shape().cols, entries};
}

/// Checks that a layer gives the same for a matrix and for the same matrix in compressed rows.
void check_sparse_input(const builder& b, nn::layer<double, host>&& layer, const matrix& h) {
  const auto dz = generate<vertex_rows, double>(h.mesh(), {h.shape().rows, layer.width()}, field(0));
  matrix z = b.rows(layer.width());
  const auto run = [&](const auto& input) {
    layer.forward(input, z, {});
    layer.backward(input, dz, nullptr);
    std::vector<double> all = values(z);
    const std::vector<double> gradients = collect(b.parameters()->gradients());
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  };
  const std::vector<double> expected = run(h);
  CHECK(largest_difference(run(compressed(h)), expected) < 1e-13);
}

}  // namespace

TEST_CASE("sparse features are multiplied like the matrix that dropout leaves, in parts of few entries too") {
  for (const std::size_t most : {max_tile_entries, std::size_t{9}})
    on_threads(3, [&](const communicator& world) {
      const mesh<host> m(world, {1, 1, 3}, device_queue<host>(), most);
      const auto h = generate<vertex_rows, double>(m, {26, 11}, [](global_index i, global_index j) {
        return (i + 3 * j) % 4 == 1 ? element(i, j) : 0;
      });
      const auto g = generate<vertex_rows, double>(m, {26, 5}, field(0));
      const auto w = generate<replicated, double>(m, {11, 5}, field(0));
      const auto whole = compressed(h);
      auto dropped = whole.like();
      matrix left(m, h.shape()), written(m, h.shape()), y(m, g.shape()), expected(m, g.shape());
      dense<double, replicated, host> dw(m, w.shape()), expected_dw(m, w.shape());
      for (const double probability : {0.0, 0.5, 0.0}) {
        const dropout_mask mask{probability, {.seed = 4}};
        dropout(whole, dropped, mask);
        const auto& x = probability > 0 ? dropped : whole;
        dropout(h, left, mask);
        copy(x, written);
        CHECK(values(written) == values(left));
        gemm(x, w, y);
        gemm(left, w, expected);
        CHECK(largest_difference(values(y), values(expected)) < 1e-13);
        weight_gradient_part(x, g, dw);
        weight_gradient_part(left, g, expected_dw);
        CHECK(largest_difference({dw.values().begin(), dw.values().end()},
                                 {expected_dw.values().begin(), expected_dw.values().end()}) < 1e-13);
      }
      int parts = 0;
      for ([[maybe_unused]] const auto& part : whole.parts()) ++parts;
      for ([[maybe_unused]] const auto& part : whole.transposed_parts()) ++parts;
      CHECK((most < max_tile_entries ? parts > 4 : parts == 2));
    });
}

TEST_CASE("max convolution of four vertices, by hand") {
  const auto m = alone();
  const builder b(m, blocking::even(4, m.shape(), nesting::rows));
  b.filled("something before", {1, 1});
  convolution layer(four_vertices(m), 2, 1, b);
  assign(b, 1, {1, 10});
  assign(b, 2, {0.5});
  assign(b, 3, {100, 1000});
  const matrix h = from(m, {4, 2}, four_features), dz = from(m, {4, 1}, {1, 2, 3, 4});
  matrix z(m, {4, 1}), dh(m, {4, 2});
  layer.forward(h, z, {});
  CHECK(values(z) == std::vector<double>{-4927.5, -3799.5, -3137.5, -8799.5});
  layer.backward(h, dz, &dh);
  CHECK(collect(b.parameters()->gradients()) ==
        std::vector<double>{0, 2 + 3 * 2, -3 + 3 * -4, 10, 1 + 4 - 3 + 8, -5 - 8 - 9 - 36});
  CHECK(values(dh) == std::vector<double>{100, 1000, 204, 2030, 300, 3010, 400, 4000});
}

TEST_CASE("a layer norm of two rows, by hand") {
  const auto m = alone();
  const matrix h = from(m, {2, 2}, {1, 3, 4, 4}), dz = from(m, {2, 2}, {1, 0, 0, 1});
  const builder b(m, h.row_blocking());
  nn::layer_norm layer(2, b);
  CHECK(collect(b.parameters()->values()) == std::vector<double>{1, 1, 0, 0});
  assign(b, 0, {2, 3});
  assign(b, 1, {0.5, -1});
  matrix z(m, h.shape()), dh(m, h.shape());
  layer.forward(h, z, {});
  const double r = 1 / std::sqrt(1 + 1e-5), r0 = 1 / std::sqrt(1e-5);
  CHECK(largest_difference(values(z), {0.5 - 2 * r, 3 * r - 1, 0.5, -1}) < 1e-15);
  layer.backward(h, dz, &dh);
  CHECK(largest_difference(collect(b.parameters()->gradients()), {-r, 0, 1, 1}) < 1e-15);
  CHECK(largest_difference(values(dh), {r * (1 - r * r), r * (r * r - 1), -1.5 * r0, 1.5 * r0}) < 1e-12);
}

TEST_CASE("a residual dense layer, by hand") {
  const auto m = alone();
  const matrix h = from(m, {1, 2}, {1, 2}), dz = from(m, {1, 2}, {1, 1});
  const builder b(m, h.row_blocking());
  nn::residual layer(nn::linear(2, 2, b));
  assign(b, 0, {1, 2, 3, 4});
  assign(b, 1, {10, 20});
  matrix z(m, h.shape()), dh(m, h.shape());
  layer.forward(h, z, {});
  CHECK(values(z) == std::vector<double>{18, 32});
  layer.backward(h, dz, &dh);
  CHECK(values(dh) == std::vector<double>{4, 8});
  CHECK(collect(b.parameters()->gradients()) == std::vector<double>{1, 1, 2, 2, 1, 1});
}

TEST_CASE("gradients on a directed graph agree with finite differences, on every policy") {
  constexpr global_index n = 19;
  const auto edges = sparse_entries({n, n}, 4);
  for_each_mesh(std::array{4, 6}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const mesh<host> m(world, shape);
      const auto graph = edges_of(m, policy, n, edges);
      matrix h = generate<vertex_rows, double>(m, {n, 3}, field(0));
      const auto deep = [&] {  // in the middle of a model, where the input needs a gradient
        const builder b(m, h.row_blocking(), {.seed = 5});
        fill(b.filled("before", {1, 1}).value(), 1);
        return b;
      };
      const builder of_convolution = deep(), of_norm = deep(), of_residual = deep(), of_chain = deep();
      check_gradients(of_convolution, convolution(graph, 3, 2, of_convolution), h);
      nn::layer_norm layer(3, of_norm);
      assign(of_norm, 1, {0.5, -2, 3});
      check_gradients(of_norm, std::move(layer), h);
      check_gradients(of_residual, nn::residual(convolution(graph, 3, 3, of_residual)), h);
      nn::sequential net(of_chain);
      net.add(nn::linear(3, 4, of_chain)).add(nn::elu{}).add(nn::identity{}).add(nn::layer_norm(4, of_chain));
      net.add(nn::residual(convolution(graph, 4, 4, of_chain))).add(nn::elu{});
      check_gradients(of_chain, std::move(net), h);
    });
  });
}

TEST_CASE("a matrix and the same matrix in compressed rows are the same input") {
  constexpr global_index n = 19;
  const auto edges = sparse_entries({n, n}, 4);
  for_each_mesh(std::array{1, 6}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const mesh<host> m(world, shape);
      const auto graph = edges_of(m, policy, n, edges);
      const matrix h = generate<vertex_rows, double>(
          m, {n, 4}, [](auto i, auto j) { return (i + j) % 3 == 0 ? element(i, j) : 0; });
      const builder of_convolution(m, h.row_blocking()), of_norm(m, h.row_blocking()),
          of_residual(m, h.row_blocking());
      check_sparse_input(of_convolution, convolution(graph, 4, 2, of_convolution), h);
      check_sparse_input(of_norm, nn::layer_norm(4, of_norm), h);
      check_sparse_input(of_residual, nn::residual(convolution(graph, 4, 4, of_residual)), h);
    });
  });
}

TEST_CASE("sage with max aggregation trains as one rank does, on every policy and mesh") {
  const io::dataset d = directed_graph();
  for (double dropout : {0.5, 0.0}) {
    nn::training_options o;
    o.model = "sage";
    o.aggregation = nn::aggregation::max;
    o.hidden = {7};
    o.epochs = 6;
    o.dropout = dropout;
    o.seed = 42;
    const auto expected = nn::train_model<double>(alone(), d, o, row_1d);
    CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
    for_each_mesh(std::array{1, 4, 6, 9}, [&](auto policy, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const mesh<host> m(world, shape);
        std::vector<std::uint64_t> allocations;
        const auto r = nn::train_model<double>(m, d, o, policy, [&](const nn::epoch_report&) {
          allocations.push_back(m.queue().meter()->allocations());
        });
        CHECK(r.words_received.max_rank == r.predicted_words_received.max_rank);
        CHECK(r.words_received.total == r.predicted_words_received.total);
        CHECK(allocations[1] == allocations.back());
        for (std::size_t e = 0; e < r.epochs.size(); ++e)
          CHECK_MESSAGE(std::abs(r.epochs[e].loss - expected.epochs[e].loss) < 1e-9 * expected.epochs[e].loss,
                        std::string(policy.name), " on ", to_string(shape), ", epoch ", e + 1);
      });
    });
    o.aggregation = nn::aggregation::mean;
    const auto mean = nn::train_model<double>(alone(), d, o, row_1d);
    CHECK(mean.epochs.back().loss != expected.epochs.back().loss);
  }
}

TEST_CASE("layers that do not fit are errors of one sentence") {
  const auto m = alone();
  matrix three(m, {4, 3}), two(m, {4, 2});
  const builder b(m, three.row_blocking());
  nn::residual layer(nn::linear(3, 2, b));
  expect_error<shape_error>("as many features as it gives, not 3 to give 2",
                            [&] { layer.forward(three, two, {}); });
  expect_error<error>("an activation needs a layer before it", [&] { nn::sequential(b).add(nn::relu{}); });
  nn::training_options o;
  o.aggregation = nn::aggregation::max;
  const auto train = [&] { (void)nn::train_model<double>(m, directed_graph(), o, row_1d); };
  expect_error<error>("model gcn has no max aggregation", train);
  o.model = "sage";
  o.coupling = nn::coupling::decoupled;
  expect_error<error>("model sage has no decoupled form with max aggregation", train);
}

}  // namespace test_layers
