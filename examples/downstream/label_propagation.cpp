// SPDX-License-Identifier: Apache-2.0
/// Label propagation: Y = S Y, then the labels of the training set are put back; S is normalised as for GCN.
#include <cstdio>

#include <partita/compiled/algebra.hpp>
#include <partita/partita.hpp>
using namespace partita;

int main() {
  const io::dataset data = io::karate_club();
  threads::run(3, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(row_1d, world.size()));
    const graph::propagation_matrices<double, host> graph(m, data, {}, row_1d);
    const auto s = graph.gcn_normalized();  // (n/p, n)
    const auto given = [&](global_index v, global_index c, double now) {
      const auto i = static_cast<std::size_t>(v);
      return data.split[i] == static_cast<std::uint8_t>(io::split_part::train) ? double(data.labels[i] == c)
                                                                               : now;
    };
    auto y = generate<double>(m, row_1d.dense, {data.vertices, data.classes}, [](auto, auto) { return 0.0; }),
         next = spmm(s, y);  // (n/p, C)
    spmm_plan multiply(s, y);
    for (int k = 0; k < 50; ++k) {
      transform_indexed(y, y, given);
      multiply(y, next);
      std::swap(y, next);
    }
    const std::vector<double> all = collect(y);  // (n, C)
    double right = 0;
    for (std::size_t v = 0; v < data.labels.size(); ++v) {
      const auto row = all.begin() + static_cast<std::ptrdiff_t>(v) * data.classes;
      right += std::max_element(row, row + data.classes) - row == data.labels[v];
    }
    if (world.rank() == 0)
      std::printf("%.1f %% of the labels\n", 100 * right / static_cast<double>(data.vertices));
  });
}
