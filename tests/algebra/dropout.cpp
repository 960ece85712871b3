// SPDX-License-Identifier: Apache-2.0
// Dropout, whose choices are a function of global indices.
#include "partita/algebra/dropout.hpp"

#include "partita/algebra/reductions.hpp"
#include "support/layers.hpp"

namespace test_dropout {

using namespace test_support;

using matrix = rows_matrix;

TEST_CASE("dropout keeps the mean, and does not depend on ranks") {
  const auto m = alone();
  const matrix_shape shape{200, 50};
  const auto ones = generate<vertex_rows, double>(m, shape, [](auto, auto) { return 1; });
  matrix dropped(m, shape);
  const dropout_mask mask{0.3, {1, 2, 3}};
  dropout(ones, dropped, mask);
  CHECK(sum(dropped) / 10000 == doctest::Approx(1).epsilon(0.02));
  for (double v : dropped.values()) CHECK((v == 0 || v == 1 / 0.7));
  const std::vector<double> serial = values(dropped);
  on_threads(6, [&](const communicator& world) {
    const mesh<host> six(world, {3, 2, 1});
    auto x = generate<vertex_rows, double>(six, shape, [](auto, auto) { return 1; });
    dropout(x, x, mask);
    CHECK(collect(x) == serial);
  });
}

}  // namespace test_dropout
