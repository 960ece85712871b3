// SPDX-License-Identifier: Apache-2.0
// A reproducible mesh trains to the same bits under every policy, on every mesh, with any number of threads.
#include "laws/training_laws.hpp"
#include "support/matrices.hpp"

namespace test_reproducible {

using namespace partita;
using namespace test_support;

/// Edges with weights of many magnitudes, one of them thrice, besides a loop given twice.
io::dataset weighted_graph() {
  io::dataset d = directed_graph(53);
  for (std::size_t e = 0; e < d.edges.size(); ++e)
    d.edge_weights.edit()[e] *= std::exp2(static_cast<double>(e % 23) - 17);
  for (const double w : {0.1, 1e-9, 0.7}) {
    d.edges.push_back({3, 5});
    d.edge_weights.push_back(w);
    d.edges.push_back({7, 7});
    d.edge_weights.push_back(w / 3);
  }
  return d;
}

const io::dataset d = weighted_graph();

nn::training_options short_run(const char* model) {
  return of_model({.hidden = {7}, .hops = 4, .epochs = 3, .seed = 42}, model);
}

template <class T>
run_bits train(const mesh<host>& m, const io::dataset& d, const nn::training_options& o, const policy& p) {
  nn::trainer<T, host> t(m, d, o, nn::make_model<T>(m, d, o, p));
  run_bits result;
  for (int e = 1; e <= o.epochs; ++e) {
    m.ledger().clear();
    result.numbers.push_back(t.step(e));
  }
  CHECK(m.ledger().total() == t.predicted());
  result.add<T>(collect(t.evaluate()));
  result.add<T>(t.model().parameters().values().values());
  return result;
}

template <class T>
void expect_same_bits(const io::dataset& d, const nn::training_options& o, std::span<const int> ranks) {
  const run_bits expected = train<T>(reproducible_mesh(self::world(), {1, 1, 1}), d, o, row_1d);
  const run_bits fast = train<T>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
  CHECK(largest_difference(expected.numbers, fast.numbers) < 100 * std::numeric_limits<T>::epsilon());
  for_each_usual_mesh(ranks, [&](const policy& p, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const auto m = reproducible_mesh(world, shape, 1 + shape.col % 2);
      CHECK_MESSAGE(train<T>(m, d, o, p) == expected, o.model, ", ", sizeof(T), " bytes, ", where(p, shape));
    });
  });
}
/// With both precisions, on many meshes or on some.
void expect_same_bits(const nn::training_options& o, bool many) {
  if (many) {
    expect_same_bits<float>(d, o, std::array{1, 2, 3, 4, 6, 8, 9, 12});
    expect_same_bits<double>(d, o, std::array{1, 2, 3, 4, 6, 8, 9, 16});
  } else {
    expect_same_bits<float>(d, o, std::array{4, 9});
    expect_same_bits<double>(d, o, std::array{3, 8});
  }
}

TEST_CASE("gcn: the same bits under every policy, on every mesh") {
  expect_same_bits(short_run("gcn"), true);
}

TEST_CASE("sage, gin, sgc, appnp, gcnii and resgcn: the same bits") {
  for (const char* model : {"sage", "gin", "sgc", "appnp", "gcnii", "resgcn"})
    expect_same_bits(short_run(model), false);
}

TEST_CASE("sage with maxima over neighbours, of which many are equal: the same bits") {
  nn::training_options o = short_run("sage");
  o.aggregation = nn::aggregation::max;
  expect_same_bits(o, true);
}

TEST_CASE("gat with several heads, and with dropout of coefficients: the same bits") {
  nn::training_options o = short_run("gat");
  o.hidden = {6}, o.heads = 3, o.last_heads = 2;
  expect_same_bits(o, true);
}

TEST_CASE("gat with hops after its dense layers: the same bits") {
  nn::training_options o = short_run("gat");
  o.coupling = nn::coupling::decoupled, o.heads = 2, o.layers = 2;
  expect_same_bits(o, false);
}

TEST_CASE("sparse features: the same bits") {
  io::dataset d = weighted_graph();
  d.vertex_features = sparse_features(d.vertices, d.features);
  for (const char* model : {"gcn", "sage", "appnp", "gat"}) {
    expect_same_bits<float>(d, short_run(model), std::array{6});
    expect_same_bits<double>(d, short_run(model), std::array{4});
  }
}

TEST_CASE("an embedding and several labels per vertex: the same bits") {
  nn::training_options o = short_run("gcn");
  expect_same_bits<double>(with_several_labels(d), o, std::array{6});
  o.embedding = 3;
  expect_same_bits<float>(d, o, std::array{6});
}

TEST_CASE("training that cannot be reproducible says so") {
  const mesh<host> m = reproducible_mesh(self::world(), {1, 1, 1});
  nn::training_options o = short_run("gcn");
  o.pipeline.stages = 1;
  expect_error<error>("training on stages is not available", [&] {
    nn::train<float>(m, d, o, row_1d, {1, 1, 1});
  });
}

}  // namespace test_reproducible
