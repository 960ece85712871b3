// SPDX-License-Identifier: Apache-2.0
/// What models whose layers are written forward only take beside the built-in ones: steps of both in turn, on
/// an R-MAT graph (Graph500 parameters), under every policy; medians and their ratio.
///
///   forward_only [SCALE [RANKS [STEPS]]]     vertices: 2^SCALE (15), 16 edges each; 64 features, 16 classes,
///   hidden width 64; ranks: 1; steps: 21

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "partita/algebra/loss.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/host.hpp"
#include "partita/nn/models.hpp"
#include "partita/nn/recorded_layer.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/graphs.hpp"
#include "support/instructions.hpp"
#include "support/median.hpp"
#include "support/options.hpp"

using namespace partita;

namespace {

using matrix = sparse<float, dynamic_layout, host>;
using model = nn::model<float, host>;
using builder = nn::builder<float, host>;

const std::vector<global_index> widths{64, 64, 16};
constexpr int hops = 10;
constexpr double restart = 0.1;

model gcn(const matrix& a) {
  const builder b(a);
  return {b, nn::chain<nn::relu>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
            return nn::recorded(with, in, [&](auto& make, auto h) {
              const auto w = make.glorot("W", {in, out}), bias = make.filled("b", {1, out});
              return add_row(bias, l == 0 ? gemm(spmm(a, h), w) : spmm(a, gemm(h, w)));
            });
          })};
}
model sage(const matrix& a) {
  const builder b(a);
  return {b, nn::chain<nn::relu>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
            return nn::recorded(with, in, [&](auto& make, auto h) {
              const auto left = make.glorot("Wl", {in, out}), bias = make.filled("b", {1, out}),
                         right = make.glorot("Wr", {in, out});
              return add_row(bias,
                             (l == 0 ? gemm(spmm(a, h), left) : spmm(a, gemm(h, left))) + gemm(h, right));
            });
          })};
}
/// In the policy's layout, as the built-in one.
model appnp(const matrix& a, const policy& p) {
  const builder b(a);
  return {b, nn::recorded(b, widths[0], [&](auto& make, auto h) {
            const auto first = make.glorot("W", {widths[0], widths[1]}),
                       of_first = make.filled("b", {1, widths[1]}),
                       last = make.glorot("W", {widths[1], widths[2]}),
                       of_last = make.filled("b", {1, widths[2]});
            const auto z_0 = add_row(of_last, gemm(relu(add_row(of_first, gemm(h, first))), last));
            const auto start = redistribute(z_0, p.dense);
            auto z = start;
            for (int k = 0; k < hops; ++k) z = (1 - restart) * spmm(a, z) + restart * start;
            return redistribute(z, vertex_rows);
          })};
}

struct contest {
  const char* name;
  model built_in, forward_only;
  std::vector<double> seconds[2] = {{}, {}};
  double losses[2] = {0, 0};
};

void wait_for_all(const communicator& world) {
  std::array<std::int32_t, 1> none{};
  world.all_reduce(std::span<std::int32_t>(none));
}

/// Whether both give the same losses.
bool print_times(int scale, int ranks, int steps) {
  const global_index n = global_index{1} << scale;
  bool right = true;
  for (const policy& p : named_policies)
    threads::run(ranks, [&](const communicator& world) {
      const mesh<host> m(world, default_mesh(p, ranks));
      std::vector<triplet<float>> mine;
      for (const auto& e : bench::rmat(scale).share(world.rank(), ranks))
        mine.push_back({e.row, e.col, 1.0F / 16});
      const matrix a = distribute(m, p, {n, n}, mine);
      const auto x = generate<vertex_rows, float>(m, {n, widths.front()}, [](auto v, auto j) {
        return static_cast<float>(base::random_uniform(2, v, j));
      });
      const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](auto v) { return v % 16; });
      dense<float, vertex_rows, host> dz(m, x.row_blocking(),
                                         blocking::even(widths.back(), m.shape(), nesting::cols));
      contest all[] = {{"gcn", nn::convolutions<nn::gcn_conv>(a, widths, {}), gcn(a)},
                       {"sage", nn::convolutions<nn::sage_conv>(a, widths, {}), sage(a)},
                       {"appnp", nn::appnp(a, widths, hops, restart, {}), appnp(a, p)}};
      for (contest& c : all) {
        for (int step = 0; step <= steps; ++step)
          for (const std::size_t which : {0, 1}) {
            model& now = which == 0 ? c.built_in : c.forward_only;
            wait_for_all(world);
            const auto from = std::chrono::steady_clock::now();
            c.losses[which] = algebra::cross_entropy(now.forward({x, true}, {.training = true}), labels, dz);
            now.backward(dz);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
            if (step > 0) c.seconds[which].push_back(took.count());
          }
        if (world.rank() != 0) continue;
        const double before = bench::median(c.seconds[0]), after = bench::median(c.seconds[1]);
        std::printf("| %s | %d | %s | %s | %.1f | %.1f | %.2f |\n", c.name, ranks,
                    std::string(p.name).c_str(), to_string(m.shape()).c_str(), 1e3 * before, 1e3 * after,
                    after / before);
        std::fflush(stdout);
        right = right && std::abs(c.losses[0] - c.losses[1]) < 1e-5;
      }
    });
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  int scale = 15, ranks = 1, steps = 21;
  CLI::App app("Steps of models written forward only beside those of the built-in layers.", "forward_only");
  bench::add_number(app, "SCALE", scale, 4, 24, "the graph has 2^SCALE vertices");
  bench::add_number(app, "RANKS", ranks, 1, 4096, "ranks that are threads");
  bench::add_number(app, "STEPS", steps, 1, 1000, "of each model");
  bench::parse(app, argc, argv);
  bench::print_instructions();
  std::printf(
      "%lld vertices, 16 edges each, f32; medians of %d steps in turn\n\n"
      "| model | ranks | policy | mesh | ms a step, built in | forward only | ratio |\n"
      "|---|---|---|---|---|---|---|\n",
      static_cast<long long>(global_index{1} << scale), steps);
  return print_times(scale, ranks, steps) ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "forward_only: %s\n", e.what());
  return 2;
}
