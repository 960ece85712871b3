// SPDX-License-Identifier: Apache-2.0
/// The training step of a deep model over stages beside that under row_1d on as many ranks, on an R-MAT graph
/// (Graph500 parameters): seconds and words, in turns in one run.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "partita/comm/threads.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/instructions.hpp"
#include "support/options.hpp"
#include "support/rmat_dataset.hpp"

using namespace partita;

namespace {

struct problem {
  std::string model = "gcn";
  int scale = 16, layers = 32, stages = 2, rounds = 5;
  global_index hidden = 64;
  std::vector<int> chunks = {8, 32};
};

/// A way to train, with its seconds in each round.
struct contender {
  std::string name;
  std::function<void(int)> step;
  nn::max_and_total words;
  std::vector<double> seconds = {};
};

nn::training_options options_of(const problem& p) {
  nn::training_options o;
  o.model = p.model;
  o.hidden = {p.hidden};
  o.layers = p.layers;
  return o;
}

template <class Trainer>
contender contender_of(const communicator& world, std::string name, std::shared_ptr<Trainer> trainer) {
  const nn::max_and_total words = nn::summarize(world, trainer->predicted().words);
  return {std::move(name), [trainer](int round) { trainer->step(round); }, words};
}

std::vector<contender> contenders_of(const communicator& world, const problem& p, const io::dataset& d) {
  const mesh<host> m(world, {world.size(), 1, 1});
  std::vector<contender> all;
  nn::training_options o = options_of(p);
  for (const int chunks : p.chunks) {
    o.pipeline = {.stages = p.stages, .chunks = chunks};
    all.push_back(contender_of(
        world, base::sentence_of({p.stages, " stages, ", chunks, " chunks"}),
        std::make_shared<nn::pipeline_trainer<float, host>>(m, d, o, row_1d, mesh_shape{1, 1, 1})));
  }
  o.pipeline = {.stages = p.stages, .chunks = 1, .history = nn::chunk_history::exact};
  all.push_back(contender_of(
      world, base::sentence_of({p.stages, " stages, exact"}),
      std::make_shared<nn::pipeline_trainer<float, host>>(m, d, o, row_1d, mesh_shape{1, 1, 1})));
  o.pipeline = {};
  all.push_back(contender_of(
      world, base::sentence_of({"row_1d on ", p.stages, " ranks"}),
      std::make_shared<nn::trainer<float, host>>(m, d, o, nn::make_model<float>(m, d, o, row_1d))));
  return all;
}

/// Steps in turns, a round that is not counted first. Every rank must call.
void measure(const communicator& world, std::vector<contender>& all, int rounds) {
  for (int round = 0; round <= rounds; ++round)
    for (contender& c : all) {
      world.all_reduce(0);
      const auto begin = std::chrono::steady_clock::now();
      c.step(round + 1);
      const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - begin;
      const double seconds = world.all_reduce(mine.count(), reduction::max);
      if (round > 0) c.seconds.push_back(seconds);
    }
}

void print(const std::vector<contender>& all) {
  const std::vector<double>& peer = all.back().seconds;
  std::printf(
      "| | s an epoch, median | least | most | times the last | words received, all ranks | busiest rank "
      "|\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const contender& c : all) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < peer.size(); ++r) ratios.push_back(c.seconds[r] / peer[r]);
    std::printf("| %s | %.3f | %.3f | %.3f | %.2f | %lld | %lld |\n", c.name.c_str(), nn::median(c.seconds),
                *std::ranges::min_element(c.seconds), *std::ranges::max_element(c.seconds),
                nn::median(ratios), static_cast<long long>(c.words.total),
                static_cast<long long>(c.words.max_rank));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  problem p;
  CLI::App app("The training step of a deep model over stages beside that under row_1d, on an R-MAT graph.",
               "stages");
  app.add_option("--model", p.model, "gcn, sage, gin, gcnii or resgcn")->capture_default_str();
  app.add_option("--scale", p.scale, "the graph has 2^SCALE vertices, 16 edges each")->capture_default_str();
  app.add_option("--layers", p.layers, "layers of the model")->capture_default_str();
  app.add_option("--hidden", p.hidden, "width of the hidden layers")->capture_default_str();
  app.add_option("--stages", p.stages, "stages, and ranks of row_1d")->capture_default_str();
  app.add_option("--chunks", p.chunks, "numbers of chunks to try")->delimiter(',')->capture_default_str();
  app.add_option("--rounds", p.rounds, "rounds")->capture_default_str();
  bench::parse(app, argc, argv);
  bench::print_instructions();
  const io::dataset d = bench::rmat_dataset(p.scale);
  std::printf(
      "%s, %d layers of width %lld; %lld vertices, %zu edges, f32; %d ranks as threads; median of %d "
      "rounds\n\n",
      p.model.c_str(), p.layers, static_cast<long long>(p.hidden), static_cast<long long>(d.vertices),
      d.edges.size(), p.stages, p.rounds);
  threads::run(p.stages, [&](const communicator& world) {
    std::vector<contender> all = contenders_of(world, p, d);
    measure(world, all, p.rounds);
    if (world.rank() == 0) print(all);
  });
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "stages: %s\n", e.what());
  return 2;
}
