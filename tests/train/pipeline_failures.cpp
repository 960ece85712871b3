// SPDX-License-Identifier: Apache-2.0
// What fails on one rank of a pipeline ends all ranks, with an error that names the stage and the chunk.

#include "partita/compiled/host.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/failing_transport.hpp"
#include "support/matrices.hpp"

namespace test_pipeline_failures {

using namespace test_support;

constexpr int stages = 2, ways = 2, chunks = 4;

nn::training_options small(nn::chunk_history history) {
  return {.hidden = {6},
          .layers = 4,
          .dropout = 0,
          .seed = 3,
          .pipeline = {.stages = stages, .chunks = chunks, .history = history}};
}

std::vector<int> order_of_second_epoch() { return nn::chunk_order(3, 2, chunks, true); }

/// The error with which a run ends in whose second epoch this goes wrong on this rank.
std::string ended_by(int rank, const fault& what, nn::chunk_history history = nn::chunk_history::window) {
  const io::dataset d = directed_graph();
  try {
    on_threads(stages * ways, [&](const communicator& world) {
      const auto mine = std::make_shared<fault>();
      nn::pipeline_trainer<double, host> t(mesh<host>(failing(world, mine), {stages * ways, 1, 1}), d,
                                           small(history), row_1d, {ways, 1, 1});
      t.epoch(1);
      if (world.rank() == rank) *mine = what;
      t.epoch(2);
    });
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void check_begin(const std::string& said, const std::string& expected) {
  CHECK_MESSAGE(said.starts_with(expected), "expected '", expected, "' at the beginning of: ", said);
}

std::string stage_of(int rank) { return "stage " + std::to_string(rank / ways); }

TEST_CASE("a receive from another stage that fails, or is of the wrong size, names the stage and the chunk") {
  const std::vector<int> order = order_of_second_epoch();
  for (int rank = 0; rank < stages * ways; ++rank)
    for (int n = 0; n < chunks; ++n)
      for (const bool shortens : {false, true}) {
        if (sanitized && n % 2 == 0) continue;
        const bool forward = rank >= ways;
        const int chunk = order[static_cast<std::size_t>(forward ? n : chunks - 1 - n)];
        check_begin(ended_by(rank, {.kind = operation::receive, .after = n, .shortens = shortens}),
                    stage_of(rank) + ", chunk " + std::to_string(chunk) +
                        (forward ? ", forward: " : ", backward: ") +
                        (shortens ? "ranks disagree: rank " : "the cable broke"));
      }
}

TEST_CASE("a layer that fails on one rank names the stage and the chunk") {
  const std::vector<int> order = order_of_second_epoch();
  for (int rank = 0; rank < stages * ways; ++rank) {
    check_begin(ended_by(rank, {.kind = operation::all_to_all}),
                stage_of(rank) + ", chunk " + std::to_string(order.front()) + ", forward: the cable broke");
    const std::string later = ended_by(rank, {.kind = operation::all_to_all, .after = 9});
    check_begin(later, stage_of(rank) + ", chunk ");
    CHECK(later.find(": the cable broke") != std::string::npos);
    check_begin(ended_by(rank, {.kind = operation::all_to_all}, nn::chunk_history::exact),
                stage_of(rank) + ", all chunks, forward: the cable broke");
  }
}

TEST_CASE("what fails between chunks names the stage and the work") {
  check_begin(ended_by(0, {.kind = operation::all_reduce}), "stage 0, sum of gradients: the cable broke");
  check_begin(ended_by(3, {.kind = operation::all_reduce}), "stage 1, loss: the cable broke");
  check_begin(ended_by(3, {.kind = operation::all_reduce, .after = 1}),
              "stage 1, sum of gradients: the cable broke");
  check_begin(ended_by(1, {.kind = operation::broadcast, .after = 1}), "stage 0, scores: the cable broke");
  check_begin(ended_by(0, {.kind = operation::send}), "stage 0, end of forward: the cable broke");
}

}  // namespace test_pipeline_failures
