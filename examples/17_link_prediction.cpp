// SPDX-License-Identifier: Apache-2.0
/// Predicts links of a graph: a part of its edges is taken out, a GCN learns rows of vertices from what is
/// left, and DistMult scores pairs. 17_link_prediction DIR reads edges.npy of a data directory, such as
/// Cora's; without it the graph is Zachary's karate club.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include <partita/compiled/host.hpp>
#include <partita/graph/link_split.hpp>
#include <partita/io/npy.hpp>
#include <partita/partita.hpp>
#include <partita/train/link_trainer.hpp>

using namespace partita;

/// A graph without features, which learns 32 numbers for each vertex.
io::dataset edges_of(const std::filesystem::path& folder) {
  io::dataset data;
  data.name = folder.string();
  const auto table = io::read_npy<std::int64_t>(folder / "edges.npy");  // (edges, 2)
  for (std::size_t k = 0; k < table.values.size(); k += 2) {
    data.edges.push_back({table.values[k], table.values[k + 1]});
    data.vertices = std::max({data.vertices, table.values[k] + 1, table.values[k + 1] + 1});
  }
  return data;
}

int main(int argc, char** argv) {
  nn::training_options options{.model = "gcn", .hidden = {16}, .epochs = 100, .weight_decay = 0, .seed = 1};
  options.dropout = 0.2, options.evaluate_every = options.epochs;
  options.embedding = argc > 1 ? 32 : 0;
  options.links = {.width = 16, .decoder = nn::link_decoding::distmult, .negatives = 2, .hits = 10};
  // No edge of a validation or test pair is left, in either direction.
  const io::dataset data =
      graph::split_links(argc > 1 ? edges_of(argv[1]) : io::karate_club(),
                         {.validation = 0.05, .test = 0.2, .columns = options.links.width, .seed = 1});
  std::printf("%zu edges for messages, %zu validation and %zu test links\n", data.edges.size(),
              data.validation_links.size(), data.test_links.size());
  bool right = true;
  threads::run(4, [&](const communicator& world) {
    for (const policy& p : {row_1d, grid_2d, feature_column}) {
      const mesh<host> m(world, default_mesh(p, world.size()));
      nn::link_trainer<double, host> training(m, data, options, p);
      const double before = training.scores().parts[2].score;
      const nn::training_result result = training.run();
      const nn::part_scores& test = result.scores.parts[2];
      // The scores of any pairs, on every rank.
      const auto scores = nn::scores_of_pairs(training.decoder(), training.evaluate(),
                                              std::span<const io::edge>(data.test_links));
      if (world.rank() != 0) continue;
      std::printf(
          "%-15s loss %.4f -> %.4f  test MRR %.3f -> %.3f, Hits@10 %.2f  first score %.3f  %d words\n",
          std::string(p.name).c_str(), result.epochs.front().loss, result.epochs.back().loss, before,
          test.score, test.hits, scores.front(), int(result.words_received.total));
      right = right && test.score > before &&
              result.words_received.total == result.predicted_words_received.total;
    }
  });
  std::printf("links %s\n", right ? "are ranked higher than before training" : "are NOT ranked as expected");
  return right ? 0 : 1;
}
