// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tapes with edge matrices, under every policy.

#include "partita/autodiff/edges.hpp"
#include "support/edge_matrices.hpp"
#include "support/tapes.hpp"

namespace test_support {

using host_pattern = partita::sparse<double, partita::dynamic_layout, partita::host>;
using host_edge_variable = partita::autodiff::edge_variable<double, partita::host>;

/// body(pattern, n x n) under every policy, on several numbers of ranks.
void on_patterns(partita::global_index n, auto body) {
  for_each_mesh(std::array{1, 2, 3, 6, 9}, [&](const partita::policy& p, mesh_shape shape) {
    if (shape != partita::default_mesh(p, shape.size())) return;
    on_threads(shape.size(), [&](const partita::communicator& world) {
      const host_mesh m(world, shape);
      body(host_pattern(distribute(m, p, {n, n}, share(sparse_entries({n, n}, 3), m))));
    });
  });
}

/// Compares the gradient of `loss` with respect to e, of a tape that read it, with finite differences at some
/// of the given entries. Every rank must call.
inline void check_edge_gradient(host_tape& t, const partita::autodiff::scalar<double, partita::host>& loss,
                                host_edges& e, host_edge_variable of_e,
                                const std::vector<triplet<double>>& entries) {
  t.forward();
  t.backward(loss);
  for (std::size_t k = 0; k < entries.size(); k += 5) {
    const auto h = static_cast<global_index>(k) % e.heads();
    const auto here = [&](auto& of, auto visit) {
      for_each_value(of, [&](auto v, auto u, auto g, auto& value) {
        if (v == entries[k].row && u == entries[k].col && g == h) visit(value);
      });
    };
    std::vector<double> found;
    here(t.gradient(of_e), [&](double value) { found.push_back(value); });
    const double step = 1e-6;
    const auto after = [&](double by) {
      here(e, [&](double& value) { value += by; });
      t.forward();
      return loss.value();
    };
    const double above = after(step), below = after(-2 * step);
    here(e, [&](double& value) { value += step; });
    for (const double d : found) CHECK((above - below) / (2 * step) == doctest::Approx(d).epsilon(1e-6));
  }
}

}  // namespace test_support
