// SPDX-License-Identifier: Apache-2.0
// Over MPI: the serial losses, words as predicted, and bytes as MPI's profiling interface sees them.

#include "partita/comm/mpi.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"
#include "support/mpi_byte_counter.hpp"
#include "support/mpi_world.hpp"

using namespace test_support;

TEST_CASE("mini-batches: every placement has the gradients of one rank, with the words and bytes predicted") {
  using sampling::placement;
  const communicator& world = mpi_world();
  const io::dataset d = directed_graph();
  nn::training_options o{.hidden = {7},
                         .epochs = 2,
                         .mini_batch = {.batch = 9, .fanouts = {3, 2}, .placement = placement::even}};
  for (const char* model : {"sage", "gat"}) {
    o.model = model;
    const auto run = [&](const communicator& ranks) {
      const mesh<host> m(ranks, {ranks.size(), 1, 1});
      nn::mini_batch_trainer<double, host> t(m, d, o, row_1d);
      const double loss = t.gradients(2, 1);
      return std::pair(loss, collect(t.parameters().gradients()));
    };
    o.mini_batch.placement = placement::even;
    o.mini_batch.micro_batches = 1;
    const auto [loss, gradients] = run(self::world());
    for (const placement how :
         {placement::even, placement::owner, placement::column, placement::column_gather})
      for (const bool cut : {false, true}) {
        o.mini_batch.placement = how;
        o.mini_batch.cut_graph = cut;
        o.mini_batch.micro_batches = cut ? 2 : 1;
        const auto [found, found_gradients] = run(world);
        CHECK(std::abs(found - loss) < 1e-12);
        CHECK(largest_difference(found_gradients, gradients) < 1e-12);
        if (cut) continue;
        const mesh<host> m(world, {world.size(), 1, 1});
        nn::mini_batch_trainer<double, host> t(m, d, o, row_1d);
        const nn::training_result r = t.run();
        CHECK(r.words_received.total == r.predicted_words_received.total);
        CHECK((world.size() == 1 || r.words_received.total > 0));
      }
  }
}

TEST_CASE("every policy and mesh trains with the serial losses and the bytes of its ledger") {
  const communicator& world = mpi_world();
  const io::dataset d = directed_graph();
  nn::training_options o{.hidden = {7}, .epochs = 5};
  const nn::training_result expected =
      nn::train_model<double>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
  for_each_mesh(std::array{world.size()}, [&](auto policy, mesh_shape shape) {
    const mesh<host> m(world, shape);
    nn::trainer<double, host> training(m, d, o, nn::make_model<double>(m, d, o, policy));
    for (int e = 1; e <= o.epochs; ++e) {
      m.ledger().clear();
      const std::int64_t before = mpi_bytes_received();
      const nn::epoch_report r = training.epoch(e);
      global_index entered = 0;
      for (const comm::ledger_entry& line : m.ledger().entries()) entered += line.bytes;
      CHECK(mpi_bytes_received() - before == entered);
      CHECK((world.size() == 1 || entered > 0));
      CHECK_MESSAGE(std::abs(r.loss - expected.epochs[static_cast<std::size_t>(e - 1)].loss) < 1e-9 * r.loss,
                    std::string(policy.name), " on ", to_string(shape));
    }
    const auto step = m.ledger().total(
        [](const comm::ledger_entry& e) { return e.phase == "forward" || e.phase == "backward"; });
    CHECK(step == training.predicted());
  });
}

TEST_CASE(
    "over stages exact losses are the serial ones, those with history the threads', and bytes the ledger's") {
  const communicator& world = mpi_world();
  const io::dataset d = directed_graph();
  nn::training_options o{.model = "gcnii", .hidden = {6}, .layers = 4, .epochs = 4};
  const nn::training_result serial =
      nn::train_model<double>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
  for (int stages = 1; stages <= world.size(); stages *= 2)
    for (const auto history : {nn::chunk_history::exact, nn::chunk_history::window, nn::chunk_history::halo})
      for (const policy& p : {row_1d, grid_2d}) {
        if (p.name == grid_2d.name && history != nn::chunk_history::window) continue;
        const mesh_shape inside = default_mesh(p, world.size() / stages);
        o.pipeline.stages = stages;
        o.pipeline.chunks = 5;
        o.pipeline.history = history;
        o.pipeline.window = 2;
        o.pipeline.guard = 2;
        std::vector<double> losses;
        for (const nn::epoch_report& e : serial.epochs) losses.push_back(e.loss);
        if (history != nn::chunk_history::exact)
          partita::threads::run(world.size(), [&](const communicator& threads) {
            const auto r = nn::train<double>(mesh<host>(threads, {threads.size(), 1, 1}), d, o, p, inside);
            for (std::size_t e = 0; threads.rank() == 0 && e < losses.size(); ++e)
              losses[e] = r.epochs[e].loss;
          });
        const mesh<host> m(world, {world.size(), 1, 1});
        nn::pipeline_trainer<double, host> t(m, d, o, p, inside);
        for (int e = 1; e <= o.epochs; ++e) {
          m.ledger().clear();
          const std::int64_t before = mpi_bytes_received();
          const nn::epoch_report r = t.epoch(e);
          global_index entered = 0;
          for (const comm::ledger_entry& line : m.ledger().entries()) entered += line.bytes;
          CHECK(mpi_bytes_received() - before == entered);
          CHECK_MESSAGE(std::abs(r.loss - losses[static_cast<std::size_t>(e - 1)]) < 1e-12 * r.loss, stages,
                        " stages of ", to_string(inside), ", ", std::string(p.name));
        }
        const auto step =
            m.ledger().total([](const comm::ledger_entry& e) { return e.phase != "evaluation"; });
        CHECK(step == t.predicted());
      }
}
