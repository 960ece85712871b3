// SPDX-License-Identifier: Apache-2.0
#include "partita/train/task_scores.hpp"

#include "partita/train/summary.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_task_scores {

using namespace test_support;

TEST_CASE("scores of the last rank reach every rank") {
  on_threads(3, [](const communicator& world) {
    nn::task_scores all;
    if (world.rank() == 2) {
      all.task = io::task::values;
      all.parts[0] = {.score = 0.25, .confusion = {1, 2, 3, 4}};
      all.parts[2].mean_absolute = 3;
    }
    all = nn::broadcast(world, all, 2);
    CHECK(all.task == io::task::values);
    CHECK(all.parts[0].score == 0.25);
    CHECK(all.parts[0].confusion[2] == 3);
    CHECK(std::isnan(all.parts[1].score));
    CHECK(all.parts[2].mean_absolute == 3);
  });
}

TEST_CASE("counts of parts add up to those of the whole") {
  nn::score_counts sum{{1, 2}, 3};
  sum += {{3, 1}, 4};
  const io::dataset classes = directed_graph(), labels = with_several_labels(classes);
  using enum io::split_part;
  CHECK(sum.score(classes, test) == 4.0 / 7);
  CHECK(sum.score(labels, test) == 8.0 / 11);
  CHECK(nn::score_counts{{0, 5}, 5}.score(labels, test) == 0);
  CHECK(std::isnan(nn::score_counts{}.score(classes, test)));
}

TEST_CASE("R^2 by hand; a column that does not deviate is predicted or not") {
  io::dataset d;
  d.task = io::task::values;
  d.vertices = 3, d.classes = 2;
  d.values = std::vector<double>{1, 5, 3, 5, 9, 9};
  d.split = std::vector<std::uint8_t>{1, 1, 2};
  nn::score_counts c{{0.5}, 2};
  c += {{0.5, 7}, 0};
  CHECK(c.score(d, io::split_part::train) == (1 - 1.0 / 2 + 0) / 2);
  c.sums[1] = 0;
  CHECK(c.score(d, io::split_part::train) == (1 - 1.0 / 2 + 1) / 2);
}

}  // namespace test_task_scores
