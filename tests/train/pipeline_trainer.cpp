// SPDX-License-Identifier: Apache-2.0
// Layers over stages: without history training is that on one rank, and with it words are as predicted.
#include "partita/train/pipeline_trainer.hpp"

#include "bench/support/pipeline_gradients.hpp"
#include "laws/training_laws.hpp"
#include "support/matrices.hpp"

namespace test_pipeline_trainer {

using namespace test_support;

constexpr const char* models[] = {"gcn", "sage", "gin", "gcnii", "resgcn"};

nn::training_options deep(const std::string& model) {
  return {
      .model = model, .hidden = {6}, .layers = 5, .epsilon = 0.25, .epochs = 3, .dropout = 0.3, .seed = 7};
}

nn::training_result over_stages(const communicator& world, const io::dataset& d,
                                const nn::training_options& o, const policy& p, mesh_shape inside) {
  return nn::train<double>(mesh<host>(world, {world.size(), 1, 1}), d, o, p, inside);
}

void check_losses(const nn::training_result& found, const nn::training_result& expected) {
  check_run(found, expected, 1e-12, {}, scores::compared);
}

const io::dataset d = directed_graph();

TEST_CASE(
    "with one chunk or exact history the losses are the serial ones, for every model and policy inside") {
  for (const char* model : models) {
    if (sanitized && model != models[0]) continue;
    nn::training_options o = deep(model);
    const nn::training_result expected = serial(d, o);
    for (const int stages : {1, 2, 3})
      for_each_mesh(std::array{1, 2, 4}, [&](const policy& p, mesh_shape inside) {
        if (stages == 3 && inside.size() > 2) return;
        if (sanitized && (stages != 2 || inside.size() > 2)) return;
        INFO("model ", model, ", stages ", stages, ", p.name ", std::string(p.name), ", inside ",
             to_string(inside));
        nn::training_options with = o;
        with.pipeline.stages = stages;
        with.pipeline.chunks = stages == 1 ? 3 : 1;
        if (inside.size() == 2) {
          with.pipeline.history = nn::chunk_history::exact;
          with.pipeline.chunks = 4;
        }
        on_threads(stages * inside.size(), [&](const communicator& world) {
          check_losses(over_stages(world, d, with, p, inside), expected);
        });
      });
  }
}

TEST_CASE("with history losses do not depend on policy and ranks, and words are as predicted") {
  using nn::chunk_history;
  for (const char* model : models) {
    if (sanitized && model != std::string("sage") && model != models[0]) continue;
    nn::training_options o = deep(model);
    o.pipeline = {.stages = 2, .chunks = 4, .window = 2, .guard = 2};
    if (model == std::string("sage") || model == std::string("gcnii"))
      o.pipeline.history = chunk_history::halo;
    if (model == std::string("gin")) o.pipeline.history = chunk_history::zero;
    for (global_index v = 0; v < d.vertices; ++v) o.pipeline.chunk_of.push_back(static_cast<int>(v * 7 % 4));
    nn::training_result expected;
    on_threads(2, [&](const communicator& world) {
      const auto found = over_stages(world, d, o, row_1d, {1, 1, 1});
      if (world.rank() == 0) expected = found;
    });
    for_each_mesh(std::array{2, 4}, [&](const policy& p, mesh_shape inside) {
      if (sanitized && inside.size() > 2) return;
      on_threads(2 * inside.size(), [&](const communicator& world) {
        INFO("model ", model, ", p.name ", std::string(p.name), ", inside ", to_string(inside));
        const nn::training_result found = over_stages(world, d, o, p, inside);
        check_losses(found, expected);
        REQUIRE(found.pipeline->comparisons.size() == 1);
        const nn::pipeline_comparison& c = found.pipeline->comparisons[0];
        CHECK(c.loss == found.epochs[1].loss);
        CHECK(c.exact_loss != c.loss);
        CHECK(c.logits_difference > 1e-3);
      });
    });
  }
}

TEST_CASE("gradients are those of the loss with the rows of earlier epochs as constants") {
  for (const char* model : models)
    for (const auto history : {nn::chunk_history::window, nn::chunk_history::zero}) {
      if (sanitized && model != std::string("gcnii")) continue;
      nn::training_options o = deep(model);
      o.pipeline = {.stages = 2, .chunks = 4, .history = history, .window = 2, .compensate = false};
      on_mesh({2, 1, 1}, [&](const host_mesh& m) {
        CAPTURE(model);
        CHECK(bench::history_gradient_error(m, d, o, 29) < 1e-7);
      });
    }
}

TEST_CASE(
    "with fresh halos a model with one convolution is exact, and chunks without neighbours are always") {
  io::dataset d = directed_graph();
  nn::training_options o = deep("resgcn");
  o.layers = 1;
  o.pipeline = {.stages = 2, .chunks = 4, .history = nn::chunk_history::halo, .guard = 1};
  const auto check = [&](const policy& p) {
    on_threads(4, [&](const communicator& world) {
      const nn::training_result r = over_stages(world, d, o, p, default_mesh(p, 2));
      for (const nn::pipeline_comparison& c : r.pipeline->comparisons) {
        CHECK(std::abs(c.loss - c.exact_loss) < 1e-12);
        CHECK(c.logits_difference < 1e-12);
      }
      CHECK(r.pipeline->comparisons.size() == 3);
    });
  };
  check(row_1d);
  check(grid_2d);
  for (global_index v = 0; v < d.vertices; ++v) o.pipeline.chunk_of.push_back(static_cast<int>(v % 4));
  std::size_t inside = 0;
  for (std::size_t e = 0; e < d.edges.size(); ++e)
    if (d.edges[e].source % 4 == d.edges[e].target % 4) {
      d.edges.edit()[inside] = d.edges[e];
      d.edge_weights.edit()[inside++] = d.edge_weights[e];
    }
  d.edges.edit().resize(inside);
  d.edge_weights.edit().resize(inside);
  o.layers = 3;
  o.pipeline.history = nn::chunk_history::zero;
  check(row_1d);
}

TEST_CASE("stages by measured cost train as any others") {
  nn::training_options o = deep("gcn");
  const nn::training_result expected = serial(d, o);
  o.pipeline = {.stages = 3, .chunks = 1, .measured = true};
  on_threads(3, [&](const communicator& world) {
    const nn::training_result found = over_stages(world, d, o, row_1d, {1, 1, 1});
    check_losses(found, expected);
    CHECK(found.pipeline->layers[0] + found.pipeline->layers[1] + found.pipeline->layers[2] == 5);
  });
  io::dataset repeated = d;  // the first edge twice
  repeated.edges.edit().push_back(d.edges[0]);
  repeated.edge_weights.edit().push_back(d.edge_weights[0]);
  const nn::layer_rates rates = nn::measured_rates<double>(mesh<host>(self::world(), {1, 1, 1}), repeated, 8);
  CHECK(rates.weight > 0);
  CHECK(rates.entry > 0);
}

TEST_CASE("the mean of corrected gradients over all orders of chunks is the exact gradient") {
  for (const policy& p : {row_1d, grid_2d})
    on_mesh({4, 1, 1}, [&](const host_mesh& m) {
      CHECK(bench::mean_over_orders_error(m, d, deep("resgcn"), p, default_mesh(p, 2)) < 1e-12);
    });
}

}  // namespace test_pipeline_trainer
