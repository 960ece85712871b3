// SPDX-License-Identifier: Apache-2.0
// What a variable says of itself.
#include "partita/autodiff/variable.hpp"

#include "partita/autodiff/elementwise.hpp"
#include "partita/comm/threads.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_variable {

using namespace partita;
using namespace test_support;

TEST_CASE("a variable has the shape, layout and blocks of its matrix") {
  on_threads(2, [](const communicator& world) {
    const mesh<host> m(world, {2, 1, 1});
    dense<double, vertex_rows, host> x(m, {5, 3});
    host_tape t(m);
    const auto c = t.constant(x), h = t.input(x);
    const auto z = relu(c + h);
    CHECK(z.shape() == matrix_shape{5, 3});
    CHECK(z.layout() == vertex_rows);
    CHECK(z.row_blocking() == x.row_blocking());
    CHECK(!c.needs_gradient());
    CHECK(z.needs_gradient());
    CHECK(&z.on() == &t);
  });
}

}  // namespace test_autodiff_variable
