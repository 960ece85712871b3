// SPDX-License-Identifier: Apache-2.0
/// Kernel costs in PTX instructions, counted by the emulator: needs no GPU and is machine-independent. It
/// measures the work of a kernel, not its run time on a GPU.
///
///   kernel_costs [--width F] [--classes C] [--scale S]
///
/// Kernels below 1 % of instructions and of bytes loaded are one row; cuBLAS, which is not interpreted, has a
/// count. One training step in f32 of a two-layer GCN and GAT (eight heads) on an R-MAT graph of 2^S vertices
/// x 16, features and hidden width F, C classes. Instructions are summed over all threads; "per entry" means
/// per nonzero of A, self-loops included. Bytes are those of the sectors of 32 bytes that each instruction of
/// a warp touches, "touched" those that a launch touches at all; wide loads have 16 bytes a thread.

#include <algorithm>
#include <cstdio>
#include <set>

#include "../examples/ranks/cuda_device.hpp"
#include "../tests/emulator/control.hpp"
#include "partita/comm/self.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/partition/policies.hpp"
#include "support/options.hpp"
#include "support/rmat_dataset.hpp"

using namespace partita;

namespace {

/// The kernel's name, without its launcher, namespaces and parameters.
std::string short_name(std::string name) {
  for (const std::string launcher : {"run_threads<", "run_warps<"})
    if (const auto at = name.find(launcher); at != std::string::npos)
      name = name.substr(at + launcher.size());
  if (const auto at = name.find("(", 1); at != std::string::npos) name = name.substr(0, at);
  for (const std::string space :
       {"partita::on_cuda::", "partita::algebra::detail::", "partita::base::", "partita::"})
    for (auto at = name.find(space); at != std::string::npos; at = name.find(space))
      name.erase(at, space.size());
  while (std::count(name.begin(), name.end(), '>') > std::count(name.begin(), name.end(), '<'))
    name.pop_back();
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

/// Entries of A, including all self-loops.
std::size_t entries_of(const io::dataset& d) {
  std::set<std::pair<global_index, global_index>> all;
  for (const auto& e : d.edges) all.emplace(e.source, e.target);
  for (global_index v = 0; v < d.vertices; ++v) all.emplace(v, v);
  return all.size();
}

double each(std::uint64_t count, double of) { return static_cast<double>(count) / of; }

/// A line of the table; `entries` of all launches.
void print(const std::string& name, const emulator::kernel_cost& c, double entries) {
  std::printf("| %s | %llu | %.2f | %.2f | %.0f %% | %.1f | %.1f | %.1f | %.0f %% |\n", name.c_str(),
              static_cast<unsigned long long>(c.launches), each(c.instructions, entries),
              each(c.warp_instructions, entries),
              100 * each(c.instructions, 32 * static_cast<double>(c.warp_instructions)),
              32 * each(c.load_sectors, entries), 32 * each(c.store_sectors, entries),
              32 * each(c.distinct_sectors, entries),
              c.loads == 0 ? 0 : 100 * each(c.wide_loads, static_cast<double>(c.loads)));
}

void measure(const std::string& model, const io::dataset& d, global_index width) {
  const communicator world = self::world();
  const device_queue<cuda_device> queue = cuda_queue(world, "threads");
  queue.extend(std::make_shared<on_cuda::without_graphs>());  // which would be recorded in the counted step
  const mesh<cuda_device> m = cuda_mesh(world, {1, 1, 1}, queue);
  nn::training_options o;
  o.model = model;
  if (model == "gat") o.heads = 8;
  o.hidden = {model == "gat" ? width / o.heads : width};
  o.raw_features = true;
  nn::trainer<float, cuda_device> run(m, d, o, nn::make_model<float>(m, d, o, row_1d));
  for (int step = 1; step < 4; ++step) run.step(step);
  m.queue().synchronize();  // what follows the loss, too
  auto before = emulator::kernel_costs();
  const emulator::counters first = emulator::count();
  emulator::look_at_sectors(true);
  run.step(4);
  m.queue().synchronize();
  emulator::look_at_sectors(false);
  const std::uint64_t launches = (emulator::count() - first).launches;
  std::vector<std::pair<std::string, emulator::kernel_cost>> costs;
  emulator::kernel_cost all;
  for (auto [name, cost] : emulator::kernel_costs()) {
    cost -= before[name];
    all += cost;
    if (cost.launches > 0) costs.emplace_back(short_name(name), cost);
  }
  std::sort(costs.begin(), costs.end(),
            [](const auto& a, const auto& b) { return a.second.instructions > b.second.instructions; });
  const double entries = static_cast<double>(entries_of(d));
  std::printf(
      "\n%s, %lld features, %lld classes, f32, %.0f entries: %.1f instructions an entry in a step of "
      "%llu launches, %.1f of warps, %.0f B loaded, %.0f B stored\n\n",
      model.c_str(), static_cast<long long>(width), static_cast<long long>(d.classes), entries,
      each(all.instructions, entries), static_cast<unsigned long long>(launches),
      each(all.warp_instructions, entries), 32 * each(all.load_sectors, entries),
      32 * each(all.store_sectors, entries));
  std::printf(
      "| kernel | launches | instructions per entry and launch | of warps | lanes at work | B loaded | B "
      "stored | B touched | wide loads |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  emulator::kernel_cost others;
  for (const auto& [name, c] : costs)
    if (100 * c.instructions >= all.instructions || 100 * c.load_sectors >= all.load_sectors)
      print(name, c, entries * static_cast<double>(c.launches));
    else
      others += c;
  if (others.launches > 0)
    print("other kernels, each below 1 %", others, entries * static_cast<double>(others.launches));
  std::printf("| cuBLAS | %llu | | | | | | | |\n", static_cast<unsigned long long>(launches - all.launches));
}

}  // namespace

int main(int argc, char** argv) try {
  int width = 64, classes = 0, scale = 12;
  CLI::App app("What the kernels of a training step cost in PTX instructions.", "kernel_costs");
  bench::add_number(app, "--width", width, 8, 4096, "features, and width of the hidden layer");
  bench::add_number(app, "--classes", classes, 1, 4096, "classes; without it as many as features");
  bench::add_number(app, "--scale", scale, 1, 20, "the graph has 2^N vertices");
  bench::parse(app, argc, argv);
  const io::dataset d = bench::rmat_dataset(scale, width, classes == 0 ? width : classes);
  for (const char* model : {"gcn", "gat"}) measure(model, d, width);
} catch (const std::exception& e) {
  std::fprintf(stderr, "kernel_costs: %s\n", e.what());
  return 1;
}
