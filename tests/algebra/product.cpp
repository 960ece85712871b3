// SPDX-License-Identifier: Apache-2.0
// What plans run: the same product by each schedule, and what they say of it before.
#include "partita/algebra/product.hpp"

#include "support/spmm_problems.hpp"
#include "support/summing.hpp"

namespace test_product {

using namespace test_support;

constexpr matrix_shape shape{14, 11};
constexpr global_index width = 5;

TEST_CASE("products of A and A^T, fast and exact: the reference, and the words that were predicted") {
  const auto entries = sparse_entries(shape, 3);
  const auto check = [&](const host_mesh& m, const auto& a, bool transpose) {
    const auto operand = algebra::detail::multiplied_matrix<double, host>::of(a);
    CHECK(operand.is_stored == !transpose);
    const blocking features = blocking::even(width, m.shape(), nesting::cols);
    const auto multiply = algebra::detail::make_product<double>(operand, features, grid_2d.dense, {});
    const algebra::detail::product_facts facts = multiply->facts();
    CHECK((facts.supports_beta || !facts.fuses_epilogue));
    CHECK(!(m.reproducible() && facts.supports_beta));
    const auto x = generate<double>(m, grid_2d.dense, operand.cols, features, field(0));
    dense<double, dynamic_layout, host> y(m, grid_2d.dense, operand.rows, features);
    m.ledger().clear();
    (*multiply)(x.local(), y.local(), {});
    CHECK(m.ledger().total() == facts.predicted);
    CHECK(largest_difference(collect(y), product(entries, shape, width, transpose)) < 1e-12);
  };
  for (const summation sums : {summation::fast, summation::reproducible})
    on_threads(4, [&](const communicator& world) {
      const mesh<host> m(world, {2, 2, 1}, summing(sums));
      const auto a = distribute(m, grid_2d, shape, share(entries, m), symmetry::one_way);
      check(m, a, false);
      check(m, transposed(a), true);
    });
}

}  // namespace test_product
