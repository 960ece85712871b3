// SPDX-License-Identifier: Apache-2.0
// Training does not depend on the policy, the mesh or the number of ranks.

#include "laws/training_laws.hpp"
#include "partita/compiled/algebra.hpp"

using namespace test_support;

namespace {

nn::training_options short_run(const char* model = "gcn", int epochs = 8) {
  return of_model({.hidden = {7}, .epochs = epochs, .dropout = 0.5, .seed = 42}, model);
}

constexpr const char* every_model[] = {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii", "resgcn"};
const io::dataset d = directed_graph();

}  // namespace

TEST_CASE("with dropout on, every epoch's loss and accuracy is the serial one, on every policy") {
  const nn::training_result expected = serial(d, short_run());
  REQUIRE(expected.epochs.size() == 8);
  CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
  check_everywhere(d, short_run(), rank_counts);
}

TEST_CASE("every model: the serial losses on every policy and mesh, with words as predicted") {
  for (const char* model : every_model) check_everywhere(d, short_run(model, 3), std::array{3, 4, 6});
}

TEST_CASE("tiles in parts of few entries change no loss and no prediction, for any model") {
  for (const auto& [model, aggregation] : {std::pair{"gcn", nn::aggregation::mean},
                                           {"sage", nn::aggregation::mean},
                                           {"sage", nn::aggregation::max},
                                           {"gat", nn::aggregation::mean},
                                           {"appnp", nn::aggregation::mean}}) {
    nn::training_options o = short_run(model, 3);
    o.aggregation = aggregation;
    check_everywhere(serial(d, o), std::array{1, 4}, model, 1e-9, [&](const host_mesh& m, const policy& p) {
      return nn::train_model<double>(host_mesh(m.world(), m.shape(), device_queue<host>(), 20), d, o, p);
    });
  }
}

TEST_CASE("balanced and given blocks of vertices train as even ones") {
  for (const char* model : {"gcn", "gat", "appnp"})
    for (const bool balanced : {true, false})
      check_everywhere(serial(d, short_run(model, 3)), std::array{4, 6}, model, 1e-9,
                       [&](const host_mesh& m, const policy& p) {
                         nn::training_options o = short_run(model, 3);
                         const int rows = m.shape().row;
                         if (balanced)
                           o.blocks = graph::vertex_blocks::balanced;
                         else
                           o.block_sizes.assign(static_cast<std::size_t>(rows), 1),
                               o.block_sizes[0] = d.vertices - rows + 1;
                         auto net = nn::make_model<double>(m, d, o, p);
                         if (!balanced && rows > 1)
                           CHECK(net.row_blocking().block(axis::row, {.row = 1}).size() == 1);
                         return nn::train_model(m, d, o, std::move(net));
                       });
}

TEST_CASE("what does not fit the graph is refused before the first step") {
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    nn::training_options o = short_run();
    o.block_sizes = {20, d.vertices - 21};
    expect_error<shape_error>(base::sentence_of({"the block sizes sum to ", d.vertices - 1,
                                                 ", the graph has ", d.vertices, " vertices"}),
                              [&] { nn::make_model<double>(m, d, o, row_1d); });
    const graph::propagation_matrices<double, host> graph(m, d, short_run(), row_1d);
    expect_error<shape_error>("classes, the logits of the model have 9 columns", [&] {
      nn::trainer(m, d, short_run(),
                  nn::convolutions<nn::gcn_conv>(graph.gcn_normalized(), {d.features, 9}, {}));
    });
  });
}

TEST_CASE("a trainer that is given the parameters and the optimizer's state of another goes on as it does") {
  const nn::training_options o = short_run();
  on_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const auto fresh = [&] {
      return nn::trainer<double, host>(m, d, o, nn::make_model<double>(m, d, o, grid_2d));
    };
    nn::trainer<double, host> first = fresh(), second = fresh();
    for (int e = 1; e <= 3; ++e) first.step(e);
    copy(first.model().parameters().values(), second.model().parameters().values());
    auto& from = first.optimizer().state_of(first.model().parameters());
    auto& to = second.optimizer().state_of(second.model().parameters());
    copy(from.first_moment, to.first_moment);
    copy(from.second_moment, to.second_moment);
    to.steps = from.steps;
    for (int e = 4; e <= 6; ++e) CHECK(first.step(e) == second.step(e));
    CHECK(collect(first.evaluate()) == collect(second.evaluate()));
  });
}

TEST_CASE("the gradients of every model are those of finite differences") {
  const io::dataset d = directed_graph(29);
  nn::training_options base = short_run();
  base.heads = base.hops = 2;
  for (const nn::training_options& o : every_variant(base)) {
    if (sanitized && o.model != "sgc") continue;
    on_mesh({2, 2, 1}, [&](const host_mesh& m) {
      nn::trainer<double, host> training(m, d, o, nn::make_model<double>(m, d, o, grid_2d));
      CHECK_MESSAGE(training.gradient_error(1e-6) < 1e-5, o.model);
    });
  }
}

TEST_CASE("several labels a vertex: logistic loss, micro-F1, alike on every policy") {
  const io::dataset several = with_several_labels(d);
  const nn::training_result expected = serial(several, short_run());
  CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
  check_everywhere(several, short_run(), std::array{4});
}

TEST_CASE("features in compressed rows train as the same features written out") {
  io::dataset compressed = d, written_out = d;
  compressed.vertex_features = sparse_features(d.vertices, d.features);
  REQUIRE(compressed.vertex_features.is_sparse());
  std::vector<float> x(static_cast<std::size_t>(d.vertices * d.features), 0);
  for (global_index v = 0; v < d.vertices; ++v)
    compressed.vertex_features.for_row(
        v, [&](global_index j, auto value) { x[static_cast<std::size_t>(v * d.features + j)] = value; });
  written_out.vertex_features = io::feature_table(d.vertices, d.features, std::move(x));
  const nn::training_result expected = serial(written_out, short_run());
  check_everywhere(expected, std::array{1, 6}, "gcn", 1e-10, [&](const host_mesh& m, const policy& p) {
    return nn::train_model<double>(m, compressed, short_run(), p);
  });
}

TEST_CASE("a run repeats bit for bit") {
  for_each_mesh(std::array{4, 9}, [&](auto policy, mesh_shape shape) {
    std::vector<double> losses;
    for (int run = 0; run < 2; ++run)
      with_mesh(shape, [&](const host_mesh& m) {
        const nn::training_result r = nn::train_model<double>(m, d, short_run(), policy);
        if (m.rank() != 0) return;
        if (run == 0)
          for (const nn::epoch_report& e : r.epochs) losses.push_back(e.loss);
        for (std::size_t e = 0; e < losses.size(); ++e) CHECK(r.epochs[e].loss == losses[e]);
      });
  });
}

TEST_CASE("an epoch after the second allocates nothing") {
  for (const char* model : every_model)
    for_each_mesh(std::array{4}, [&](const policy& p, mesh_shape shape) {
      if (sanitized && (model != std::string("gat") || shape != default_mesh(p, 4))) return;
      with_mesh(shape, [&](const host_mesh& m) {
        std::vector<std::uint64_t> allocations;
        (void)nn::train_model<double>(m, d, short_run(model, 4), p, [&](const nn::epoch_report&) {
          allocations.push_back(m.queue().meter()->allocations());
        });
        CHECK(allocations[1] == allocations.back());
      });
    });
}

TEST_CASE("the seed decides, the epoch changes the mask, dropout changes the loss") {
  nn::training_options o = short_run();
  const double loss = serial(d, o).epochs.back().loss;
  o.seed = 43;
  CHECK(serial(d, o).epochs.back().loss != loss);
  o = short_run();
  o.dropout = 0;
  const nn::training_result without = serial(d, o);
  CHECK(without.epochs.back().loss != loss);
  o.learning_rate = 1e-300;
  o.dropout = 0.5;
  const nn::training_result still = serial(d, o);
  CHECK(still.epochs[0].loss != still.epochs[1].loss);
}

TEST_CASE("what cannot be trained is an error of one sentence on every rank") {
  for (int ranks : {1, 4}) {
    const auto train = [ranks](const io::dataset& d, nn::training_options o) {
      on_threads(ranks, [&](const communicator& world) {
        (void)nn::train_model<double>(mesh<host>(world, {world.size(), 1, 1}), d, o, row_1d);
      });
    };
    io::dataset nobody = directed_graph();
    for (auto& part : nobody.split.edit()) part = 2;
    expect_error<input_error>("directed graph: the training set is empty",
                              [&] { train(nobody, short_run()); });
    nn::training_options wild = short_run();
    wild.learning_rate = 1e200;
    expect_error<error>("the loss is not finite in epoch", [&] { train(directed_graph(), wild); });
  }
  expect_error<mesh_error>("mesh 641x6700417x1 does not match 1 ranks", [] {
    (void)mesh<host>(self::world(), {641, 6700417, 1});
  });
  expect_error<mesh_error>(3, "mesh 2x1x1 does not match 3 ranks", [](const communicator& world) {
    (void)mesh<host>(world, {2, 1, 1});
  });
  expect_error<mesh_error>(
      4, "policy row_1d does not use the col axis of mesh 2x2x1", [](const communicator& world) {
        (void)nn::train_model<double>(mesh<host>(world, {2, 2, 1}), directed_graph(), short_run(), row_1d);
      });
}

TEST_CASE("backward needs a forward") {
  const mesh<host> m(self::world(), {1, 1, 1});
  const io::dataset d = directed_graph();
  auto net = nn::make_model<double>(m, d, short_run(), row_1d);
  const dense<double, vertex_rows, host> gradient(m, {d.vertices, d.classes});
  expect_error<error>("backward needs a preceding forward pass", [&] { net.backward(gradient); });
}
