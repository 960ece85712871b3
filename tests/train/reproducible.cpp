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

/// The same with vectors and relations of edges, fewer vertices, most edges at one of them, and several
/// without any.
io::dataset typed_graph() {
  io::dataset d = directed_graph(25);
  for (global_index u = 3; u < 24; ++u) d.edges.push_back({u, 1});
  d.edges.push_back({2, 2});
  d.edge_weights = {};
  std::vector<double> values;
  std::vector<std::int64_t> types;
  std::erase_if(d.edges.edit(), [](const io::edge& e) { return e.source % 8 == 5 || e.target % 8 == 5; });
  for (std::size_t e = 0; e < d.edges.size(); ++e) {
    types.push_back(static_cast<std::int64_t>(e % 3));
    for (int k = 0; k < 2; ++k) values.push_back(std::exp2(static_cast<double>(e % 19) - 12) - k);
  }
  d.edge_features = {std::ssize(d.edges), 2, std::move(values)};
  d.edge_types = std::move(types);
  d.relations = 3;
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

/// Expects the bits of one rank under a policy on a mesh.
template <class T>
auto expectation_of_bits(const io::dataset& d, const nn::training_options& o) {
  const run_bits expected = train<T>(reproducible_mesh(self::world(), {1, 1, 1}), d, o, row_1d);
  const run_bits fast = train<T>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
  CHECK(largest_difference(expected.numbers, fast.numbers) < 100 * std::numeric_limits<T>::epsilon());
  return [&d, &o, expected](const policy& p, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const auto m = reproducible_mesh(world, shape, 1 + shape.col % 2);
      CHECK_MESSAGE(train<T>(m, d, o, p) == expected, o.model, ", ", sizeof(T), " bytes, ", where(p, shape));
    });
  };
}
template <class T>
void expect_same_bits(const io::dataset& d, const nn::training_options& o, std::span<const int> ranks) {
  for_each_usual_mesh(ranks, expectation_of_bits<T>(d, o));
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

TEST_CASE("relations, and attention and networks of edges with vectors: the same bits") {
  nn::training_options o = short_run("rgcn");
  o.hidden = {4}, o.heads = 2, o.layers = 2, o.epochs = 2;
  const io::dataset typed = typed_graph();
  const auto check = [&](const char* model, std::span<const int> in_floats, std::span<const int> in_doubles) {
    o.model = model;
    const auto floats = expectation_of_bits<float>(typed, o);
    const auto doubles = expectation_of_bits<double>(typed, o);
    const auto check_on = [](const auto& expectation, const policy& p, int ranks) {
      if (sees(ranks)) expectation(p, default_mesh(p, ranks));
    };
    for (const int ranks : in_floats) check_on(floats, row_1d, ranks);
    for (const int ranks : in_doubles) check_on(doubles, row_1d, ranks);
    check_on(floats, replicated_1_5d, 4);
    check_on(floats, feature_column, 3);
    check_on(doubles, grid_2d, 6);
    check_on(doubles, split_3d, 8);
  };
  constexpr std::array few{2, 9, 16}, some{3, 8, 16};
  constexpr std::array many{2, 3, 6, 8, 9, 16};
  for (const char* model : {"rgcn", "gatv2", "meshgraphnet"}) check(model, few, many);
  for (const char* model : {"rgat", "transformer"}) check(model, some, {});
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
