// SPDX-License-Identifier: Apache-2.0
// When a pipeline no longer follows the exact computation, and what is done then.

#include "partita/compiled/host.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_pipeline_guard {

using namespace test_support;

using trainer = nn::pipeline_trainer<double, host>;

nn::training_options two_stages() {
  return {.hidden = {6},
          .epochs = 6,
          .learning_rate = 0.05,
          .dropout = 0,
          .pipeline = {.stages = 2, .chunks = 4}};
}

std::vector<int> of(bool (nn::guarded_epochs::*property)(int) const, const nn::guarded_epochs& epochs) {
  std::vector<int> found;
  for (int e = 1; e <= 20; ++e)
    if ((epochs.*property)(e)) found.push_back(e);
  return found;
}

TEST_CASE("epochs are compared as often as the guard says, and after exact ones") {
  using epochs = nn::guarded_epochs;
  using list = std::vector<int>;
  const nn::pipeline_options how{.stages = 2, .chunks = 4, .guard = 5};
  CHECK(of(&epochs::compares, epochs(how)) == list{5, 10, 15, 20});
  CHECK(of(&epochs::exact, epochs(how)).empty());
  for (const auto change :
       {+[](nn::pipeline_options& o) { o.stages = 1; }, +[](nn::pipeline_options& o) { o.chunks = 1; },
        +[](nn::pipeline_options& o) { o.history = nn::chunk_history::exact; }}) {
    nn::pipeline_options always = how;
    change(always);
    CHECK(of(&epochs::compares, epochs(always)).empty());
    CHECK(of(&epochs::exact, epochs(always)).size() == 20);
  }
  nn::pipeline_options first = how;
  first.exact_epochs = 5;
  CHECK(of(&epochs::compares, epochs(first)) == list{6, 10, 15, 20});
  CHECK(of(&epochs::exact, epochs(first)) == list{1, 2, 3, 4, 5});
  CHECK(!epochs(first).exact(0));

  nn::pipeline_options acting = how;
  acting.on_divergence = nn::guard_action::warm_up;
  epochs warm(acting);
  warm.diverged(5);
  CHECK(of(&epochs::compares, warm) == list{11, 15, 20});
  warm.diverged(11);  // ten more
  CHECK(of(&epochs::compares, warm).empty());
  CHECK(warm.compares(22));
  acting.on_divergence = nn::guard_action::exact;
  epochs rest(acting);
  rest.diverged(5);
  CHECK(of(&epochs::compares, rest).empty());
  CHECK(rest.exact(1000000));
  acting.on_divergence = nn::guard_action::refresh;
  epochs refreshed(acting);
  CHECK(!refreshed.taken_refreshes());
  refreshed.diverged(5);
  CHECK(refreshed.refreshes());
  CHECK(refreshed.taken_refreshes());
  CHECK(!refreshed.refreshes());
}

TEST_CASE("a guard that acts takes the step of an epoch that diverges with the exact gradients") {
  nn::training_options exact = two_stages(), guarded = exact;
  exact.pipeline.history = nn::chunk_history::exact;
  guarded.pipeline.guard = 1;
  guarded.pipeline.least_cosine = 1;  // every epoch diverges
  const io::dataset d = directed_graph();
  on_threads(2, [&](const communicator& world) {
    const auto trained = [&](nn::training_options o, nn::guard_action action) {
      o.pipeline.on_divergence = action;
      trainer t(mesh<host>(world, {2, 1, 1}), d, o, row_1d, {1, 1, 1});
      for (int e = 1; e <= 5; ++e) CHECK(t.epoch(e).epoch == e);
      return all_values(t);
    };
    const std::vector<double> wanted = trained(exact, nn::guard_action::report);
    for (const auto action : {nn::guard_action::refresh, nn::guard_action::warm_up, nn::guard_action::exact})
      CHECK(largest_difference(trained(guarded, action), wanted) < 1e-12);
    CHECK(largest_difference(trained(guarded, nn::guard_action::report), wanted) > 1e-6);
  });
}

TEST_CASE("a guard that stops does so after an observer saw the epoch, and says why") {
  nn::training_options o = two_stages();
  o.pipeline.guard = 2;
  o.pipeline.tolerance = 0;
  o.pipeline.on_divergence = nn::guard_action::stop;
  const io::dataset d = directed_graph();
  on_threads(2, [&](const communicator& world) {
    trainer t(mesh<host>(world, {2, 1, 1}), d, o, row_1d, {1, 1, 1});
    std::string why;
    int seen = 0;
    const auto observe = [&](const nn::epoch_report& r) {
      seen = r.epoch;
      if (r.comparison) why = r.comparison->reason;
    };
    expect_error<error>(
        "directed graph: the pipeline no longer follows the exact computation in epoch 2: its loss is ",
        [&] { t.run(observe); });
    CHECK(seen == 2);
    CHECK(why.find(", the exact one ") != std::string::npos);
  });
  CHECK(nn::divergence({.epoch = 3, .loss = 1, .exact_loss = 1.05, .gradient_cosine = 0.5}, o.pipeline) ==
        "its loss is 1.000000, the exact one 1.050000, and the tolerance 0.000000");
  o.pipeline.tolerance = 0.1;
  CHECK(nn::divergence({.epoch = 3, .loss = 1, .exact_loss = 1.05, .gradient_cosine = 0.5}, o.pipeline)
            .empty());
  CHECK(nn::divergence({.epoch = 3, .loss = 1, .exact_loss = 1.05, .gradient_cosine = 0.05}, o.pipeline) ==
        "the cosine of the angle between the gradients is 0.050000, less than 0.500000");
}

}  // namespace test_pipeline_guard
