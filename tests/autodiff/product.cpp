// SPDX-License-Identifier: Apache-2.0
// One plan serves all products of a tape with a matrix in a layout and a width.
#include "partita/autodiff/product.hpp"

#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/layers.hpp"

namespace test_autodiff_product {

using namespace partita;
using namespace test_support;

TEST_CASE("a product is planned once, another one for the transpose, another width or matrix") {
  const host_mesh m = alone();
  using matrix = partita::sparse<double, dynamic_layout, host>;
  for (const symmetry kind : {symmetry::general, symmetry::one_way}) {
    const auto made = [&]() -> matrix {
      return distribute(m, row_1d, {3, 3}, std::vector<triplet<double>>{{0, 1, 1}, {1, 0, 1}}, kind);
    };
    const matrix a = made(), copy = a, other = made();
    autodiff::detail::planned_products<double, host> products;
    const auto of = [&](const matrix& x, global_index columns) {
      return products(x, vertex_rows, blocking::even(columns, m.shape(), nesting::cols));
    };
    const auto first = of(a, 4);
    CHECK(of(copy, 4) == first);
    CHECK(of(transposed(transposed(a)), 4) == first);
    CHECK(of(a, 5) != first);
    CHECK(of(other, 4) != first);
    const auto back = of(transposed(a), 4);
    CHECK(back != first);
    CHECK(of(transposed(copy), 4) == back);
  }
}

}  // namespace test_autodiff_product
