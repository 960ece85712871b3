// SPDX-License-Identifier: Apache-2.0
// A training whose budget refuses a buffer, whichever it is: it ends with an error that says so, and what is
// on the disk is whole.
#include <doctest/doctest.h>

#include "partita/compiled/host.hpp"
#include "partita/train/checkpoint.hpp"
#include "partita/train/make_training.hpp"
#include "partita/train/model_file.hpp"
#include "support/datasets.hpp"
#include "support/failing_memory.hpp"
#include "support/matrices.hpp"
#include "support/ranks.hpp"
#include "support/scratch.hpp"

namespace test_train_refused_memory {

using namespace test_support;

constexpr int ranks = 3;

/// The buffer of a rank that its budget refuses; none by default.
struct refusal {
  int rank = -1;
  long number = -1;
};

/// How a run ended, and the bytes of its buffers that are left.
struct ending {
  std::string why = "well";
  std::size_t left = 0;
};

/// Trains with checkpoints, and saves the model, on three ranks.
ending trained(const io::dataset& d, const nn::training_options& o, const fs::path& folder, refusal refused) {
  ending end;
  std::array<std::shared_ptr<memory::memory_meter>, ranks> meters;
  try {
    on_threads(ranks, [&](const communicator& world) {
      const device_queue<host> queue;
      const auto meter = meters[static_cast<std::size_t>(world.rank())] = queue.meter();
      const mesh<host> m(world, {ranks, 1, 1}, queue);
      std::optional<failing_meter> failing;
      if (world.rank() == refused.rank) failing.emplace(*meter, refused.number);
      const nn::run_hooks<float> how =
          nn::checkpoints_in<float>({.folder = folder / "kept", .every = 1, .keep = 2, .resume = true}, o, d);
      const auto training = nn::make_training<float>(m, d, o, row_1d, {ranks, 1, 1});
      training->run({}, how);
      const auto values = training->values();
      if (world.rank() == 0) nn::save_model(folder / "model", values, o, d);
    });
  } catch (const budget_error& e) {
    end.why = e.what();
  }
  for (const auto& meter : meters) end.left += meter->current();
  return end;
}

/// Every buffer of every rank is refused once; how many there are.
long refuse_every_buffer(const nn::training_options& o) {
  const io::dataset d = directed_graph();
  const scratch undisturbed;
  REQUIRE(trained(d, o, undisturbed.dir, {}).why == "well");
  const std::string model = read_text(undisturbed / "model");
  long refused = 0;
  for (int rank = 0; rank < ranks; ++rank)
    for (long number = 0;; ++number) {
      CAPTURE(rank);
      CAPTURE(number);
      const scratch folder;
      write_text(folder / "model", "an older model");
      const ending end = trained(d, o, folder.dir, {rank, number});
      CHECK(end.left == 0);
      if (end.why == "well") break;
      ++refused;
      CHECK(end.why.starts_with("a buffer of "));
      CHECK(end.why.find("does not fit into the budget of 0 bytes") != end.why.npos);
      CHECK(read_text(folder / "model") == "an older model");
      if (!fs::exists(folder / "kept") || fs::is_empty(folder / "kept")) continue;
      for (const auto& file : fs::directory_iterator(folder / "kept"))
        CHECK(file.path().string().find("unfinished") == std::string::npos);
      CHECK(trained(d, o, folder.dir, {}).why == "well");
      CHECK(read_text(folder / "model") == model);
    }
  return refused;
}

TEST_CASE("a buffer that is refused, in training on the whole graph and in mini-batches") {
  const nn::training_options whole{.model = "gcn", .hidden = {4}, .epochs = 3, .seed = 42};
  nn::training_options batches = whole;
  batches.model = "sage";
  batches.mini_batch = {.batch = 9, .fanouts = {3, 2}};
  for (const auto& [o, least] : {std::pair(whole, 60L), std::pair(batches, 60L)}) {
    const long refused = refuse_every_buffer(o);
    MESSAGE(o.model << ": " << refused << " buffers");
    CHECK(refused > least);
  }
}

}  // namespace test_train_refused_memory
