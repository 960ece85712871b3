// SPDX-License-Identifier: Apache-2.0
#pragma once
// Edge matrices as functions of targets, sources and heads, and where they are tried.

#include "partita/algebra/edge_matrix.hpp"
#include "partita/algebra/row_exchange.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"

namespace test_support {

using partita::local_index;
using host_edges = partita::edge_matrix<double, partita::host>;

inline double edge_entry(global_index v, global_index u, global_index h) {
  return 3 * std::cos(static_cast<double>(2 * v - 5 * u + 11 * h));
}

/// visitor(row, column, head, value) for every value that this rank holds; all but the value are global.
void for_each_value(auto& e, auto visitor) {
  const auto& a = e.pattern();
  e.for_parts([&](std::size_t t, const partita::local::csr_slice<double>& part) {
    const auto& tile = part.entries;
    auto* const values = part.values_in(e.values().data(), e.heads());
    for (local_index i = 0; i < tile.rows; ++i)
      for (local_index k = tile.offsets[i]; k < tile.offsets[i + 1]; ++k)
        for (local_index h = 0; h < e.heads(); ++h)
          visitor(a.row_range().begin + part.first_row + i, a.tile_columns(t).begin + tile.columns[k],
                  e.first_head() + h, values[k * e.heads() + h]);
  });
}

void fill_edges(host_edges& e, auto f) {
  for_each_value(e, [&](auto v, auto u, auto h, double& value) { value = f(v, u, h); });
}
/// How far the values that this rank holds are from expected(row, column, head), at most.
double largest_error(const host_edges& e, auto expected) {
  double largest = 0;
  for_each_value(e, [&](auto v, auto u, auto h, double value) {
    const double error = std::abs(value - expected(v, u, h));
    if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
  });
  return largest;
}

/// body(mesh, policy, heads, row_exchange of rows) on every policy and mesh, with one head and with three,
/// with tiles in parts, and with all buffers far.
void for_each_edge_case(auto body) {
  const auto run = [&](const partita::policy& p, mesh_shape shape, local_index heads, std::size_t most,
                       const std::shared_ptr<partita::far_store>& store = nullptr) {
    for (const auto rows : {partita::row_exchange::full, partita::row_exchange::sparsity_aware})
      on_threads(shape.size(), [&](const partita::communicator& world) {
        const partita::device_queue<partita::host> q;
        if (store) use_far(q, {.store = store, .window = 12288});
        body(host_mesh(world, shape, q, most), p, heads, rows);
      });
  };
  for_each_mesh(std::array{1, 2, 4, 6, 9, 12}, [&](const auto& p, mesh_shape shape) {
    for (const local_index heads : {1, 3}) run(p, shape, heads, partita::base::max_tile_entries);
  });
  for_each_mesh(std::array{1, 4, 6},
                [&](const auto& p, mesh_shape shape) { run(p, shape, 3, shape.size() == 4 ? 13 : 50); });
  const auto store = new_far_store();
  for_each_mesh(std::array{1, 4}, [&](const auto& p, mesh_shape shape) {
    if (shape == partita::default_mesh(p, shape.size()))
      run(p, shape, 3, shape.size() == 4 ? 50 : partita::base::max_tile_entries, store);
  });
}

}  // namespace test_support
