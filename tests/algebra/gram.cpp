// SPDX-License-Identifier: Apache-2.0
// Gram matrices on every layout: values against loops over the whole matrix, symmetry, what travels.
#include "partita/algebra/gram.hpp"

#include "support/matrices.hpp"

namespace test_gram {

using namespace test_support;

constexpr auto shapes = {matrix_shape{23, 10}, matrix_shape{3, 7}, matrix_shape{19, 1}, matrix_shape{5, 0},
                         matrix_shape{0, 4}};

double column_product(global_index rows, global_index i, global_index j) {
  double sum = 0;
  for (global_index k = 0; k < rows; ++k) sum += element(k, i, 1) * element(k, j, 1);
  return sum;
}

TEST_CASE("gram: X^T X on every layout, and what travels") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1));
    const auto g = gram(x);
    const layout wide = partition::full_width(l);
    same(heard(m),
         redistributed(m.shape(), m.at(), x.row_blocking(), x.col_blocking(), l, wide) +
             all_reduced(size.cols * size.cols, partition::rank_in_group(m.shape(), wide.rows, m.at()),
                         m.shape().size(wide.rows)),
         "gram");
    check_equals(
        g, [&](global_index i, global_index j) { return column_product(size.rows, i, j); }, 1e-13, "gram");
  });
}

TEST_CASE_TEMPLATE("gram: symmetric bit for bit", T, float, double) {
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{2, 3, 1}})
    on_mesh(shape, [](const host_mesh& m) {
      const auto x = generate<vertex_rows, T>(m, {301, 37}, field(1));
      const auto g = gram(x);
      const auto block = g.local();
      for (local_index i = 0; i < block.rows; ++i)
        for (local_index j = 0; j < i; ++j) CHECK(block(i, j) == block(j, i));
    });
}

}  // namespace test_gram
