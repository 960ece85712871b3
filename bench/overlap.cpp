// SPDX-License-Identifier: Apache-2.0
/// How much of the communication of a training step of gcn hides behind its computation, on an emulated
/// cluster whose network is as slow as the ratio of the two asks for: (computation + communication - total) /
/// the smaller of both.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "partita/comm/emulated.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/host.hpp"
#include "partita/graph/propagation_matrices.hpp"
#include "partita/nn/models.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/trainer.hpp"
#include "support/options.hpp"
#include "support/rmat_dataset.hpp"

using namespace partita;

namespace {

constexpr double no_time = 1e-12;  ///< for processors

/// Seconds of a step.
struct step_times {
  double computation, total;
};

/// The median of steps on a machine with such links. The computation is that of the same steps on the same
/// processors and a network that takes no time, whose clock goes beside: both count the processor time of the
/// ranks.
step_times measure(const io::dataset& d, const std::vector<global_index>& widths,
                   const nn::model_options& options, const policy& p, int ranks,
                   const emulated::machine& machine) {
  constexpr int unmeasured = 3, measured = 5;
  std::vector<step_times> steps(measured);
  threads::run(ranks, [&](const communicator& world) {
    std::vector<int> nodes(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) nodes[static_cast<std::size_t>(r)] = r;
    const emulated::machine without{};
    const auto clock = std::make_shared<emulated::detail::rank_clock>(without);
    const communicator on =
        emulated::cluster(world.with_transport(std::make_shared<emulated::detail::emulated_transport>(
                              world.transport(), without, clock, std::move(nodes))),
                          machine);
    const mesh<host> m(on, default_mesh(p, ranks));
    const auto a = graph::propagation_matrices<float, host>(m, d, {}, p).gcn_normalized();
    nn::trainer<float, host> training(m, d, {}, nn::convolutions<nn::gcn_conv>(a, widths, options));
    for (int s = 1 - unmeasured; s <= measured; ++s) {
      double times[] = {-clock->now(), -on.ledger().seconds()};
      training.step(s + unmeasured);
      times[0] += clock->now();
      times[1] += on.ledger().seconds();
      on.all_reduce(std::span<double>(times), reduction::max);
      if (on.rank() == 0 && s > 0) steps[static_cast<std::size_t>(s - 1)] = {times[0], times[1]};
    }
  });
  std::ranges::sort(steps, {}, [](const step_times& s) { return s.total - s.computation; });
  return steps[measured / 2];
}

emulated::machine network(double bandwidth, double slower) {
  const emulated::link all{.latency = 1e-6, .bandwidth = bandwidth};
  return {.inside = all, .between = all, .slower = slower};
}

}  // namespace

int main(int argc, char** argv) try {
  int scale = 15, ranks = 8, hidden = 128, slices = 0;
  double ratio = 1;
  std::vector<std::string> policies;
  CLI::App app("How much of the communication of a step of gcn hides behind its computation");
  bench::add_number(app, "--scale", scale, 4, 24,
                    "2^N vertices, 16 edges each; 128 features, 16 classes, dropout");
  bench::add_number(app, "--ranks", ranks, 1, 256, "ranks");
  bench::add_number(app, "--hidden", hidden, 1, 4096, "width of the hidden layer");
  bench::add_number(app, "--slices", slices, 0, 256, "slices of needed rows; 0: as planned");
  app.add_option("--ratio", ratio, "seconds of computation for one of communication")->capture_default_str();
  app.add_option("--policies", policies, "these only")->delimiter(',');
  bench::parse(app, argc, argv);
  const io::dataset d = bench::rmat_dataset(scale, 128);
  nn::model_options options{.dropout = .5};
  options.products.slices = slices;
  std::printf("gcn, hidden %d, %d ranks, %lld vertices, %zu edges; ms of a step\n\n", hidden, ranks,
              static_cast<long long>(d.vertices), d.edges.size());
  std::printf(
      "| policy | mesh | computation | communication | total | hidden |\n|---|---|---|---|---|---|\n");
  for (const policy& p : named_policies) {
    if (!policies.empty() && std::ranges::find(policies, p.name) == policies.end()) continue;
    constexpr double fast = 1e9;
    const auto steps = [&](double bandwidth, double slower) {
      return measure(d, {d.features, hidden, d.classes}, options, p, ranks, network(bandwidth, slower));
    };
    const step_times first = steps(fast, no_time);
    const double bandwidth = fast * first.total / (first.computation / ratio);
    const double communication = steps(bandwidth, no_time).total;
    const step_times both = steps(bandwidth, 1);
    const double eta =
        (both.computation + communication - both.total) / std::min(both.computation, communication);
    std::printf("| %s | %s | %.2f | %.2f | %.2f | %.3f |\n", std::string(p.name).c_str(),
                to_string(default_mesh(p, ranks)).c_str(), 1e3 * both.computation, 1e3 * communication,
                1e3 * both.total, eta);
    std::fflush(stdout);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "overlap: %s\n", e.what());
  return 1;
}
