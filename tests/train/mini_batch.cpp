// SPDX-License-Identifier: Apache-2.0
// Mini-batches: what is computed does not depend on placement, ranks and micro-batches.
#include <doctest/doctest.h>

#include "partita/compiled/host.hpp"
#include "partita/train/mini_batch_trainer.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"

namespace test_mini_batch {

using namespace partita;
using namespace test_support;
using sampling::placement;

namespace {

using trainer = nn::mini_batch_trainer<double, host>;

constexpr placement placements[] = {placement::any, placement::home, placement::column,
                                    placement::column_gather};

nn::training_options options_for(std::string model, std::vector<local_index> fanouts) {
  nn::training_options o;
  o.model = std::move(model);
  o.hidden = {6};
  o.heads = 2;
  o.epsilon = 0.25;
  o.dropout = 0.3;
  o.epochs = 2;
  o.seed = 7;
  o.mini_batch = {.batch = 9, .fanouts = std::move(fanouts), .placement = placement::any};
  return o;
}

struct step_result {
  double loss = 0;
  std::vector<double> gradients;
};

step_result step_of(int ranks, const io::dataset& d, const nn::training_options& o) {
  step_result result;
  on_threads(ranks, [&](const communicator& world) {
    const mesh<host> m(world, {ranks, 1, 1});
    trainer t(m, d, o, row_1d);
    const double loss = t.gradients(2, 1);
    const auto gradients = t.parameters().gradients().values();
    if (world.rank() == ranks - 1) result = {loss, {gradients.begin(), gradients.end()}};
  });
  return result;
}

}  // namespace

TEST_CASE("losses and gradients are those of one rank, for every placement, rank and micro-batch count") {
  const io::dataset d = directed_graph(61);
  for (const char* model : {"gcn", "sage", "gin", "gat"})
    for (const std::vector<local_index>& fanouts : {std::vector<local_index>{3, 2}, {-1, 4}}) {
      nn::training_options o = options_for(model, fanouts);
      const step_result expected = step_of(1, d, o);
      CHECK(expected.loss > 0.1);
      for (const placement how : placements)
        for (const int ranks : {1, 2, 3, 4, 8})
          for (const int parts : {1, 2, 5}) {
            CAPTURE(model);
            CAPTURE(static_cast<int>(how));
            CAPTURE(ranks);
            CAPTURE(parts);
            o.mini_batch.placement = how;
            o.mini_batch.micro_batches = parts;
            const step_result found = step_of(ranks, d, o);
            CHECK(std::abs(found.loss - expected.loss) < 1e-12);
            CHECK(largest_difference(found.gradients, expected.gradients) < 1e-12);
          }
    }
}

TEST_CASE(
    "with all neighbours and one batch of all training vertices, gradients are those of the whole graph") {
  const io::dataset d = directed_graph(61);
  for (const char* model : {"gcn", "sage", "gin", "gat"}) {
    CAPTURE(model);
    nn::training_options o = options_for(model, {-1, -1});
    o.mini_batch.batch = 1000;
    step_result expected;
    on_threads(1, [&](const communicator& world) {
      const mesh<host> m(world, {1, 1, 1});
      auto net = nn::make_model<double>(m, d, o, row_1d);
      const auto x = nn::local_features<double>(m, d, false);
      nn::objective<double, host> labels(m, d, net.row_blocking());
      dense<double, vertex_rows, host> dz(m, {d.vertices, d.classes});
      expected.loss = labels.loss(net.forward(operand<double, host>(x), {.training = true, .epoch = 2}), dz);
      net.backward(dz);
      expected.gradients = collect(net.parameters().gradients());
    });
    for (const placement how : placements) {
      o.mini_batch.placement = how;
      on_threads(3, [&](const communicator& world) {
        const mesh<host> m(world, {3, 1, 1});
        trainer t(m, d, o, row_1d);
        CHECK(t.iterations() == 1);
        CHECK(std::abs(t.gradients(2, 0) - expected.loss) < 1e-10);
        CHECK(largest_difference(collect(t.parameters().gradients()), expected.gradients) < 1e-10);
      });
    }
  }
}

TEST_CASE("whole runs: losses, accuracies and words; exact and sampled scores; whole and cut graphs") {
  const io::dataset d = directed_graph(61);
  std::vector<double> losses;
  for (const placement how : placements)
    for (const int ranks : {1, 4})
      for (const bool cut : {false, true}) {
        CAPTURE(static_cast<int>(how));
        CAPTURE(ranks);
        CAPTURE(cut);
        nn::training_options o = options_for("sage", {3, 2});
        o.mini_batch.placement = how;
        o.mini_batch.cut_graph = cut;
        o.mini_batch.sampled_scores = cut;
        on_threads(ranks, [&](const communicator& world) {
          const mesh<host> m(world, {ranks, 1, 1});
          const nn::training_result r = trainer(m, d, o, row_1d).run();
          if (world.rank() != 0) return;
          std::vector<double> found;
          for (const auto& e : r.epochs) found.push_back(e.loss);
          if (losses.empty()) losses = found;
          CHECK(largest_difference(found, losses) < 1e-12);
          CHECK(r.mini_batch->iterations == 3);
          CHECK(r.mini_batch->placement == how);
          if (!cut) {
            CHECK(r.words_received.max_rank == r.predicted_words_received.max_rank);
            CHECK(r.words_received.total == r.predicted_words_received.total);
          }
          CHECK(r.epochs.back().test_accuracy > 0);
        });
      }
}

}  // namespace test_mini_batch
