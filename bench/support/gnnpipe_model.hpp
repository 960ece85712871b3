// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Epochs of GNNPipe's system as the simulator predicts them, from published figures other than those that
/// are predicted.

#include <algorithm>
#include <vector>

#include "gnnpipe_figures.hpp"
#include "pipeline_simulation.hpp"

namespace bench::gnnpipe {

/// A message of b bytes takes latency + b x byte_time.
struct link {
  double latency, byte_time;
};

/// Least squares over the 16 rows: in the time of communication that is published for 8 stages, a GPU
/// receives one message per chunk and direction of the published volume.
inline link fitted_link() {
  const double n = rows.size(), messages = 2 * chunks_per_gpu * gpus;
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const row& r : rows) {
    const double bytes = gigabytes(bench::pipeline_words(network(r), gpus)) * gigabyte / (gpus - 1);
    x += bytes, y += r.waiting[1], xx += bytes * bytes, xy += bytes * r.waiting[1];
  }
  const double byte_time = (n * xy - x * y) / (n * xx - x * x);
  return {(y - byte_time * x) / n / messages, byte_time};
}

/// What a prediction assumes besides equal layers and equal chunks, 4 for each GPU.
struct assumptions {
  /// Seconds that one layer takes for one chunk in one direction, however small that is: starting a dozen
  /// kernels, and waiting for them.
  double overhead = 0;
  bool lock_step = true;
  bool slow_between_nodes = false;  ///< every fourth link at the least published rate
  bool wide_first_layer = false;    ///< f x H products of the first stage, at the peak rate
  double imbalance = 0;             ///< by how much more every slot takes, of several stages
  int chunks_per_gpu = gnnpipe::chunks_per_gpu, parts = 1;
};

/// GCN with so many layers over so many stages; `alone`: seconds of an epoch on one GPU, with 4 chunks.
inline pipeline_costs costs_of(const graph& g, int layers, int stages, double alone, const assumptions& a) {
  const link between = fitted_link();
  pipeline_costs costs{.stages = stages, .chunks = a.chunks_per_gpu * stages, .parts = a.parts};
  const double work = alone - 2.0 * chunks_per_gpu * layers * a.overhead,
               task = work / (2.0 * stages * costs.chunks) + a.overhead * layers / stages;
  costs.forward.assign(static_cast<std::size_t>(stages), task * (stages > 1 ? 1 + a.imbalance : 1));
  if (a.wide_first_layer)
    costs.forward[0] += 2.0 * static_cast<double>(g.vertices * (g.features - g.hidden) * g.hidden) /
                        peak_flops / costs.chunks;
  costs.backward = costs.forward;
  costs.latency = between.latency;
  costs.byte_time.assign(static_cast<std::size_t>(a.parts > 1 ? stages : stages - 1), between.byte_time);
  if (stages == 1) costs.byte_time = {0};
  for (std::size_t s = gpus_per_node - 1; a.slow_between_nodes && s < costs.byte_time.size();
       s += gpus_per_node)
    costs.byte_time[s] = 1 / slowest_link;
  costs.bytes = static_cast<double>(g.vertices * g.hidden) * sizeof(float) / costs.chunks;
  costs.lock_step = a.lock_step;
  return costs;
}

inline pipeline_run predicted(const graph& g, int layers, int stages, double alone, const assumptions& a) {
  return simulate(costs_of(g, layers, stages, alone, a));
}

/// GCN on reddit with 32 layers, the runs of `strong`.
inline pipeline_run predicted_reddit(int stages, const assumptions& a) {
  return predicted(reddit, layers, stages, strong[0].seconds, a);
}

/// With 8 layers on each of so many GPUs, the runs of `weak_...`.
inline double predicted_weak(const graph& g, double alone, int stages, const assumptions& a) {
  return predicted(g, weak_layers * stages, stages, alone * stages, a).seconds;
}

/// The overhead for which the simulator gives the weak scaling of flickr, whose chunks are smallest: 1,395
/// vertices each. Linear interpolation, which is exact, as equal costs enter linearly.
inline double overhead_of_small_chunks(bool slow_between_nodes = false) {
  constexpr double trial = 1e-4;
  const auto seconds = [&](double overhead) {
    const assumptions a{.overhead = overhead, .slow_between_nodes = slow_between_nodes};
    return predicted_weak(flickr, weak_flickr[0].seconds, weak_flickr[1].gpus, a);
  };
  const double none = seconds(0);
  return trial * (weak_flickr[1].seconds - none) / (seconds(trial) - none);
}

/// The graph over 8 GPUs: seconds of reddit's GCN from those of one GPU and of the published communication,
/// which comes after the work or, `overlapped`, beside it.
inline double graph_parallel_seconds(const row& r, double alone, bool overlapped) {
  const double work = alone / gpus;
  return overlapped ? std::max(work, r.waiting[0]) : work + r.waiting[0];
}

}  // namespace bench::gnnpipe
