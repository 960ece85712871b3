// SPDX-License-Identifier: Apache-2.0
// What bench/results/pipeline-simulation.md quotes.
#include <cstdio>
#include <string>

#include "../support/gnnpipe_model.hpp"
#include "../support/pipeline_words.hpp"
#include "tables.hpp"

namespace bench::claims {

namespace {

using namespace gnnpipe;

double percent_off(double value, double published) { return 100 * (value / published - 1); }

void print_bubbles() {
  std::printf(
      "## Bubble: equal stages, no messages\n\n"
      "| S | K | simulated | (S - 1) / (K + S - 1) | layer by layer, (S - 1) / S |\n|---|---|---|---|---|\n");
  for (const auto& [stages, chunks] : {std::pair{2, 8}, {4, 8}, {4, 16}, {8, 32}, {8, 64}, {16, 64}}) {
    const pipeline_run run = simulate({.stages = stages, .chunks = chunks});
    std::printf("| %d | %d | %.3f %% | %.3f %% | %.1f %% |\n", stages, chunks, 100 * run.bubble(),
                100 * bench::pipeline_bubble(stages, chunks), 100 * bench::layerwise_bubble(stages));
  }
}

void print_volumes() {
  std::printf(
      "\n## Volume of an epoch, GB of 2^30 bytes: closed form (published)\n\n"
      "| graph | model | graph over 8 | 8 stages | 4 stages of 2 | graph / stages | L* | speed-up of stages "
      "|\n|---|---|---|---|---|---|---|---|\n");
  double most = 0;
  for (const row& r : rows) {
    const bench::layered_network net = network(r);
    const global_index m2 = mirrors_of_hybrid(r.graph);
    most = std::max(most, volume_ratio(r));
    std::printf("| %s | %s | %.2f (%.2f) | %.2f (%.2f) | %.2f (%.2f) | %.2f | %.1f | %.2f |\n",
                std::string(r.graph.name).c_str(), std::string(name_of(r.model)).c_str(),
                gigabytes(bench::graph_parallel_words(net, gpus, r.graph.mirrors)), r.gigabytes[0],
                gigabytes(bench::pipeline_words(net, gpus)), r.gigabytes[1],
                gigabytes(bench::hybrid_words(net, hybrid_stages, hybrid_ways, m2)), r.gigabytes[2],
                volume_ratio(r), bench::break_even_layers(net, gpus, r.graph.mirrors), speed_up(r));
  }
  std::printf(
      "\nRatio of volumes: at most %.2f (published %.2f), geometric mean %.2f (published %.2f).\n"
      "Speed-up: geometric mean %.2f; the published \"average of %.2f\" is the 12th root of the product of "
      "16 "
      "(%.2f).\nOn physics stages are slower than the graph over the same GPUs:",
      most, most_volume_ratio, root_of_product(volume_ratio), mean_volume_ratio, root_of_product(speed_up),
      claimed_mean_speed_up, root_of_product(speed_up, 12));
  for (const row& r : rows)
    if (r.graph.name == physics.name)
      std::printf(" %.2f (%s)", speed_up(r), std::string(name_of(r.model)).c_str());
  std::printf(".\n");
}

/// A line of predictions: strong scaling, then what else is published of GCN.
void print_predictions(const char* what, const assumptions& a) {
  std::printf("| %s |", what);
  for (const scaling& s : strong) {
    const double seconds = predicted_reddit(s.gpus, a).seconds;
    std::printf(" %.3f, %+.1f %% |", seconds, percent_off(seconds, s.seconds));
  }
  const auto cell = [](double seconds, double published) {
    std::printf(" %.3f, %+.1f %% |", seconds, percent_off(seconds, published));
  };
  cell(predicted_weak(reddit, weak_reddit[0].seconds, weak_reddit[1].gpus, a), weak_reddit[1].seconds);
  cell(predicted_weak(flickr, weak_flickr[0].seconds, weak_flickr[1].gpus, a), weak_flickr[1].seconds);
  cell(predicted(flickr, layers, gpus, weak_flickr[0].seconds * layers / weak_layers, a).seconds,
       rows[4].seconds[1]);
  std::printf("\n");
}

void print_times() {
  const link between = fitted_link();
  const double overhead = overhead_of_small_chunks(), beside_nodes = overhead_of_small_chunks(true);
  std::printf(
      "\n## Seconds of an epoch of GCN: predicted, and how far off\n\n"
      "A message: %.1f us + bytes / (%.2f GB/s), least squares over the 16 published times of "
      "communication.\n"
      "Overhead of a layer, chunk and direction: %.0f us, from the weak scaling of flickr (%.0f us with slow "
      "links between nodes).\n\n"
      "| assumed | reddit 1 | 2 | 4 | 8 | 16 | weak: reddit 16 | flickr 16 | flickr 8 |\n"
      "|---|---|---|---|---|---|---|---|---|\n| published |",
      1e6 * between.latency, 1e-9 / between.byte_time, 1e6 * overhead, 1e6 * beside_nodes);
  for (const scaling& s : strong) std::printf(" %.3f |", s.seconds);
  std::printf(" %.3f | %.3f | %.3f |\n", weak_reddit[1].seconds, weak_flickr[1].seconds, rows[4].seconds[1]);
  print_predictions("messages beside work, no barrier", {.lock_step = false});
  print_predictions("lock-step", {});
  print_predictions("lock-step, f x H in the first layer", {.wide_first_layer = true});
  print_predictions("lock-step, slow links between nodes", {.slow_between_nodes = true});
  print_predictions("lock-step, published imbalance", {.imbalance = imbalance_of_8});
  print_predictions("lock-step, slow links, imbalance",
                    {.slow_between_nodes = true, .imbalance = imbalance_of_8});
  print_predictions("**lock-step, overhead**", {.overhead = overhead});
  print_predictions("lock-step, overhead, slow links",
                    {.overhead = beside_nodes, .slow_between_nodes = true});
  const row& published = rows[8];
  const pipeline_run run = predicted_reddit(gpus, {.overhead = overhead});
  std::printf(
      "\nReddit, 8 stages: %.3f s with lock-step alone, %.3f s with overhead; published %.3f s in the table "
      "of "
      "methods, %.3f s in that of scaling.\nOf these %.3f s each stage works %.3f s, links are busy %.3f s; "
      "published: %.3f s and %.3f s.\n",
      predicted_reddit(gpus, {}).seconds, run.seconds, published.seconds[1], strong[3].seconds, run.seconds,
      run.busy(0), run.links[0], work_of_8, published.waiting[1]);
}

void print_faster() {
  const row& published = rows[8];
  const double alone = strong[0].seconds, apart = graph_parallel_seconds(published, alone, false),
               beside = graph_parallel_seconds(published, alone, true);
  std::printf(
      "\n## The same with communication beside work\n\n"
      "Reddit's GCN, graph over 8: %.3f s of work + %.3f s of communication = %.3f s (published %.3f s); "
      "beside each other %.3f s.\nThe published pipeline gains %.2f times over the one and %.2f times over "
      "the "
      "other.\n\n"
      "## No barrier, 8 stages: more chunks, or several runs of layers per stage\n\n"
      "| K | runs of layers per stage | s, no overhead | bubble | s, with overhead | bubble |\n"
      "|---|---|---|---|---|---|\n",
      alone / gpus, published.waiting[0], apart, published.seconds[0], beside,
      published.seconds[0] / published.seconds[1], beside / published.seconds[1]);
  const double overhead = overhead_of_small_chunks();
  for (const int per_gpu : {4, 8, 16})
    for (const int parts : {1, 2, 4}) {
      const assumptions without{.lock_step = false, .chunks_per_gpu = per_gpu, .parts = parts};
      assumptions with = without;
      with.overhead = overhead;
      const pipeline_run fast = predicted_reddit(gpus, without), slow = predicted_reddit(gpus, with);
      std::printf("| %d | %d | %.3f | %.1f %% | %.3f | %.1f %% |\n", per_gpu * gpus, parts, fast.seconds,
                  100 * fast.bubble(), slow.seconds, 100 * slow.bubble());
    }
}

}  // namespace

void print_pipelines() {
  print_bubbles();
  print_volumes();
  print_times();
  print_faster();
}

}  // namespace bench::claims
