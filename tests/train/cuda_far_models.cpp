// SPDX-License-Identifier: Apache-2.0
// Models on a CUDA device over far memory: the losses of a host with near memory, within the budget.
#include <doctest/doctest.h>

#include "examples/ranks/cuda_device.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/compiled/host.hpp"
#include "partita/memory/cuda_far.hpp"
#include "support/datasets.hpp"
#include "support/runs.hpp"

namespace test_cuda_far_models {

using namespace test_support;

/// Gives the queue a window and little more.
std::size_t bound(const device_queue<cuda_device>& q, std::size_t window) {
  const std::size_t budget = window + 2048;
  q.limit_memory(budget);
  use_far(q, {.store = std::make_shared<pinned_store>(), .window = window, .from = 512});
  return budget;
}

TEST_CASE("far memory: a device with a small window gives the losses of the host") {
  const io::dataset d = directed_graph(101);
  for (const auto& [model, coupling] : {std::pair{"gcn", nn::coupling::coupled},
                                        {"sage", nn::coupling::coupled},
                                        {"appnp", nn::coupling::coupled},
                                        {"gcn", nn::coupling::decoupled}})
    for (const int ranks : {1, 2})
      on_threads(ranks, [&](const communicator& world) {
        const nn::training_options o{
            .model = model, .coupling = coupling, .hidden = {6}, .hops = 2, .epochs = 2};
        const mesh_shape shape{world.size(), 1, 1};
        const auto expected = nn::train_model<double>(mesh<host>(world, shape), d, o, row_1d);
        for (const std::size_t window : {std::size_t{8192}, std::size_t{32768}}) {
          const mesh<cuda_device> m = cuda_mesh(world, shape, device_queue<cuda_device>());
          const std::size_t budget = bound(m.queue(), window);
          const auto found = nn::train_model<double>(m, d, o, row_1d);
          CAPTURE(o.model);
          CAPTURE(window);
          REQUIRE(found.far.has_value());
          CHECK(found.far->chunks.total > (window == 8192 ? 100 : 20));
          CHECK(found.far->peak_bytes.max_rank > 0);
          CHECK(found.peak_bytes.max_rank <= static_cast<global_index>(budget));
          check_run(found, expected, 1e-12, {}, scores::compared);
          CHECK(found.words_received.total == expected.words_received.total);
        }
      });
}

TEST_CASE("far memory: operands of bfloat16 pass in chunks, with the losses of the host") {
  const io::dataset d = directed_graph(101);
  nn::training_options o{.model = "gcn", .hidden = {6}, .epochs = 2};
  o.operands = nn::operand_precision::bfloat16;
  on_threads(2, [&](const communicator& world) {
    const mesh_shape shape{2, 1, 1};
    const auto expected = nn::train_model<float>(mesh<host>(world, shape), d, o, row_1d);
    const mesh<cuda_device> m = cuda_mesh(world, shape, device_queue<cuda_device>());
    bound(m.queue(), 32768);
    check_run(nn::train_model<float>(m, d, o, row_1d), expected, 1e-5, {}, scores::compared);
  });
}

}  // namespace test_cuda_far_models
