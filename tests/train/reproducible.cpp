// SPDX-License-Identifier: Apache-2.0
// A reproducible mesh trains to the same bits under every policy, on every mesh, with any number of threads.
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/meshes.hpp"

using namespace test_support;

namespace {

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

nn::training_options short_run(const char* model) {
  nn::training_options o{.model = model, .hidden = {7}};
  o.layers = o.model == "resgcn" ? 2 : 0;
  o.epochs = 3;
  o.hops = 4;
  o.seed = 42;
  return o;
}

/// Losses, parameters and logits after the run, as bits.
struct trained {
  std::vector<double> losses;
  std::vector<std::byte> bits;
  bool operator==(const trained&) const = default;
};

mesh<host> reproducible_mesh(const communicator& world, mesh_shape shape, int threads = 1) {
  return {world, shape, device_queue<host>(threads), summation::reproducible};
}

template <class T>
trained train(const mesh<host>& m, const io::dataset& d, const nn::training_options& o, const policy& p) {
  nn::trainer<T, host> t(m, d, o, nn::make_model<T>(m, d, o, p));
  trained result;
  for (int e = 1; e <= o.epochs; ++e) {
    m.ledger().clear();
    result.losses.push_back(t.step(e));
  }
  CHECK(m.ledger().total() == t.predicted());
  std::vector<T> values = collect(t.evaluate());
  const auto parameters = t.model().parameters().values().values();
  values.insert(values.end(), parameters.begin(), parameters.end());
  const auto bytes = std::as_bytes(std::span<const T>(values));
  result.bits.assign(bytes.begin(), bytes.end());
  return result;
}

template <class T>
void expect_same_bits(const io::dataset& d, const nn::training_options& o, std::span<const int> ranks) {
  const trained expected = train<T>(reproducible_mesh(self::world(), {1, 1, 1}), d, o, row_1d);
  const trained fast = train<T>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
  for (std::size_t e = 0; e < expected.losses.size(); ++e)
    CHECK(std::abs(expected.losses[e] - fast.losses[e]) < 100 * std::numeric_limits<T>::epsilon());
  for_each_usual_mesh(ranks, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const auto m = reproducible_mesh(world, shape, 1 + shape.col % 2);
      CHECK_MESSAGE(train<T>(m, d, o, policy) == expected, o.model, ", ", sizeof(T), " bytes, ",
                    std::string(policy.name), " on ", to_string(shape));
    });
  });
}

const io::dataset d = weighted_graph();

}  // namespace

TEST_CASE("gcn: the same bits under every policy, on every mesh") {
  expect_same_bits<float>(d, short_run("gcn"), std::array{1, 2, 3, 4, 6, 8, 9, 12});
  expect_same_bits<double>(d, short_run("gcn"), std::array{1, 2, 3, 4, 6, 8, 9, 16});
}

TEST_CASE("sage, gin, sgc, appnp, gcnii and resgcn: the same bits") {
  for (const char* model : {"sage", "gin", "sgc", "appnp", "gcnii", "resgcn"}) {
    expect_same_bits<float>(d, short_run(model), std::array{4, 9});
    expect_same_bits<double>(d, short_run(model), std::array{3, 8});
  }
}

TEST_CASE("sage with maxima over neighbours, of which many are equal: the same bits") {
  io::dataset d = weighted_graph();
  nn::training_options o = short_run("sage");
  o.aggregation = nn::aggregation::max;
  expect_same_bits<float>(d, o, std::array{1, 2, 3, 4, 6, 8, 9, 12});
  expect_same_bits<double>(d, o, std::array{1, 2, 3, 4, 6, 8, 9, 16});
}

TEST_CASE("gat with several heads, and with dropout of coefficients: the same bits") {
  io::dataset d = weighted_graph();
  nn::training_options o = short_run("gat");
  o.hidden = {6};
  o.heads = 3;
  o.last_heads = 2;
  expect_same_bits<float>(d, o, std::array{1, 2, 3, 4, 6, 8, 9, 12});
  expect_same_bits<double>(d, o, std::array{1, 2, 3, 4, 6, 8, 9, 16});
}

TEST_CASE("gat with hops after its dense layers: the same bits") {
  io::dataset d = weighted_graph();
  nn::training_options o = short_run("gat");
  o.coupling = nn::coupling::decoupled;
  o.heads = 2;
  o.layers = 2;
  expect_same_bits<float>(d, o, std::array{4, 9});
  expect_same_bits<double>(d, o, std::array{3, 8});
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
  io::dataset d = weighted_graph();
  nn::training_options o = short_run("gcn");
  o.embedding = 3;
  expect_same_bits<float>(d, o, std::array{6});
  d.multi_label = true;
  for (global_index v = 0; v < d.vertices; ++v)
    for (global_index c = 0; c < d.classes; ++c)
      d.label_matrix.push_back(static_cast<std::uint8_t>(random_bits(9, v, c) % 2));
  o.embedding = 0;
  expect_same_bits<double>(d, o, std::array{6});
}

TEST_CASE("training that cannot be reproducible says so") {
  const mesh<host> m = reproducible_mesh(self::world(), {1, 1, 1});
  nn::training_options o = short_run("gcn");
  o.pipeline.stages = 1;
  expect_error<error>("training on stages is not available", [&] {
    nn::train_on_stages<float>(m, d, o, row_1d, {1, 1, 1});
  });
}
