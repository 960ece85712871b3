// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How far gradients of layers over stages are from what they must be. Every rank of the mesh must call.

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "partita/train/pipeline_trainer.hpp"

namespace bench {

/// In the third epoch on a mesh of two stages, from central differences of the loss in which rows of earlier
/// epochs are constants: of every `stride`-th of a stage's first 120 parameters, the largest difference.
inline double history_gradient_error(const partita::mesh<partita::host>& m, const partita::io::dataset& d,
                                     const partita::nn::training_options& o, std::size_t stride) {
  const partita::communicator& world = m.world();
  partita::nn::pipeline_trainer<double, partita::host> t(m, d, o, partita::row_1d, {1, 1, 1});
  t.step(1), t.step(2);
  const auto loss = [&] { return world.broadcast(t.gradients(3), 1); };
  loss();
  const auto values = t.parameters().values().values();
  const std::vector<double> gradients = collect(t.parameters().gradients());
  double off = 0;
  for (const int stage : {0, 1})
    for (std::size_t k = 3; k < 120; k += stride) {
      const std::size_t i = k % values.size();
      const auto moved = [&](double by) {
        if (world.rank() == stage) values[i] += by;
        const double found = loss();
        if (world.rank() == stage) values[i] -= by;
        return found;
      };
      const double slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
      if (world.rank() == stage) off = std::max(off, std::abs(slope - gradients[i]));
    }
  return world.all_reduce(off, partita::reduction::max);
}

/// Of the mean over the 24 orders of 4 chunks from the exact gradient, without dropout and with one
/// convolution: the largest difference. `inside`: the mesh of a stage.
inline double mean_over_orders_error(const partita::mesh<partita::host>& m, const partita::io::dataset& d,
                                     partita::nn::training_options o, const partita::policy& p,
                                     partita::mesh_shape inside) {
  using trainer = partita::nn::pipeline_trainer<double, partita::host>;
  o.model = "resgcn", o.layers = 1, o.dropout = 0;
  o.pipeline = {.stages = 2, .chunks = 4};
  trainer t(m, d, o, p, inside);
  t.refresh_history(1);
  std::set<std::vector<int>> orders;
  std::vector<double> sum(t.parameters().values().values().size(), 0);
  for (int epoch = 1; orders.size() < 24; ++epoch) {
    if (!orders.insert(partita::nn::chunk_order(o.seed, static_cast<std::uint64_t>(epoch), 4, true)).second)
      continue;
    t.gradients(epoch);
    const std::vector<double> g = collect(t.parameters().gradients());
    for (std::size_t i = 0; i < g.size(); ++i) sum[i] += g[i] / 24;
  }
  o.pipeline.history = partita::nn::chunk_history::exact;
  trainer exact(m, d, o, p, inside);
  exact.gradients(1);
  const std::vector<double> expected = collect(exact.parameters().gradients());
  double off = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) off = std::max(off, std::abs(sum[i] - expected.at(i)));
  return m.world().all_reduce(off, partita::reduction::max);
}

}  // namespace bench
