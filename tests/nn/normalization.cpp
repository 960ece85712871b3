// SPDX-License-Identifier: Apache-2.0
// The matrices that models propagate with, by hand.
#include "partita/nn/normalization.hpp"

#include <doctest/doctest.h>

#include "support/layers.hpp"

namespace test_normalization {

using namespace partita;
using namespace test_support;

TEST_CASE("normalisation of two vertices and one weighted edge") {
  const std::vector<triplet<double>> edge{{1, 0, 3.0}};  // from 0 to 1
  const auto a = nn::gcn_normalized(self::world(), 2, edge);
  REQUIRE(a.size() == 3);
  CHECK(a[0] == triplet<double>{1, 0, 3.0 * (1 / std::sqrt(4.0))});
  CHECK(a[1] == triplet<double>{0, 0, 1.0});
  CHECK(a[2] == triplet<double>{1, 1, 0.25});
}

TEST_CASE("an edge outside the graph is named") {
  const std::vector<triplet<double>> edge{{1, 7, 3.0}};
  expect_error<shape_error>("entry (1, 7) lies outside a graph of 2 vertices",
                            [&] { nn::mean_normalized(self::world(), 2, edge); });
}

}  // namespace test_normalization
