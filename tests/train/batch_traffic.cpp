// SPDX-License-Identifier: Apache-2.0
// The closed forms of what placements receive, against what they received.
#include "partita/train/batch_traffic.hpp"

#include <doctest/doctest.h>
#include <map>

#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/mini_batches.hpp"
#include "support/ranks.hpp"

namespace test_batch_traffic {

using namespace test_support;

using placed_words = std::map<placement, global_index>;

/// The directed graph with another number of features.
io::dataset graph_with_features(global_index features) {
  io::dataset d = directed_graph(91);
  std::vector<float> x;
  for (global_index i = 0; i < d.vertices * features; ++i)
    x.push_back(static_cast<float>(base::random_uniform(8, i, 0)));
  d.features = features;
  d.vertex_features = io::feature_table(d.vertices, features, std::move(x));
  return d;
}

/// The placement that `automatic` takes, and the words for which it does.
std::pair<placement, placed_words> predicted(int ranks, const io::dataset& d, nn::training_options o) {
  std::pair<placement, placed_words> result;
  o.mini_batch.placement = placement::automatic;
  on_threads(ranks, [&](const communicator& world) {
    const nn::training_result r = batch_trainer(mesh<host>(world, {ranks, 1, 1}), d, o, row_1d).run();
    if (world.rank() != 0) return;
    result.first = r.mini_batch->placement;
    for (const auto& [how, words] : r.mini_batch->candidates) result.second[how] = words;
  });
  return result;
}

/// Words of the busiest rank in the iterations of the first epoch, without what all placements do: the sums
/// of gradients and losses. The mean over the iterations.
global_index received(int ranks, const io::dataset& d, nn::training_options o, placement how) {
  o.mini_batch.placement = how;
  global_index words = 0;
  on_threads(ranks, [&](const communicator& world) {
    const mesh<host> m(world, {ranks, 1, 1});
    batch_trainer t(m, d, o, row_1d);
    world.ledger().clear();
    for (std::size_t i = 0; i < t.iterations(); ++i) t.gradients(1, i);
    const traffic mine =
        world.ledger().total([](const comm::ledger_entry& e) { return e.kind != operation::all_reduce; });
    const global_index most = world.all_reduce(mine.words, reduction::max);
    if (world.rank() == 0) words = most / static_cast<global_index>(t.iterations());
  });
  return words;
}

TEST_CASE("every placement receives the words of its closed form, and automatic takes the one with least") {
  std::map<placement, int> wins;
  for (const char* model : {"gcn", "sage", "gat"})
    for (const global_index features : {3, 24, 192})
      for (const global_index hidden : {2, 12})
        for (const int ranks : {1, 2, 5})
          for (const std::vector<sampling::fanout>& fanouts : {std::vector<sampling::fanout>{2, 2}, {6, 3}}) {
            if (std::string(model) != "gcn" && (hidden == 2 || ranks == 1)) continue;
            if (sanitized && (features == 24 || ranks == 5 || (features == 3) == (hidden == 12))) continue;
            INFO("model ", model, ", features ", features, ", hidden ", hidden, ", ranks ", ranks);
            const io::dataset d = graph_with_features(features);
            nn::training_options o{.model = model,
                                   .hidden = {hidden},
                                   .heads = 2,
                                   .epochs = 1,
                                   .mini_batch = {.batch = 11, .fanouts = fanouts, .sampled_scores = true}};
            o.mini_batch.micro_batches = fanouts[0] == 2 ? 1 : 3;
            const auto [chosen, words] = predicted(ranks, d, o);
            REQUIRE(words.size() == 4);
            for (const auto& [how, most] : words) {
              CAPTURE(static_cast<int>(how));
              CHECK(received(ranks, d, o, how) == most);
              CHECK(words.at(chosen) <= most);
            }
            if (ranks > 1) ++wins[chosen];
          }
  CHECK(wins[placement::owner] > 0);
  CHECK(wins[placement::column] > 0);
}

}  // namespace test_batch_traffic
