// SPDX-License-Identifier: Apache-2.0
// The matrices that models propagate with, by hand.
#include "partita/nn/normalization.hpp"

#include "support/layers.hpp"

namespace test_normalization {

using namespace test_support;

TEST_CASE("normalisation of two vertices and one weighted edge") {
  const std::vector<triplet<double>> edge{{1, 0, 3.0}};  // from 0 to 1
  const auto a = nn::gcn_normalized(self::world(), 2, edge);
  REQUIRE(a.size() == 3);
  CHECK(a[0] == triplet<double>{1, 0, 3.0 * (1 / std::sqrt(4.0))});
  CHECK(a[1] == triplet<double>{0, 0, 1.0});
  CHECK(a[2] == triplet<double>{1, 1, 0.25});
}

TEST_CASE("a loop that is there: A + I adds to it or leaves it, on any number of ranks") {
  for (const int ranks : {1, 2})
    on_threads(ranks, [&](const communicator& world) {
      std::vector<triplet<double>> mine;
      if (world.rank() == ranks - 1) mine = {{0, 0, 3.0}, {1, 0, 1.0}};
      for (const auto& [loops, corner] :
           {std::pair(nn::self_loops::sum, 4.0), std::pair(nn::self_loops::once, 3.0)}) {
        std::vector<double> found(4, 0);
        for (const auto& e : nn::gcn_normalized(world, 2, mine, loops))
          found[static_cast<std::size_t>(2 * e.row + e.col)] += e.value;
        world.all_reduce(found);
        const double below = 1 / std::sqrt(2 * corner);
        for (std::size_t k = 0; k < 4; ++k)
          CHECK(found[k] == doctest::Approx(std::array{1.0, 0.0, below, 0.5}[k]));
      }
    });
}

TEST_CASE("the mean over in-neighbours is weighted") {
  const std::vector<triplet<double>> edges{{1, 0, 3.0}, {1, 2, 1.0}, {0, 1, 0.0}};
  CHECK(nn::mean_normalized(self::world(), 3, edges) ==
        std::vector<triplet<double>>{{1, 0, 0.75}, {1, 2, 0.25}, {0, 1, 0.0}});
}

TEST_CASE("an edge outside the graph is named") {
  const std::vector<triplet<double>> edge{{1, 7, 3.0}};
  expect_error<shape_error>("entry (1, 7) lies outside a graph of 2 vertices",
                            [&] { nn::mean_normalized(self::world(), 2, edge); });
}

}  // namespace test_normalization
