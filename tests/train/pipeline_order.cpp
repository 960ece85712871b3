// SPDX-License-Identifier: Apache-2.0
// The order of chunks in a pipeline: a permutation, drawn evenly, the same for the same seed and epoch.
#include "partita/train/pipeline_order.hpp"

#include <doctest/doctest.h>
#include <map>

namespace test_pipeline_order {

using namespace partita;
using nn::chunk_order, nn::direction;

TEST_CASE("chunk_order is a permutation, the identity where it is not shuffled") {
  for (const int chunks : {1, 2, 3, 8, 33}) {
    std::vector<int> ascending = chunk_order(5, 7, chunks, false);
    for (int k = 0; k < chunks; ++k) CHECK(ascending[static_cast<std::size_t>(k)] == k);
    std::vector<int> order = chunk_order(5, 7, chunks, true);
    CHECK(order == chunk_order(5, 7, chunks, true));
    std::sort(order.begin(), order.end());
    CHECK(order == ascending);
  }
}

TEST_CASE("chunk_order depends on seed and epoch") {
  CHECK(chunk_order(5, 7, 33, true) != chunk_order(5, 8, 33, true));
  CHECK(chunk_order(5, 7, 33, true) != chunk_order(6, 7, 33, true));
}

TEST_CASE("chunk_order: all orders of three chunks are about equally frequent") {
  std::map<std::vector<int>, int> counts;
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) ++counts[chunk_order(1, epoch, 3, true)];
  CHECK(counts.size() == 6);
  for (const auto& [order, count] : counts) CHECK(doctest::Approx(count).epsilon(0.1) == 1000);
}

TEST_CASE("chunk_order refuses a pipeline without chunks") {
  CHECK_THROWS_WITH_AS(chunk_order(1, 1, 0, true), "a pipeline has at least one chunk, not 0", error);
}

TEST_CASE("pipeline_tasks: all chunks forward, then backward in the reverse order") {
  const std::vector<int> order{2, 0, 1};
  const std::vector<nn::pipeline_task> expected{{direction::forward, 2},  {direction::forward, 0},
                                                {direction::forward, 1},  {direction::backward, 1},
                                                {direction::backward, 0}, {direction::backward, 2}};
  CHECK(nn::pipeline_tasks(order) == expected);
}

}  // namespace test_pipeline_order
