// SPDX-License-Identifier: Apache-2.0
// Y = A X over far memory beside the same product in memory, on an R-MAT graph: bytes that pass through the
// window, time, and how much of the transfers products hide, over the disk that there is and over a store
// that is slowed down until transfers take as long as products. Medians of rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "partita/algebra/spmm.hpp"
#include "partita/comm/self.hpp"
#include "partita/compiled/algebra.hpp"
#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/graphs.hpp"
#include "support/instructions.hpp"
#include "support/median.hpp"
#include "support/options.hpp"

namespace {

using namespace partita;
using clock = std::chrono::steady_clock;
using sparse_matrix = sparse<float, dynamic_layout, host>;
using dense_matrix = dense<float, dynamic_layout, host>;

struct problem {
  int scale = 18, width = 64, rounds = 5;
  std::vector<int> chunks{4, 16, 50};
  std::string folder = std::filesystem::temp_directory_path().string();
};

struct operands {
  explicit operands(const mesh<host>& m, const bench::graph& g, int width)
      : a(distribute(m, row_1d, {g.vertices, g.vertices}, entries_of(g))),
        x(m, row_1d.dense, {g.vertices, width}),
        y(m, row_1d.dense, {g.vertices, width}),
        product(a, x) {
    std::fill(x.values().begin(), x.values().end(), 1.0F);
  }
  static std::vector<triplet<float>> entries_of(const bench::graph& g) {
    std::vector<triplet<float>> entries;
    for (const auto& e : g.share(0, 1)) entries.push_back({e.row, e.col, 1.0F});
    return entries;
  }

  sparse_matrix a;
  dense_matrix x, y;
  spmm_plan<float, host> product;
};

mesh<host> place() { return {self::world(), mesh_shape{}, device_queue<host>(1)}; }

/// What the median product of `rounds` takes and moves.
struct figures {
  double seconds = 0;
  memory::far_traffic traffic;
};

figures measure(operands& o, int rounds) {
  o.product(o.x, o.y);  // plans
  std::vector<double> seconds;
  auto* const channel = far_of(o.x.mesh().queue());
  if (channel != nullptr) channel->traffic() = {};
  for (int k = 0; k < rounds; ++k) {
    const auto begin = clock::now();
    o.product(o.x, o.y);
    seconds.push_back(std::chrono::duration<double>(clock::now() - begin).count());
  }
  return {bench::median(seconds), channel == nullptr ? memory::far_traffic{} : channel->traffic()};
}

figures over_far_memory(const problem& p, const bench::graph& g, std::size_t window, double rate) {
  const mesh<host> m = place();
  use_far(m.queue(), {.store = std::make_shared<mapped_store>(p.folder),
                      .window = window,
                      .from = 1 << 16,
                      .bytes_per_second = rate});
  operands o(m, g, p.width);
  return measure(o, p.rounds);
}

void run(const problem& p) {
  const bench::graph g = bench::rmat(p.scale);
  double near = 0, bytes = 0;
  {
    operands o(place(), g, p.width);
    near = measure(o, p.rounds).seconds;
    bytes = static_cast<double>(o.a.mesh().queue().meter()->current());
  }
  std::printf("%s, %d columns: %.1f MB; %.4f s in memory\n", g.name.c_str(), p.width, 1e-6 * bytes, near);
  std::printf("%8s %8s %12s %10s %8s %16s\n", "chunks", "window", "bytes", "copies", "disk",
              "a slower store");
  std::printf("%8s %8s %12s %10s %8s %8s %8s\n", "", "MB", "MB", "of rows", "x near", "x disk", "overlap");
  for (const int chunks : p.chunks) {
    const auto window = static_cast<std::size_t>(2 * bytes / chunks);
    const figures disk = over_far_memory(p, g, window, 0);
    const memory::far_traffic& t = disk.traffic;
    const auto moved = static_cast<double>(t.read + t.written);
    const figures slow = over_far_memory(p, g, window, moved / t.compute);
    std::printf("%8.0f %8.1f %12.1f %10.2f %8.2f %8.2f %8.2f\n", static_cast<double>(t.chunks) / p.rounds,
                1e-6 * static_cast<double>(window), 1e-6 * moved / p.rounds,
                static_cast<double>(t.rows_read) / (static_cast<double>(g.vertices) * p.rounds),
                disk.seconds / near, slow.seconds / disk.seconds, slow.traffic.overlap());
  }
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  CLI::App app("Products over far memory");
  bench::add_number(app, "--scale", p.scale, 4, 26, "2^N vertices, 16 edges each");
  bench::add_number(app, "--width", p.width, 1, 4096, "columns of X");
  bench::add_number(app, "--rounds", p.rounds, 1, 1000, "rounds, of which the median counts");
  app.add_option("--chunks", p.chunks, "about so many; the window follows from it")->delimiter(',');
  app.add_option("--far", p.folder, "folder of the scratch file")->capture_default_str();
  try {
    bench::parse(app, argc, argv);
    bench::print_instructions();
    run(p);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "far_memory: %s\n", e.what());
    return 2;
  }
}
