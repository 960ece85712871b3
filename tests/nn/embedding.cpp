// SPDX-License-Identifier: Apache-2.0
// Learned input rows: the same on any ranks and in any layout, in their range, other ones for other seeds.
#include "partita/nn/embedding.hpp"

#include "support/matrices.hpp"

namespace test_embedding {

using namespace test_support;

TEST_CASE("embeddings depend on the seed and the place alone") {
  const global_index n = 13, width = 5;
  const double bound = std::sqrt(6.0 / static_cast<double>(n + width));
  std::vector<double> expected;
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, {3, 1, 1}, {2, 2, 2}})
    on_mesh(shape, [&](const host_mesh& m) {
      for (const layout l : {vertex_rows, layout{{}, partition::every_axis}}) {
        const auto rows = blocking::even(n, m.shape(), nesting::rows);
        const auto made = [&](std::uint64_t seed) {
          return collect(nn::initial_embedding<double>(m, l, rows, width, seed));
        };
        const std::vector<double> x = made(3);
        if (m.size() == 1) expected = x;
        CHECK(x == expected);
        CHECK(x != made(4));
        double largest = 0, sum = 0;
        for (const double v : x) largest = std::max(largest, std::abs(v)), sum += v;
        CHECK(largest <= bound);
        CHECK(largest > 0.9 * bound);
        CHECK(std::abs(sum / static_cast<double>(n * width)) < 0.2 * bound);
      }
    });
}

}  // namespace test_embedding
