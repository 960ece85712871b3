// SPDX-License-Identifier: Apache-2.0
// Models that read vectors of edges give the golden values of tests/golden under every policy, and cost what
// is predicted.
#include <doctest/doctest.h>

#include "examples/golden/compare.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/policy_cost.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"
#include "support/typed_vertices.hpp"

namespace test_edge_models {

using namespace partita;
using namespace test_support;

/// Those of tests/golden, of models that there are.
const std::vector<golden_case>& cases() {
  static const std::vector<golden_case> all = [] {
    const char* folder = std::getenv("PARTITA_OWN_GOLDEN");
    REQUIRE_MESSAGE(folder != nullptr, "PARTITA_OWN_GOLDEN names no folder of golden cases");
    std::vector<golden_case> found = read_golden_cases(folder);
    std::erase_if(found, [](const golden_case& c) { return nn::find_row(c.options) == nullptr; });
    return found;
  }();
  return all;
}

TEST_CASE("logits, loss and every gradient are those of PyTorch") {
  CHECK(cases().size() >= 12);
  on_usual_meshes(std::array{1, 2, 3, 6, 8, 9}, [&](const host_mesh& m, const partita::policy& policy) {
    for (const golden_case& c : cases()) {
      const auto errors = compare_golden<double>(m, c, c.options, policy);
      CHECK(errors.parts.size() == 2 + c.values.size());
      for (const auto& [what, error] : errors.parts)
        CHECK_MESSAGE(error < 1e-10, c.name, ", ", std::string(policy.name), " on ", to_string(m.shape()),
                      ": ", what, " is off by ", error);
    }
  });
}

/// With vectors of edges, the loops of two vertices, and an edge that comes twice.
io::dataset with_vectors() {
  io::dataset d = directed_graph();
  std::vector<io::edge> edges(d.edges.begin(), d.edges.end());
  edges.insert(edges.end(), {{2, 2}, {3, 3}, edges.front()});
  std::vector<double> values;
  for (std::size_t e = 0; e < 2 * edges.size(); ++e) values.push_back(double(e % 7) / 7 - 0.4);
  d.edge_features = {std::ssize(edges), 2, std::move(values)};
  d.edges = std::move(edges);
  d.edge_weights = {};
  return d;
}

TEST_CASE("the loss falls, and words are as predicted") {
  const io::dataset d = with_vectors();
  for (const char* model : {"gine", "gatv2", "transformer", "meshgraphnet"})
    for (const policy& p : named_policies) {
      nn::training_options o;
      o.model = model;
      o.hidden = {8};
      o.heads = 2;
      o.layers = 2;
      o.epochs = 12;
      on_threads(6, [&](const communicator& world) {
        const host_mesh m(world, default_mesh(p, world.size()));
        const nn::policy_cost cost = nn::predict_cost<double>(m, d, o, p);
        const nn::training_result run = nn::train_model<double>(m, d, o, p);
        CHECK_MESSAGE(cost.words.total == run.words_received.total, model, ", ", std::string(p.name));
        CHECK(cost.words.max_rank == run.words_received.max_rank);
        CHECK(run.epochs.back().loss < run.epochs.front().loss);
      });
    }
}

TEST_CASE("models of relations train on several types of vertices, with the same losses on any mesh") {
  const io::dataset d = typed_vertices().graph();
  for (const char* model : {"rgcn", "rgat"}) {
    nn::training_options o;
    o.model = model;
    o.hidden = {8};
    o.heads = 2;
    o.layers = 2;
    o.epochs = 20;
    o.inverse_relations = true;
    std::vector<double> expected;
    for (const auto& [ranks, p] : {std::pair(1, row_1d), std::pair(3, row_1d), std::pair(4, grid_2d)})
      on_threads(ranks, [&](const communicator& world) {
        const host_mesh m(world, default_mesh(p, world.size()));
        const nn::training_result run = nn::train_model<double>(m, d, o, p);
        if (world.rank() != 0) return;
        std::vector<double> losses;
        for (const nn::epoch_report& e : run.epochs) losses.push_back(e.loss);
        if (expected.empty()) expected = losses;
        CHECK(losses.back() < losses.front());
        CHECK(largest_difference(losses, expected) < 1e-12);
      });
  }
}

TEST_CASE("stages, mini-batches and rounded operands are refused by name") {
  const io::dataset d = with_vectors();
  for (const char* model : {"gine", "gatv2", "transformer", "meshgraphnet"}) {
    const nn::model_row* const row = nn::find_row(model, nn::coupling::coupled, nn::aggregation::mean);
    REQUIRE(row != nullptr);
    CHECK_FALSE(row->on_stages);
    CHECK_FALSE(row->is_on_blocks());
    CHECK(row->reads_edge_vectors);
    nn::training_options o;
    o.model = model;
    o.operands = nn::operand_format::bfloat16;
    with_mesh({1, 1, 1}, [&](const host_mesh& m) {
      expect_error<error>(std::string("model ") + model + " has products whose operands are not rounded",
                          [&] { nn::make_model<float>(m, d, o, row_1d); });
    });
  }
}

}  // namespace test_edge_models
