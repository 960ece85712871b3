// SPDX-License-Identifier: Apache-2.0
// Sparse Adam on a device, as on the host, on rows whose gradients were taken from a plan.

#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/nn/embedding.hpp"
#include "partita/nn/sparse_adam.hpp"
#include "partita/transfer/gather_rows.hpp"
#include "support/matrices.hpp"

namespace test_device_sparse_adam {

using namespace test_support;

TEST_CASE("embeddings learn on a device as on the host: cut by rows and by columns") {
  on_threads(2, [](const communicator& world) {
    const auto result = [&]<class Device>(const mesh<Device>& on, layout l) {
      auto x = nn::initial_embedding<double>(on, l, blocking::even(13, on.shape(), nesting::rows), 6, 3);
      gather_rows_plan plan(x);
      nn::sparse_adam<double, Device> optimizer(0.1);
      const mesh<Device> here(self::world(), mesh_shape(), on.queue());
      for (int round = 0; round < 3; ++round) {
        plan.assign({12, on.rank(), 3, 12, round});
        const auto g = generate<vertex_rows, double>(here, plan.shape(0), field(3));
        plan.add(0, g);
        const std::vector<global_index> rows = plan.touched_rows();
        dense<double, vertex_rows, Device> sums(
            here, {static_cast<global_index>(rows.size()), x.col_range().size()});
        plan.take(sums);
        optimizer.step(x, rows, sums);
      }
      return collect(x);
    };
    const mesh<cuda_device> m(world, {2, 1, 1});
    const host_mesh on_host(world, {2, 1, 1});
    for (const layout l : {vertex_rows, layout{{}, partition::every_axis}})
      CHECK(largest_difference(result(m, l), result(on_host, l)) < 1e-14);
  });
}

}  // namespace test_device_sparse_adam
