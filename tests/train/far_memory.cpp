// SPDX-License-Identifier: Apache-2.0
// Training over far memory: the losses of near memory, within a budget that refuses what exceeds it.
#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>
#include <memory>

#include "partita/compiled/host.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/datasets.hpp"
#include "support/meshes.hpp"

namespace test_far_memory {

using namespace partita;
using namespace test_support;

nn::training_options short_run(const std::string& model, nn::coupling form = nn::coupling::coupled) {
  nn::training_options o;
  o.model = model;
  o.coupling = form;
  o.hidden = {7};
  o.layers = model == "gcnii" || model == "resgcn" ? 2 : 0;
  o.heads = 2;
  o.hops = 3;
  o.epochs = 2;
  o.seed = 42;
  return o;
}

/// A window, and how many times as many chunks as operations it makes of an epoch on one rank, at least.
struct window {
  std::size_t bytes;
  global_index chunks;
};

/// Trains as the program does with --memory and --far.
nn::training_result train_far(const communicator& world, mesh_shape shape, const io::dataset& d,
                              const nn::training_options& o, const policy& p,
                              const std::shared_ptr<far_store>& store, std::size_t window) {
  const mesh<host> m(world, shape);
  m.queue().limit_memory(2 * window);
  use_far(m.queue(), {.store = store, .window = window, .from = window / 16});
  nn::training_result r = nn::train_model<double>(m, d, o, p);
  CHECK(r.peak_bytes.max_rank <= static_cast<global_index>(2 * window));
  return r;
}

TEST_CASE("probe") {
  const io::dataset d = directed_graph(211);
  const auto store = std::make_shared<mapped_store>(std::filesystem::temp_directory_path());
  for (const auto& entry : nn::named_models<double, host>) {
    nn::training_options o = short_run(std::string(entry.name), entry.coupling);
    o.aggregation = entry.aggregation;
    for (std::size_t w : {1u << 22, 1u << 16, 1u << 15, 1u << 14, 1u << 13, 6144u, 1u << 12, 3072u, 2048u}) {
      try {
        on_threads(1, [&](const communicator& world) {
          auto r = train_far(world, {1, 1, 1}, d, o, row_1d, store, w);
          std::printf("%s %d %d w %zu chunks %lld near %lld far %lld\n", o.model.c_str(), int(o.coupling),
                      int(o.aggregation), w, (long long)r.far->chunks.total, (long long)r.peak_bytes.max_rank,
                      (long long)r.far->peak_bytes.max_rank);
        });
      } catch (const std::exception& e) {
        std::printf("%s %d w %zu: %s\n", o.model.c_str(), int(o.coupling), w, e.what());
      }
    }
  }
}

}  // namespace test_far_memory
