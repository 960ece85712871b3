// SPDX-License-Identifier: Apache-2.0
// Models on a CUDA device over far memory: the losses of a host with near memory, within the budget.
#include <array>
#include <cmath>
#include <cstddef>
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <utility>

#include "partita/comm/cuda_memory.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/compiled/host.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/memory/cuda_far.hpp"
#include "support/datasets.hpp"
#include "support/meshes.hpp"

namespace test_cuda_far_models {

using namespace partita;
using namespace test_support;

nn::training_options short_run(const std::string& model, nn::coupling coupling) {
  nn::training_options o;
  o.model = model;
  o.coupling = coupling;
  o.hidden = {6};
  o.hops = 2;
  o.epochs = 2;
  return o;
}

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
        const nn::training_options o = short_run(model, coupling);
        const mesh_shape shape{world.size(), 1, 1};
        const auto expected = nn::train_model<double>(mesh<host>(world, shape), d, o, row_1d);
        for (const std::size_t window : {std::size_t{8192}, std::size_t{32768}}) {
          const mesh<cuda_device> m(world, shape);
          const std::size_t budget = bound(m.queue(), window);
          const auto found = nn::train_model<double>(m, d, o, row_1d);
          CAPTURE(o.model);
          CAPTURE(window);
          REQUIRE(found.far.has_value());
          CHECK(found.far->chunks.total > (window == 8192 ? 100 : 20));
          CHECK(found.far->peak_bytes.max_rank > 0);
          CHECK(found.peak_bytes.max_rank <= static_cast<global_index>(budget));
          REQUIRE(found.epochs.size() == expected.epochs.size());
          for (std::size_t e = 0; e < found.epochs.size(); ++e) {
            const double loss = expected.epochs[e].loss;
            CHECK(std::abs(found.epochs[e].loss - loss) < 1e-12 * loss);
            CHECK(found.epochs[e].test_accuracy == expected.epochs[e].test_accuracy);
          }
          CHECK(found.words_received.total == expected.words_received.total);
        }
      });
}

}  // namespace test_cuda_far_models
