// SPDX-License-Identifier: Apache-2.0
// Simulates a pipeline whose stages have consecutive layers of a network, and through which chunks of
// vertices pass, from what work and messages cost: when every stage is idle, the timeline as a picture.
// Nothing is measured here.
#include <cstdio>
#include <exception>
#include <fstream>

#include "support/json.hpp"
#include "support/options.hpp"
#include "support/pipeline_figure.hpp"
#include "support/pipeline_words.hpp"

namespace {

bench::json record(const bench::pipeline_costs& costs, const bench::pipeline_run& run) {
  bench::json stages = bench::json::array();
  for (std::size_t s = 0; s < run.stages.size(); ++s) {
    bench::json tasks = bench::json::array();
    for (const bench::timed_task& t : run.stages[s])
      tasks.push_back({{"direction", t.way == bench::direction::forward ? "forward" : "backward"},
                       {"chunk", t.chunk},
                       {"part", t.part},
                       {"begin", t.begin},
                       {"end", t.end}});
    stages.push_back({{"busy", run.busy(s)}, {"idle", run.idle(s)}, {"tasks", tasks}});
  }
  return {{"stages", costs.stages},       {"chunks", costs.chunks}, {"parts", costs.parts},
          {"lock_step", costs.lock_step}, {"seconds", run.seconds}, {"bubble", run.bubble()},
          {"links", run.links},           {"of_stages", stages}};
}

void print(const bench::pipeline_costs& costs, const bench::pipeline_run& run) {
  std::printf("%d stages, %d chunks: %.4g ms; idle %.1f %%, of equal stages without messages %.1f %%\n",
              costs.stages, costs.chunks, 1e3 * run.seconds, 100 * run.bubble(),
              100 * bench::pipeline_bubble(costs.stages, costs.chunks * costs.parts));
  for (std::size_t s = 0; s < run.stages.size(); ++s)
    std::printf("stage %zu: busy %.4g ms, idle %.1f %%\n", s, 1e3 * run.busy(s), 100 * run.idle(s));
  for (std::size_t s = 0; s < run.links.size(); ++s)
    std::printf("link from stage %zu to %zu and back: busy %.4g ms\n", s, (s + 1) % run.stages.size(),
                1e3 * run.links[s]);
}

void write_figure(const std::string& file, const bench::pipeline_run& run) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << bench::pipeline_figure(run);
  if (!out.flush()) throw partita::error("cannot write " + file);
}

}  // namespace

int main(int argc, char** argv) {
  bench::pipeline_costs costs;
  std::vector<double> forward{1}, backward, beta{0};
  double alpha = 0;
  int shuffle = -1;
  std::string json_file, svg_file;
  const CLI::Validator not_negative = CLI::Range(0.0, 1e12);
  CLI::App app("Simulates a pipeline of layers through which chunks of vertices pass");
  bench::add_number(app, "--stages", costs.stages, 1, 4096, "stages");
  bench::add_number(app, "--chunks", costs.chunks, 1, 1 << 20, "chunks");
  bench::add_number(app, "--parts", costs.parts, 1, 4096, "runs of layers that each stage has");
  app.add_option("--forward", forward, "ms of a mean chunk, for all stages or each")->delimiter(',');
  app.add_option("--backward", backward, "the same backward (default: as forward)")->delimiter(',');
  app.add_option("--chunk-sizes", costs.chunk_sizes, "of each, relative to the mean")->delimiter(',');
  app.add_option("--alpha", alpha, "us of a message")->check(not_negative);
  app.add_option("--beta", beta, "ns per byte, for all links or each")->delimiter(',');
  app.add_option("--bytes", costs.bytes, "of a message of a mean chunk")->check(not_negative);
  app.add_flag("--lock-step", costs.lock_step, "stages begin slots together, messages travel between slots");
  app.add_option("--shuffle", shuffle, "the order of chunks from this seed")->check(not_negative);
  app.add_option("--json", json_file, "writes times of all tasks, in s");
  app.add_option("--svg", svg_file, "draws the timeline");
  try {
    bench::parse(app, argc, argv);
    if (backward.empty()) backward = forward;
    for (double& ms : forward) ms *= 1e-3;
    for (double& ms : backward) ms *= 1e-3;
    for (double& ns : beta) ns *= 1e-9;
    costs.forward = forward, costs.backward = backward, costs.byte_time = beta;
    costs.latency = 1e-6 * alpha;
    if (shuffle >= 0)
      costs.order = partita::nn::chunk_order(static_cast<std::uint64_t>(shuffle), 1, costs.chunks, true);
    const bench::pipeline_run run = bench::simulate(costs);
    print(costs, run);
    bench::write_json(json_file, record(costs, run));
    write_figure(svg_file, run);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pipeline: %s\n", e.what());
    return 2;
  }
}
