// SPDX-License-Identifier: Apache-2.0
/// How much of the communication of a training step of gcn hides behind its computation, on an emulated
/// cluster whose network is as slow as the ratio of the two asks for: (computation + communication - total) /
/// the smaller of both. With a file of calibrate the figures are the same in every run, to the last bit.

#include <algorithm>
#include <cstdio>
#include <map>
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
#include "ranks/machine_file.hpp"
#include "support/options.hpp"
#include "support/rmat_dataset.hpp"

using namespace partita;

namespace {

constexpr double no_time = 1e-12;  ///< for processors

/// What is trained, on how many ranks; and measurements of kernels, if they are not to run.
struct problem {
  const io::dataset& data;
  std::vector<global_index> widths;
  nn::model_options options;
  int ranks;
  std::shared_ptr<const memory::kernel_rates> kernels;
};

/// Seconds of a step, and of its waiting for operations by their kind and axis.
struct step_times {
  double computation = 0, total = 0;
  std::map<std::string, double> waiting = {};
};

/// Where a step waits on rank 0.
std::map<std::string, double> waiting_of(const ledger& l) {
  std::map<std::string, double> waiting;
  for (const comm::ledger_entry& e : l.entries())
    waiting[std::string(comm::name_of(e.kind)) + " along " + e.axis] += e.seconds;
  return waiting;
}

/// The third step where kernels take the time that a file says, and do not run.
step_times rehearsed(const problem& of, const policy& p, const emulated::machine& machine) {
  step_times step;
  threads::run(of.ranks, [&](const communicator& world) {
    const communicator on = emulated::cluster(world, machine);
    const mesh<host> m(on, default_mesh(p, of.ranks), emulated::charged(on, device_queue<host>(1)));
    const auto a = graph::propagation_matrices<float, host>(m, of.data, {}, p).gcn_normalized();
    nn::trainer<float, host> training(m, of.data, {},
                                      nn::convolutions<nn::gcn_conv>(a, of.widths, of.options));
    const emulated::rehearsal rehearsal(on);
    for (int s = 1; s <= 2; ++s) training.step(s);
    m.ledger().clear();
    double seconds[] = {-on.ledger().seconds()};
    training.step(3);
    seconds[0] += on.ledger().seconds();
    const auto waiting = waiting_of(m.ledger());
    on.all_reduce(std::span<double>(seconds), reduction::max);
    if (on.rank() == 0) step = {0, seconds[0], waiting};
  });
  return step;
}

/// The median of steps whose kernels run, on a machine with such links. The computation is that of the same
/// steps on the same processors and a network that takes no time, whose clock goes beside: both count the
/// processor time of the ranks.
step_times measured(const problem& of, const policy& p, const emulated::machine& machine) {
  constexpr int unmeasured = 3, measured = 5;
  std::vector<step_times> steps(measured);
  threads::run(of.ranks, [&](const communicator& world) {
    std::vector<int> nodes(static_cast<std::size_t>(of.ranks));
    for (int r = 0; r < of.ranks; ++r) nodes[static_cast<std::size_t>(r)] = r;
    const emulated::machine without{};
    const auto clock = std::make_shared<emulated::detail::rank_clock>(without);
    const communicator on =
        emulated::cluster(world.with_transport(std::make_shared<emulated::detail::emulated_transport>(
                              world.transport(), without, clock, std::move(nodes))),
                          machine);
    const mesh<host> m(on, default_mesh(p, of.ranks));
    const auto a = graph::propagation_matrices<float, host>(m, of.data, {}, p).gcn_normalized();
    nn::trainer<float, host> training(m, of.data, {},
                                      nn::convolutions<nn::gcn_conv>(a, of.widths, of.options));
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

/// A step on a network of this bandwidth and processors that are so much slower.
step_times step_on(const problem& of, const policy& p, double bandwidth, double latency, double slower) {
  const emulated::link all{.latency = latency, .bandwidth = bandwidth};
  const emulated::machine on{.inside = all, .between = all, .slower = slower, .kernels = of.kernels};
  return of.kernels ? rehearsed(of, p, on) : measured(of, p, on);
}

void print_row(const problem& of, const policy& p, double ratio, bool tells_waiting) {
  constexpr double fast = 1e9, latency = 1e-6;
  step_times first = step_on(of, p, fast, latency, no_time);
  if (of.kernels) first.computation = step_on(of, p, 1e18, 0, 1).total;
  const double bandwidth = fast * first.total / (first.computation / ratio);
  const double communication = step_on(of, p, bandwidth, latency, no_time).total;
  step_times both = step_on(of, p, bandwidth, latency, 1);
  if (of.kernels) both.computation = first.computation;
  const double eta =
      (both.computation + communication - both.total) / std::min(both.computation, communication);
  std::printf("| %s | %s | %.3f | %.3f | %.3f | %.3f |\n", std::string(p.name).c_str(),
              to_string(default_mesh(p, of.ranks)).c_str(), 1e3 * both.computation, 1e3 * communication,
              1e3 * both.total, eta);
  if (tells_waiting)
    for (const auto& [what, seconds] : both.waiting) std::printf("  %s: %.3f\n", what.c_str(), 1e3 * seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  int scale = 15, ranks = 8, hidden = 128, slices = 0;
  double ratio = 1;
  std::string calibration;
  bool tells_waiting = false;
  std::vector<std::string> policies;
  CLI::App app("How much of the communication of a step of gcn hides behind its computation");
  bench::add_number(app, "--scale", scale, 4, 24,
                    "2^N vertices, 16 edges each; 128 features, 16 classes, dropout");
  bench::add_number(app, "--ranks", ranks, 1, 256, "ranks");
  bench::add_number(app, "--hidden", hidden, 1, 4096, "width of the hidden layer");
  bench::add_number(app, "--slices", slices, 0, 256, "slices of needed rows; 0: as planned");
  app.add_option("--ratio", ratio, "seconds of computation for one of communication")->capture_default_str();
  app.add_option("--policies", policies, "these only")->delimiter(',');
  app.add_option("--calibration", calibration,
                 "take each kernel as long as this file of calibrate says, and do not run it");
  app.add_flag("--waiting", tells_waiting, "with --calibration, for what rank 0 waits, in ms of a step");
  bench::parse(app, argc, argv);
  const std::shared_ptr<const memory::kernel_rates> kernels =
      calibration.empty() ? nullptr : read_machine(calibration).kernels;
  if (!calibration.empty() && kernels == nullptr)
    throw error(calibration + " has no measurements of kernels");
  const io::dataset d = bench::rmat_dataset(scale, 128);
  nn::model_options options{.dropout = .5};
  options.products.slices = slices;
  const problem of{d, {d.features, hidden, d.classes}, options, ranks, kernels};
  std::printf("gcn, hidden %d, %d ranks, %lld vertices, %zu edges; ms of a step\n\n", hidden, ranks,
              static_cast<long long>(d.vertices), d.edges.size());
  std::printf(
      "| policy | mesh | computation | communication | total | hidden |\n|---|---|---|---|---|---|\n");
  for (const policy& p : named_policies) {
    if (!policies.empty() && std::ranges::find(policies, p.name) == policies.end()) continue;
    print_row(of, p, ratio, tells_waiting);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "overlap: %s\n", e.what());
  return 1;
}
