// SPDX-License-Identifier: Apache-2.0
// A tape on a device: results and gradients of its verbs, and of a recorded GCN, are those on the host, and
// later steps take no memory.

#include "partita/autodiff/broadcasts.hpp"
#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/autodiff/reductions.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_device_tape {

using namespace partita;
using namespace test_support;

struct square {
  template <class X>
  constexpr X operator()(const X& x) const {
    return x * x;
  }
};
struct gated {
  template <class X>
  constexpr X operator()(const X& x, const X& y) const {
    return x / (X(1) + y * y);
  }
};

TEST_CASE("a tape on a device computes what one on the host does") {
  for (const auto& [p, shape] : {std::pair{row_1d, mesh_shape{2, 1, 1}}, {grid_2d, mesh_shape{1, 2, 1}}})
    on_threads(2, [&](const communicator& world) {
      constexpr global_index n = 9;
      const auto result = [&]<class Device>(const mesh<Device>& on) {
        std::vector<triplet<double>> mine;
        if (world.rank() == 0)
          for (global_index v = 0; v < n; ++v)
            mine.push_back({v, (v * 2 + 1) % n, 0.5}), mine.push_back({v, v, 0.3});
        const partita::sparse<double, dynamic_layout, Device> a = distribute(on, p, {n, n}, mine);
        const auto x = generate<vertex_rows, double>(on, {n, 3}, field(0));
        const auto targets = generate<vertex_rows, double>(on, {n, 3}, field(5));
        auto w = generate<replicated, double>(on, {3, 3}, field(1));
        auto bias = generate<replicated, double>(on, {1, 3}, field(2));
        const algebra::vertex_labels<Device> labels(on, x.row_blocking(), [](auto v) { return v % 4 - 1; });
        autodiff::tape<double, Device> t(on);
        const auto h = t.input(x), v = t.parameter(w), b = t.parameter(bias);
        const auto hidden = dropout(relu(add_row(b, spmm(a, gemm(h, v)))), 0.25, {.seed = 3});
        auto z = 0.9 * spmm(transposed(a), redistribute(gemm(hidden, transposed(v)), p.dense)) -
                 0.1 * redistribute(h, p.dense);
        const auto rows = layer_norm(redistribute(z, vertex_rows), b, column_sums(h));
        const auto mixed = gemm(zip(row_softmax(rows), rows, gated{}), inner(h, rows)) + gemm(rows, v);
        const auto last = t.keep(scale_rows(row_norms(h), mixed));
        const auto loss = cross_entropy(last, labels) +
                          0.5 * value_loss(last, targets, algebra::huber_error(), 27) +
                          0.1 * sum(transform(log_softmax(last), square{}));
        t.forward();
        t.backward(loss);
        std::vector<double> found{loss.value()};
        const auto append = [&](const std::vector<double>& more) {
          found.insert(found.end(), more.begin(), more.end());
        };
        append(collect(t.value(last)));
        for (const auto& of : {h, v, b}) append(collect(t.gradient(of)));
        return found;
      };
      const mesh<cuda_device> m(world, shape);
      const host_mesh on_host(world, shape);
      CHECK(largest_difference(result(m), result(on_host)) < 1e-11);
    });
}

}  // namespace test_device_tape
