// SPDX-License-Identifier: Apache-2.0
// Training does not depend on the policy, the mesh or the number of ranks.

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/runs.hpp"

using namespace test_support;

namespace {

nn::training_options short_run() { return {.hidden = {7}, .epochs = 8, .dropout = 0.5, .seed = 42}; }

nn::training_result serial(const io::dataset& d, const nn::training_options& o) {
  return nn::train_model<double>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
}

const io::dataset d = directed_graph();

}  // namespace

TEST_CASE("with dropout on, every epoch's loss and accuracy is the serial one, on every policy") {
  const nn::training_options o = short_run();
  const nn::training_result expected = serial(d, o);
  REQUIRE(expected.epochs.size() == 8);
  CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
  for_each_usual_mesh(rank_counts, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const nn::training_result r = nn::train_model<double>(mesh<host>(world, shape), d, o, policy);
      check_run(r, expected, 1e-9, where(policy, shape), scores::compared);
    });
  });
}

TEST_CASE("every other model: the serial losses on every policy and mesh, with words as predicted") {
  for (const char* model : {"sage", "gin", "gat", "sgc", "appnp", "gcnii", "resgcn"}) {
    nn::training_options o = short_run();
    o.model = model;
    o.epochs = 3;
    o.layers = o.model == "resgcn" ? 2 : 0;
    const nn::training_result expected = serial(d, o);
    for_each_mesh(std::array{3, 4, 6}, [&](auto policy, mesh_shape shape) {
      if (sanitized && (shape.size() != 4 || (o.model != "gat" && shape != default_mesh(policy, 4)))) return;
      on_threads(shape.size(), [&](const communicator& world) {
        const nn::training_result r = nn::train_model<double>(mesh<host>(world, shape), d, o, policy);
        check_run(r, expected, 1e-9, std::string(model) + ", " + where(policy, shape));
      });
    });
  }
}

TEST_CASE("tiles in parts of few entries change no loss and no prediction, for any model") {
  for (const std::string model : {"gcn", "sage", "sage max", "gat", "appnp"}) {
    if (sanitized && model != "gat" && model != "sage max") continue;
    nn::training_options o = short_run();
    o.model = model.substr(0, model.find(' '));
    if (o.model != model) o.aggregation = nn::aggregation::max;
    o.epochs = 3;
    const nn::training_result expected = serial(d, o);
    for_each_mesh(std::array{1, 4}, [&](auto policy, mesh_shape shape) {
      if (sanitized && shape != default_mesh(policy, shape.size())) return;
      on_threads(shape.size(), [&](const communicator& world) {
        const mesh<host> in_parts(world, shape, device_queue<host>(), 20);
        const nn::training_result r = nn::train_model<double>(in_parts, d, o, policy);
        check_run(r, expected, 1e-9, std::string(model) + ", " + where(policy, shape));
      });
    });
  }
}

TEST_CASE("balanced and given blocks of vertices train as even ones") {
  for (const char* model : {"gcn", "gat", "appnp"}) {
    nn::training_options even = short_run();
    even.model = model;
    even.epochs = 3;
    const nn::training_result expected = serial(d, even);
    for_each_mesh(std::array{4, 6}, [&](auto policy, mesh_shape shape) {
      if (sanitized && (even.model != "gat" || shape != default_mesh(policy, 4))) return;
      on_mesh(shape, [&](const host_mesh& m) {
        nn::training_options balanced = even, given = even;
        balanced.blocks = nn::vertex_blocks::balanced;
        given.block_sizes.assign(static_cast<std::size_t>(shape.row), 1);
        given.block_sizes[0] = d.vertices - shape.row + 1;
        for (const nn::training_options& o : {balanced, given}) {
          auto net = nn::make_model<double>(m, d, o, policy);
          if (&o == &given && shape.row > 1)
            CHECK(net.row_blocking().block(axis::row, {.row = 1}).size() == 1);
          const nn::training_result r = nn::train_model(m, d, o, std::move(net));
          check_run(r, expected, 1e-9, std::string(model) + ", " + where(policy, shape));
        }
      });
    });
  }
}

TEST_CASE("what does not fit the graph is refused before the first step") {
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    nn::training_options o = short_run();
    o.block_sizes = {20, d.vertices - 21};
    expect_error<shape_error>(base::sentence_of({"the block sizes sum to ", d.vertices - 1,
                                                 ", the graph has ", d.vertices, " vertices"}),
                              [&] { nn::make_model<double>(m, d, o, row_1d); });
    const nn::graph_operators<double, host> graph(m, d, short_run(), row_1d);
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
  for (const auto& entry : nn::named_models<double, host>()) {
    nn::training_options o = short_run();
    o.model = entry.name;
    o.coupling = entry.coupling;
    o.aggregation = entry.aggregation;
    o.heads = 2;
    o.hops = 2;
    o.layers = o.model == "gcnii" || o.model == "resgcn" ? 2 : 0;
    if (sanitized && o.model != "sgc") continue;
    on_mesh({2, 2, 1}, [&](const host_mesh& m) {
      nn::trainer<double, host> training(m, d, o, nn::make_model<double>(m, d, o, grid_2d));
      CHECK_MESSAGE(training.gradient_error(1e-6) < 1e-5, o.model);
    });
  }
}

TEST_CASE("several labels a vertex: logistic loss, micro-F1, alike on every policy") {
  io::dataset d = directed_graph();
  d.multi_label = true;
  for (global_index v = 0; v < d.vertices; ++v)
    for (global_index c = 0; c < d.classes; ++c)
      d.label_matrix.push_back(static_cast<std::uint8_t>(random_bits(12, v, c) % 3 == 0));
  d.labels = {};
  const nn::training_result expected = serial(d, short_run());
  CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
  for_each_mesh(std::array{4}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const nn::training_result r = nn::train_model<double>(mesh<host>(world, shape), d, short_run(), policy);
      CHECK(std::abs(r.epochs.back().loss - expected.epochs.back().loss) <
            1e-9 * expected.epochs.back().loss);
      CHECK(r.epochs.back().train_accuracy == expected.epochs.back().train_accuracy);
    });
  });
}

TEST_CASE("features in compressed rows train as the same features written out") {
  io::dataset d = directed_graph();
  io::csr_array<float> table;
  table.rows = d.vertices;
  table.cols = d.features;
  std::vector<float> written_out;
  for (global_index v = 0; v < d.vertices; ++v) {
    d.vertex_features.for_row(v, [&](global_index j, auto x) {
      const bool kept = random_bits(8, v * d.features + j, 0) % 3 == 0 && x != 0;
      written_out.push_back(kept ? static_cast<float>(x) : 0);
      if (!kept) return;
      table.columns.push_back(j);
      table.values.push_back(written_out.back());
    });
    table.offsets.push_back(static_cast<global_index>(table.columns.size()));
  }
  d.vertex_features = io::feature_table(d.vertices, d.features, std::move(written_out));
  io::dataset compressed = d;
  compressed.vertex_features = io::feature_table(table);
  REQUIRE(compressed.vertex_features.is_sparse());
  const nn::training_result expected = serial(d, short_run());
  for_each_mesh(std::array{1, 6}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const nn::training_result r =
          nn::train_model<double>(mesh<host>(world, shape), compressed, short_run(), policy);
      check_run(r, expected, 1e-10);
    });
  });
}

TEST_CASE("a run repeats bit for bit") {
  for_each_mesh(std::array{4, 9}, [&](auto policy, mesh_shape shape) {
    std::vector<double> losses;
    for (int run = 0; run < 2; ++run)
      on_threads(shape.size(), [&](const communicator& world) {
        const nn::training_result r =
            nn::train_model<double>(mesh<host>(world, shape), d, short_run(), policy);
        if (world.rank() != 0) return;
        if (run == 0)
          for (const nn::epoch_report& e : r.epochs) losses.push_back(e.loss);
        for (std::size_t e = 0; e < losses.size(); ++e) CHECK(r.epochs[e].loss == losses[e]);
      });
  });
}

TEST_CASE("an epoch after the second allocates nothing") {
  for (const char* model : {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii", "resgcn"})
    for_each_mesh(std::array{4}, [&](auto policy, mesh_shape shape) {
      if (sanitized && (std::string(model) != "gat" || shape != default_mesh(policy, 4))) return;
      on_threads(shape.size(), [&](const communicator& world) {
        nn::training_options options = short_run();
        options.model = model;
        options.epochs = 4;
        options.layers = options.model == "resgcn" ? 2 : 0;
        const mesh<host> m(world, shape);
        std::vector<std::uint64_t> allocations;
        (void)nn::train_model<double>(m, d, options, policy, [&](const nn::epoch_report&) {
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
  expect_error<error>("backward needs a forward pass", [&] { net.backward(gradient); });
}
