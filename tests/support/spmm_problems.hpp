// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with a distributed A: what is multiplied, how it is distributed, and what every product must show.
#include "partita/algebra/spmm.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_support {

struct spmm_problem {
  matrix_shape shape;  ///< of A
  global_index width;
  std::vector<triplet<double>> entries = sparse_entries(shape, 3);
};

inline constexpr spmm_options every_option[] = {{stationary::c, row_exchange::full},
                                                {stationary::c, row_exchange::sparsity_aware},
                                                {stationary::a, row_exchange::full},
                                                {stationary::a, row_exchange::sparsity_aware},
                                                {stationary::automatic, row_exchange::automatic}};

/// Blocks that grow from rank to rank, the first ones empty if there are few rows.
inline blocking growing(global_index size, mesh_shape shape) {
  std::vector<global_index> sizes;
  for (global_index r = 0, done = 0; r < shape.row; done += sizes.back(), ++r)
    sizes.push_back(r + 1 == shape.row ? size - done : size * (r + 1) / (shape.row * shape.row));
  return blocking::given(sizes, shape, nesting::rows);
}

/// Plans and runs a product twice; checks values and traffic, that the second run allocates nothing and gives
/// the same bits.
void check_product(const auto& a, layout l, const spmm_problem& p, bool transpose, spmm_options options) {
  const auto& m = a.mesh();
  const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
  const auto x = generate<double>(m, l, a.col_blocking(), features, field(0));
  dense<double, dynamic_layout, host> y(m, l, a.row_blocking(), features);
  spmm_plan plan(a, x, options);
  plan(x, y);
  const std::vector<double> once = collect(y);
  run_again(m, plan, x, y);
  CHECK(collect(y) == once);
  CHECK_MESSAGE(largest_difference(once, product(p.entries, p.shape, p.width, transpose)) < 1e-12,
                to_string(p.shape), " on ", to_string(m.shape()), transpose ? ", transposed" : "");
}

}  // namespace test_support
