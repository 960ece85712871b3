// SPDX-License-Identifier: Apache-2.0
// Matrices over a caller's memory on a device: dense blocks and tiles of CSR arrays.

#include "partita/algebra/spmm.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"
#include "support/on_device.hpp"

namespace test_device_views {

using namespace test_support;
using device_mesh = mesh<cuda_device>;

TEST_CASE("views on a device: products with a caller's arrays, on the caller's streams") {
  const matrix_shape shape{23, 23};
  const std::vector<triplet<double>> all = sparse_entries(shape);
  const std::vector<device_queue<cuda_device>> callers(4);
  on_threads(4, [&](const communicator& world) {
    for (const mesh_shape on : {mesh_shape{4, 1, 1}, mesh_shape{2, 2, 1}}) {
      const device_queue<cuda_device>& q = callers[static_cast<std::size_t>(world.rank())];
      const device_mesh m(world, on,
                          device_queue<cuda_device>(0, on_cuda::foreign_stream{.stream = q.stream()}));
      const host_mesh on_host(world, on);
      const auto owner = distribute(on_host, grid_2d, shape, share(all, m));
      std::vector<local_index> offsets{0}, columns;
      std::vector<double> values;
      for (std::size_t t = 0; t < owner.local()->count(); ++t)
        for (const local::csr_slice<double>& part : owner.local()->parts(t))
          for (local_index i = 0; i < part.entries.rows; ++i) {
            for (local_index e = part.entries.offsets[i]; e < part.entries.offsets[i + 1]; ++e) {
              columns.push_back(part.entries.columns[e]);
              values.push_back(part.entries.values[e]);
            }
            offsets.push_back(static_cast<local_index>(columns.size()));
          }
      const on_device<local_index> o(q, offsets), c(q, columns), askew(q, columns, 1);
      const on_device<double> v(q, values);
      const auto arrays = [&](const on_device<local_index>& which) {
        return local::csr_arrays<double>{
            {o.data(), offsets.size()}, {which.data(), columns.size()}, {v.data(), values.size()}};
      };
      using device_sparse = sparse<double, dynamic_layout, cuda_device>;
      const auto a = device_sparse::view(m, grid_2d, shape, arrays(c));
      expect_error<shape_error>("the columns of a sparse block on a device are not 16 bytes aligned",
                                [&] { device_sparse::view(m, grid_2d, shape, arrays(askew)); });

      const auto x_here = generate<double>(on_host, grid_2d.dense, {23, 5}, field(0));
      const on_device<double> memory(q, {x_here.values().begin(), x_here.values().end()});
      const auto x = dense<double, dynamic_layout, cuda_device>::view(
          m, grid_2d.dense, {23, 5}, std::span<double>(memory.data(), x_here.values().size()));
      CHECK(x.values().data() == memory.data());
      for (const row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware, row_exchange::cover})
        for (const stationary kept : {stationary::a, stationary::c})
          for (const bool transpose : {false, true})
            if (kept == stationary::a || rows != row_exchange::cover)
              CHECK(largest_difference(collect(spmm(transpose ? transposed(a) : a, x, {kept, rows})),
                                       product(all, shape, 5, transpose)) < 1e-13);
    }
  });
}

}  // namespace test_device_views
