// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How fast this machine multiplies with a graph and with weights.

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "partita/graph/propagation_matrices.hpp"
#include "partita/train/model_outline.hpp"
#include "partita/train/summary.hpp"

namespace partita::nn {

namespace detail {

/// The median of the seconds of some runs, after one that is not counted.
template <class Device>
double median_seconds(const device_queue<Device>& q, const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int run = 0; run < 6; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    q.synchronize();
    if (run > 0)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(std::move(seconds));
}

}  // namespace detail

/// Seconds per multiplication with a weight of width x width and with an entry of the graph's matrix, on one
/// rank and all vertices: those of the first rank, on every rank. Collective over the mesh. What travels: two
/// numbers.
template <class T, class Device>
layer_rates measured_rates(const mesh<Device>& m, const io::dataset& data, global_index width) {
  std::vector<double> found(2, 0);
  if (m.rank() == 0) {
    const mesh<Device> alone(self::world(), mesh_shape{}, m.queue());
    const auto a = graph::propagation_matrices<T, Device>(alone, data, {}, row_1d)
                       .matrix_for(graph::propagation_matrix::adjacency, true);
    dense<T, vertex_rows, Device> x(alone, {data.vertices, width}),
        y(alone, {data.vertices, width});                   // (n, width)
    dense<T, replicated, Device> w(alone, {width, width});  // (width, width)
    fill(x, T(1));
    fill(w, T(1));
    spmm_plan<T, Device> multiply(a, x);
    const double n = static_cast<double>(data.vertices), columns = static_cast<double>(width);
    const double entries = std::max(1.0, static_cast<double>(data.edges.size()));
    found = {detail::median_seconds(m.queue(), [&] { gemm(x, w, y); }) / (n * columns * columns),
             detail::median_seconds(m.queue(), [&] { multiply(x, y); }) / (entries * columns)};
  }
  m.world().broadcast(found, 0);
  return {found[0], found[1]};
}

}  // namespace partita::nn
