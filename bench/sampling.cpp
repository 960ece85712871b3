// SPDX-License-Identifier: Apache-2.0
// Sampling neighbourhoods in an R-MAT graph on one rank, uniformly and without replacement: sampled edges per
// second, and per second of CPU time, which others on the machine disturb less, from the roots to the
// finished blocks, and the share of drawing. Medians of rounds; the numbers of threads take turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <map>
#include <vector>

#include "partita/comm/self.hpp"
#include "partita/memory/host.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/graphs.hpp"
#include "support/median.hpp"
#include "support/options.hpp"

namespace {

using partita::global_index;
using partita::local_index;
using clock = std::chrono::steady_clock;

double seconds(clock::time_point since) {
  return std::chrono::duration<double>(clock::now() - since).count();
}

struct problem {
  int scale = 20, batch = 1024, batches = 20, rounds = 11;
  std::vector<int> fanouts{10, 10}, threads{1, 2};
};

partita::sampling::graph<float> rmat(int scale) {
  const bench::graph g = bench::rmat(scale);
  const partita::mesh<partita::host> m(partita::self::world(), {1, 1, 1});
  return partita::sampling::graph<float>(partita::distribute(m, partita::row_1d, {g.vertices, g.vertices},
                                                             g.share(0, 1), partita::symmetry::one_way));
}

/// The batches of an epoch: distinct vertices in a random order.
std::vector<std::vector<global_index>> batches_of(const problem& p) {
  std::vector<std::vector<global_index>> batches(static_cast<std::size_t>(p.batches));
  global_index next = 0;
  for (auto& batch : batches)
    for (int i = 0; i < p.batch; ++i)
      batch.push_back(bench::renamed(next++ % (global_index{1} << p.scale), p.scale));
  return batches;
}

struct times {
  std::vector<double> all, cpu, drawing;
};

void measure(const problem& p) {
  const partita::sampling::graph<float> g = rmat(p.scale);
  const auto batches = batches_of(p);
  partita::sampling::neighbour_options options{{p.fanouts.begin(), p.fanouts.end()}, 1};
  std::size_t edges = 0, vertices = 0;
  std::map<int, times> taken;
  for (int round = 0; round <= p.rounds; ++round)  // the first is not counted
    for (const int threads : p.threads) {
      options.threads = threads;
      partita::sampling::neighbour_sampler<float> sampler(g, options);
      partita::sampling::hop<float> parts(g, threads);
      partita::sampling::sample<float> s;
      sampler(batches[0], 0, s);
      edges = vertices = 0;
      const std::clock_t cpu = std::clock();
      auto begin = clock::now();
      for (const auto& batch : batches) {
        sampler(batch, static_cast<std::uint64_t>(round), s);
        edges += s.sampled_edges;
        vertices += s.vertices.size();
      }
      const double all = seconds(begin), busy = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
      double drawing = 0;
      for (const auto& batch : batches) {
        parts.begin(batch, s);
        for (std::size_t h = 0; h < p.fanouts.size(); ++h) {
          const std::size_t layer = p.fanouts.size() - 1 - h;
          const partita::sampling::neighbour_draw<float> draw(
              g, options, {}, options.fanouts[layer],
              partita::sampling::draw_key(options.seed, static_cast<std::uint64_t>(round), h));
          begin = clock::now();
          parts.choose(s.vertices, draw);
          drawing += seconds(begin);
          parts.make_block(s.blocks[layer], s);
        }
      }
      if (round == 0) continue;
      taken[threads].all.push_back(all);
      taken[threads].cpu.push_back(busy);
      taken[threads].drawing.push_back(drawing);
    }
  std::printf("2^%d vertices, %zu edges; %d roots a batch: %zu edges and %zu vertices sampled a batch\n",
              p.scale, g.columns().size(), p.batch, edges / batches.size(), vertices / batches.size());
  for (const auto& [threads, t] : taken) {
    const double all = bench::median(t.all), million = 1e-6 * static_cast<double>(edges);
    std::printf("%d threads: %.1f M edges/s, %.1f M per second of CPU time; drawing %.0f %% of the time\n",
                threads, million / all, million / bench::median(t.cpu), 100 * bench::median(t.drawing) / all);
  }
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  CLI::App app("Sampling neighbourhoods on one rank");
  bench::add_number(app, "--scale", p.scale, 4, 26, "2^N vertices");
  bench::add_number(app, "--batch", p.batch, 1, 1 << 20, "roots per batch");
  bench::add_number(app, "--batches", p.batches, 1, 1 << 20, "batches per round");
  bench::add_number(app, "--rounds", p.rounds, 1, 1000, "rounds, of which the median counts");
  app.add_option("--fanout", p.fanouts, "neighbours per layer")->delimiter(',');
  app.add_option("--threads", p.threads, "numbers of threads")->delimiter(',');
  try {
    bench::parse(app, argc, argv);
    measure(p);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sampling: %s\n", e.what());
    return 2;
  }
}
