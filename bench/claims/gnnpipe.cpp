// SPDX-License-Identifier: Apache-2.0
// GNNPipe: volumes, times by the simulator, and what a pipeline computes.
#include <algorithm>

#include "../support/gnnpipe_model.hpp"
#include "claim.hpp"
#include "runs.hpp"

namespace bench::claims {

namespace {

using namespace gnnpipe;
using partita::row_1d;

double hybrid_gigabytes(const row& r) {
  return gigabytes(hybrid_words(network(r), hybrid_stages, hybrid_ways, mirrors_of_hybrid(r.graph)));
}

/// Words that pass from stage to stage in an epoch of a small network.
global_index boundary_words_of(const char* model, int stages, global_index vertices, global_index width) {
  nn::training_options o;
  o.model = model, o.hidden = {width}, o.layers = 8, o.epochs = 2;
  o.pipeline.stages = stages, o.pipeline.chunks = 4;
  const auto r = train(random_graph(vertices, 4, 9, 3), o, row_1d, {stages, 1, 1});
  return r.pipeline->boundary_words.total;
}

outcome volumes() {
  parts p;
  double most = 0;
  for (const row& r : rows) {
    const layered_network net = network(r);
    const double found[] = {gigabytes(graph_parallel_words(net, gpus, r.graph.mirrors)),
                            gigabytes(pipeline_words(net, gpus)), hybrid_gigabytes(r)};
    for (int i = 0; i < 3; ++i)  // published to two digits behind the point
      p.require(std::abs(found[i] - r.gigabytes[i]) <= 0.01 * r.gigabytes[i] + 0.005,
                text("%s %s: %.3f GB instead of %.2f", std::string(r.graph.name).c_str(),
                     std::string(name_of(r.model)).c_str(), found[i], r.gigabytes[i]));
    most = std::max(most, volume_ratio(r));
  }
  const double mean = root_of_product(volume_ratio);
  p.near(most, most_volume_ratio, 0.01, "largest ratio");
  p.near(mean, mean_volume_ratio, 0.01, "mean ratio");
  for (const int stages : {2, 4})
    for (const auto& [model, shared] : {std::pair{"gcn", 0}, {"gcnii", 1}})
      p.equal(boundary_words_of(model, stages, 37, 6), 2 * (stages - 1) * 37 * 6 * (1 + shared),
              text("%s, %d stages", model, stages));
  return p.result(
      text("all 48 volumes within 1 %%; at most %.2f, mean %.2f; ledgers of 2 and 4 stages equal "
           "2 (S-1) n H (1+s)",
           most, mean));
}

/// Seconds of an epoch of the graph over 8 GPUs, of 8 stages, and of 4 stages of 2 ways.
std::array<double, 3> predicted_seconds(const row& r) {
  // what crosses between ways: least squares over the published times of the graph over 8
  double volume_squared = 0, volume_times_seconds = 0;
  for (const row& other : rows) {
    const double bytes = other.gigabytes[0] * gigabyte / gpus;
    volume_squared += bytes * bytes, volume_times_seconds += bytes * other.waiting[0];
  }
  const double halo_time = volume_times_seconds / volume_squared;
  const layered_network net = network(r);
  const double work = r.seconds[0] - r.waiting[0];  // of a GPU, without communication
  const auto pipeline = [&](int stages, int chunks, double chunk_work) {
    pipeline_costs costs{.stages = stages, .chunks = chunks};
    costs.forward = costs.backward = {chunk_work / 2 + overhead_of_small_chunks() * layers / stages};
    costs.latency = fitted_link().latency, costs.byte_time = {fitted_link().byte_time};
    costs.bytes = static_cast<double>(net.vertices * net.width * (1 + net.shared)) * sizeof(float) /
                  (chunks_per_gpu * gpus);
    costs.lock_step = true;
    return simulate(costs).seconds;
  };
  constexpr int chunks = chunks_per_gpu * gpus;
  const double halo =
      static_cast<double>(bytes_of<float>(2 * net.layers * net.width * mirrors_of_hybrid(r.graph))) / gpus;
  return {work + halo_time * gigabytes(graph_parallel_words(net, gpus, r.graph.mirrors)) * gigabyte / gpus,
          pipeline(gpus, chunks, work / chunks),
          pipeline(hybrid_stages, chunks / hybrid_ways, hybrid_ways * work / chunks) + halo_time * halo};
}

outcome best_method() {
  parts p;
  int right = 0;
  std::string depths;
  for (const row& r : rows) {
    const auto found = predicted_seconds(r);
    const auto best = std::ranges::min_element(found) - found.begin();
    const auto published = std::ranges::min_element(r.seconds) - std::begin(r.seconds);
    right += best == published;
    p.require(best == published,
              text("%s %s: %.3f, %.3f, %.3f s, published %.3f, %.3f, %.3f s",
                   std::string(r.graph.name).c_str(), std::string(name_of(r.model)).c_str(), found[0],
                   found[1], found[2], r.seconds[0], r.seconds[1], r.seconds[2]));
    if (r.model == gnnpipe::model::gcn) {
      const double depth = break_even_layers(network(r), gpus, r.graph.mirrors);
      depths += text("%s%s %.1f", depths.empty() ? "" : ", ", std::string(r.graph.name).c_str(), depth);
      const double words[] = {static_cast<double>(pipeline_words(network(r), gpus)),
                              static_cast<double>(2 * network(r).layers * r.graph.mirrors * r.graph.hidden)};
      p.near(layers * words[0] / words[1], depth, 1e-9, "break-even depth");
    }
  }
  return p.result(text("%d of 16 rows; L* = %s", right, depths.c_str()));
}

outcome same_as_whole_graph() {
  parts p;
  const io::dataset d = random_graph(41, 5, 13, 5);
  nn::training_options o;
  o.model = "gcnii", o.hidden = {6}, o.layers = 5, o.epochs = 3, o.dropout = 0.3, o.seed = 7;
  const auto whole = train(d, o, row_1d, {1, 1, 1});
  double off = 0;
  for (const auto& [stages, chunks] : {std::pair{1, 3}, {2, 1}, {3, 1}}) {
    nn::training_options with = o;
    with.pipeline.stages = stages, with.pipeline.chunks = chunks;
    const auto found = train(d, with, row_1d, {stages, 1, 1});
    for (std::size_t e = 0; e < whole.epochs.size(); ++e)
      off = std::max(off, std::abs(found.epochs[e].loss - whole.epochs[e].loss));
  }
  p.require(off < 1e-12, text("losses differ by %.1e", off));
  const double constants = history_gradient_error(d, o), orders = mean_over_orders_error(d, o);
  p.require(constants < 1e-7, text("gradients with history are off by %.1e", constants));
  p.require(orders < 1e-12, text("the mean over all orders is off by %.1e", orders));
  return p.result(
      text("K = 1 or S = 1: losses differ by %.0e; scale 1: gradients off by %.0e of finite "
           "differences; mean over 24 orders off by %.0e",
           off, constants, orders));
}

outcome bubble() {
  parts p;
  for (const auto& [stages, chunks] : {std::pair{2, 8}, {4, 8}, {4, 16}, {8, 32}, {8, 64}, {16, 64}})
    p.near(simulate({.stages = stages, .chunks = chunks}).bubble(), (stages - 1.0) / (chunks + stages - 1.0),
           1e-9, text("bubble of %d, %d", stages, chunks));
  const assumptions a{.overhead = overhead_of_small_chunks()};
  std::string shape;
  for (const scaling& s : strong) {
    const double seconds = predicted_reddit(s.gpus, a).seconds;
    shape += text("%s%.2f", shape.empty() ? "" : "/", seconds);
    p.near(seconds, s.seconds, s.gpus > 8 ? 0.2 : 0.15, text("%d stages", s.gpus));
  }
  const double at_8 = predicted_reddit(gpus, a).seconds;
  p.near(at_8, rows[8].seconds[1], 0.15, "8 stages");
  return p.result(text("bubbles equal; %.3f s at S = 8; %s s", at_8, shape.c_str()));
}

outcome overlapped_baseline() {
  parts p;
  const row& r = rows[8];
  const double alone = strong[0].seconds, beside = graph_parallel_seconds(r, alone, true);
  p.near(graph_parallel_seconds(r, alone, false), r.seconds[0], 0.01, "without overlap");
  p.near(beside, 0.63, 0.01, "with overlap");
  const double gain = beside / r.seconds[1];
  p.near(gain, 1.8, 0.02, "gain");
  return p.result(
      text("%.3f s; the pipeline gains %.2f times, not %.2f", beside, gain, r.seconds[0] / r.seconds[1]));
}

outcome without_barrier() {
  parts p;
  const pipeline_run run =
      predicted_reddit(gpus, {.overhead = overhead_of_small_chunks(), .lock_step = false, .parts = 4});
  p.require(run.seconds < rows[8].seconds[1], text("%.3f s", run.seconds));
  p.require(run.bubble() < 0.1, text("a bubble of %.1f %%", 100 * run.bubble()));
  return p.result(
      text("%.3f s, bubble %.1f %%, K = 32, 4 runs of layers a stage", run.seconds, 100 * run.bubble()));
}

outcome honest_means() {
  parts p;
  const double mean = root_of_product(speed_up);
  p.near(root_of_product(speed_up, 12), claimed_mean_speed_up, 0.01, "12th root of the product of 16");
  p.near(mean, 1.41, 0.005, "geometric mean");
  std::vector<double> all;
  for (const row& r : rows) all.push_back(speed_up(r));
  std::ranges::sort(all);
  p.near(static_cast<double>(std::ranges::count_if(all, [](double s) { return s < 1; })), 4, 0, "losses");
  return p.result(text("mean %.2f, median %.2f, %.2f to %.2f; 4 losses, on physics", mean,
                       (all[7] + all[8]) / 2, all.front(), all.back()));
}

outcome bfloat16_boundary() {
  return {verdict::fail, "with --storage bf16 hidden rows pass in 2 bytes per number, their gradients in 4",
          "a boundary loses a quarter of its bytes; accuracy was not measured"};
}

}  // namespace

std::vector<claim> of_gnnpipe() {
  return {{"GNNPipe", "E8", "volumes of an epoch by closed form: graph, stages, hybrid; 16 rows of GB",
           "within 1 %; at most 22.89, mean 8.69 times less", volumes},
          {"GNNPipe", "E9", "a model predicts which of graph, stages and hybrid is fastest", "16 of 16 rows",
           best_method},
          {"GNNPipe", "E16", "a pipeline is exact with K = 1 or S = 1; its gradients otherwise are as stated",
           "the mean over all K! orders is the full gradient", same_as_whole_graph},
          {"GNNPipe", "E17", "bubble (S-1)/(K+S-1); simulated times of Reddit's GCN",
           "0.357 s at S = 8, 15 %; 1.92/1.11/.60/.35/.26", bubble},
          {"GNNPipe", "E18", "with communication beside work the graph over 8 GPUs takes 0.63 s",
           "the gain is 1.8 instead of 2.45 times", overlapped_baseline},
          {"GNNPipe", "E19", "without barriers, several runs of layers a stage: faster at equal work",
           "below 0.357 s, bubble below 10 %", without_barrier},
          {"GNNPipe", "E21", "a boundary in bfloat16 halves the bytes of a pipeline",
           "accuracy within 0.3 points", bfloat16_boundary,
           "gradients stay f32: a boundary loses a quarter of its bytes"},
          {"GNNPipe", "E22", "32-layer GCN on Reddit's counts in 0.35 s and 16 GB",
           "1.922 s, 20.2 GB on an A5000", [] { return on_a_card("times of one GPU of 4.8 TB/s"); }},
          {"GNNPipe", "E24", "accuracies of squirrel and reddit with S = 8, K = 32; signs of the ablations",
           "38.0 and 96.4 %",
           [] { return on_a_card("5000 epochs of 32 layers on data that does not come with this tree"); }},
          {"GNNPipe", "E25", "means with the right exponent, losing rows included", "\"1.58x on average\"",
           honest_means}};
}

}  // namespace bench::claims
