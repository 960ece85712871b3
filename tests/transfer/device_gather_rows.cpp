// SPDX-License-Identifier: Apache-2.0
// Rows gathered and added back on a device, as on the host; further use allocates nothing.

#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/transfer/distribute.hpp"
#include "partita/transfer/gather_rows.hpp"
#include "support/matrices.hpp"

namespace test_device_gather_rows {

using namespace test_support;

TEST_CASE("gather_rows and scatter on a device: cut, replicated, in slices") {
  on_threads(4, [](const communicator& world) {
    const mesh<cuda_device> m(world, {2, 2, 1});
    const host_mesh on_host(world, {2, 2, 1});
    const auto result = [&](const auto& on, layout l, transfer::gathered_columns columns) {
      const auto x = generate<double>(on, l, {13, 7}, field(1));
      auto z = generate<double>(on, l, {13, 7}, field(2));
      gather_rows_plan plan(x, columns);
      const mesh here(self::world(), mesh_shape(), on.queue());
      std::vector<double> values;
      std::uint64_t allocations = 0;
      for (int round = 0; round < 3; ++round) {
        const global_index me = on.rank();
        const std::vector<std::vector<global_index>> lists = {
            {12, me, 3, 12, round}, std::vector<global_index>(static_cast<std::size_t>(2 * me), 5)};
        const global_index width = columns == transfer::gathered_columns::own ? x.col_range().size() : 7;
        auto y = generate<vertex_rows, double>(here, {5, width}, field(3));
        const auto before = on.queue().meter()->allocations();
        plan.assign(lists);
        plan.start(x);
        plan.finish();
        plan.rows(0, x, y);
        plan.add(0, y);
        plan.scatter(z);
        allocations = on.queue().meter()->allocations() - before;
        for (const double v : collect(y)) values.push_back(v);
      }
      CHECK(allocations == 0);
      for (const double v : collect(z)) values.push_back(v);
      return values;
    };
    for (const layout l : {layout{axis::row, axis::col}, layout{axis::row, {}}, vertex_rows})
      for (const transfer::gathered_columns columns :
           {transfer::gathered_columns::whole, transfer::gathered_columns::own})
        CHECK(largest_difference(result(m, l, columns), result(on_host, l, columns)) < 1e-14);
  });
}

}  // namespace test_device_gather_rows
