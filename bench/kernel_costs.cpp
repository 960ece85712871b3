// SPDX-License-Identifier: Apache-2.0
/// Kernel costs in PTX instructions, counted by the emulator: needs no GPU and is machine-independent. It
/// measures the work of a kernel, not its run time on a GPU.
///
///   kernel_costs [--width F] [--scale S]
///
/// One training step in f32 of a two-layer GCN and GAT (eight heads) on an R-MAT graph of 2^S vertices x 16,
/// features and hidden width F. Instructions are summed over all threads; "per entry" means per nonzero of A,
/// self-loops included.

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

void measure(const std::string& model, const io::dataset& d, global_index width) {
  const communicator world = self::world();
  const mesh<cuda_device> m = cuda_mesh(world, {1, 1, 1}, cuda_queue(world, "threads"));
  nn::training_options o;
  o.model = model;
  if (model == "gat") o.heads = 8;
  o.hidden = {model == "gat" ? width / o.heads : width};
  o.raw_features = true;
  nn::trainer<float, cuda_device> run(m, d, o, nn::make_model<float>(m, d, o, row_1d));
  run.step(1);
  auto before = emulator::kernel_costs();
  run.step(2);
  const double entries = static_cast<double>(entries_of(d));
  std::vector<std::pair<std::string, emulator::kernel_cost>> costs;
  double all = 0;
  for (auto [name, cost] : emulator::kernel_costs()) {
    const emulator::kernel_cost& earlier = before[name];
    cost.launches -= earlier.launches;
    cost.instructions -= earlier.instructions;
    cost.warp_instructions -= earlier.warp_instructions;
    all += static_cast<double>(cost.instructions);
    if (cost.launches > 0) costs.emplace_back(short_name(name), cost);
  }
  std::sort(costs.begin(), costs.end(),
            [](const auto& a, const auto& b) { return a.second.instructions > b.second.instructions; });
  std::printf("\n%s, %lld features, f32, %.0f entries: %.1f instructions an entry in a step\n\n",
              model.c_str(), static_cast<long long>(width), entries, all / entries);
  std::printf(
      "| kernel | launches | instructions per entry and launch | lanes at work |\n| --- | --- | --- | --- "
      "|\n");
  for (const auto& [name, c] : costs) {
    const double each = static_cast<double>(c.instructions) / static_cast<double>(c.launches) / entries;
    if (static_cast<double>(c.instructions) < 0.01 * all) break;
    std::printf("| %s | %llu | %.2f | %.0f %% |\n", name.c_str(), static_cast<unsigned long long>(c.launches),
                each,
                100 * static_cast<double>(c.instructions) / (32 * static_cast<double>(c.warp_instructions)));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  int width = 64, scale = 12;
  CLI::App app("What the kernels of a training step cost in PTX instructions.", "kernel_costs");
  bench::add_number(app, "--width", width, 8, 4096, "features, and width of the hidden layer");
  bench::add_number(app, "--scale", scale, 1, 20, "the graph has 2^N vertices");
  bench::parse(app, argc, argv);
  const io::dataset d = bench::rmat_dataset(scale, width, width);
  for (const char* model : {"gcn", "gat"}) measure(model, d, width);
} catch (const std::exception& e) {
  std::fprintf(stderr, "kernel_costs: %s\n", e.what());
  return 1;
}
