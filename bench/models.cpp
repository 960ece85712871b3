// SPDX-License-Identifier: Apache-2.0
/// The training step of every model under every policy on an R-MAT graph (Graph500 parameters): seconds and
/// words; or the balance of words and work under the policies; or what reproducible sums cost.
///
///   models [balance|reproducible] [SCALE [RANKS]]     vertices: 2^SCALE (15), 16 edges each; 64 features, 16
///   classes, hidden width 32; ranks: 4

#include <cstdio>
#include <utility>
#include <vector>

#include "partita/algebra/reproducible.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/host.hpp"
#include "partita/partition/policies.hpp"
#include "support/balance.hpp"
#include "support/instructions.hpp"
#include "support/median.hpp"
#include "support/options.hpp"
#include "support/rmat_dataset.hpp"

using namespace partita;

namespace {

nn::training_options options_of(const std::string& model, nn::coupling how) {
  nn::training_options o;
  o.model = model;
  o.coupling = how;
  o.hidden = {model == "gat" && how == nn::coupling::coupled ? 8 : 32};
  o.heads = 4;
  o.layers = model == "gcnii" ? 8 : 0;
  o.epochs = 5;
  return o;
}

void print_balance(const io::dataset& d, int ranks) {
  std::printf(
      "A decoupled gcn on %d ranks, %lld vertices, %zu edges, %lld classes; the busiest rank, and how many "
      "times the least busy one\n\n"
      "| policy | mesh | words an epoch | max/min | multiplied nonzeros x width | max/min |\n"
      "|---|---|---|---|---|---|\n",
      ranks, static_cast<long long>(d.vertices), d.edges.size(), static_cast<long long>(d.classes));
  for (const policy& p : named_policies)
    threads::run(ranks, [&](const communicator& world) {
      const mesh<host> m(world, default_mesh(p, ranks));
      const bench::balance b = bench::balance_of(m, p, d);
      if (world.rank() == 0)
        std::printf("| %s | %s | %lld | %.2f | %lld | %.2f |\n", std::string(p.name).c_str(),
                    to_string(m.shape()).c_str(), static_cast<long long>(b.words.most), b.words.ratio(),
                    static_cast<long long>(b.multiplications.most), b.multiplications.ratio());
    });
}

/// Whether every model received what was predicted.
bool print_times(const io::dataset& d, int ranks) {
  std::printf("%d ranks as threads, %lld vertices, %zu edges, f32; median of 5 epochs\n\n", ranks,
              static_cast<long long>(d.vertices), d.edges.size());
  std::printf(
      "| model | policy | mesh | ms an epoch | words received, busiest rank | all ranks "
      "|\n|---|---|---|---|---|---|\n");
  bool right = true;
  const auto run = [&](const char* model, nn::coupling how) {
    for (const policy& p : named_policies)
      threads::run(ranks, [&](const communicator& world) {
        const mesh<host> m(world, default_mesh(p, ranks));
        const nn::training_result r = nn::train_model<float>(m, d, options_of(model, how), p);
        if (world.rank() != 0) return;
        right = right && r.words_received.total == r.predicted_words_received.total;
        std::printf("| %s%s | %s | %s | %.1f | %lld | %lld |\n", model,
                    how == nn::coupling::decoupled ? ", decoupled" : "", std::string(p.name).c_str(),
                    to_string(m.shape()).c_str(), 1e3 * r.seconds_per_epoch,
                    static_cast<long long>(r.words_received.max_rank),
                    static_cast<long long>(r.words_received.total));
        std::fflush(stdout);
      });
  };
  for (const char* model : {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii"})
    run(model, nn::coupling::coupled);
  for (const char* model : {"gcn", "sage", "gat"}) run(model, nn::coupling::decoupled);
  return right;
}

struct cost {
  double seconds = 0;
  global_index words = 0, bytes = 0;
};

/// A model whose sums are of their own kind on a reproducible mesh; `batch` 0: on the whole graph.
struct summing_model {
  const char *name, *model;
  nn::aggregation aggregation;
  global_index batch;
};

template <class T>
cost cost_of(const io::dataset& d, const summing_model& of, const policy& p, mesh_shape shape,
             bool reproducibly) {
  cost c;
  nn::training_options o = options_of(of.model, nn::coupling::coupled);
  o.aggregation = of.aggregation;
  if (of.batch > 0)
    o.mini_batch = {.batch = of.batch, .fanouts = {10, 10}, .placement = sampling::placement::owner};
  threads::run(shape.size(), [&](const communicator& world) {
    const device_queue<host> queue;
    const mesh<host> m(world, shape, reproducibly ? reproducible(queue) : queue);
    const nn::training_result r = nn::train<T>(m, d, o, p);
    if (world.rank() == 0) c = {r.seconds_per_epoch, r.words_received.total, r.peak_bytes.max_rank};
  });
  return c;
}

/// Three runs of either mode, in turn.
template <class T>
void print_costs_in(const io::dataset& d, const summing_model& of, int ranks, const char* precision) {
  for (const auto& [p, shape] :
       {std::pair{row_1d, mesh_shape{ranks, 1, 1}}, std::pair{grid_2d, mesh_shape{ranks / 2, 2, 1}}}) {
    if (of.batch > 0 && p.name != row_1d.name) continue;  // batches have placements instead of policies
    std::vector<double> fast_seconds, seconds;
    cost fast, exact;
    for (int round = 0; round < 3; ++round) {
      fast = cost_of<T>(d, of, p, shape, false);
      exact = cost_of<T>(d, of, p, shape, true);
      fast_seconds.push_back(fast.seconds);
      seconds.push_back(exact.seconds);
    }
    const double before = bench::median(fast_seconds), after = bench::median(seconds);
    std::printf("| %s | %s | %s | %s | %.1f | %.1f | %.2f | %.2f | %.2f |\n", of.name, precision,
                std::string(p.name).c_str(), to_string(shape).c_str(), 1e3 * before, 1e3 * after,
                after / before, static_cast<double>(exact.words) / static_cast<double>(fast.words),
                static_cast<double>(exact.bytes) / static_cast<double>(fast.bytes));
    std::fflush(stdout);
  }
}

void print_costs(const io::dataset& d, int ranks) {
  std::printf(
      "%d ranks as threads, %lld vertices, %zu edges; batches of 1024, ten neighbours in each layer, "
      "placement owner; medians of 3 runs of 5 epochs\n\n"
      "| model | precision | policy | mesh | ms an epoch, fast | reproducible | ratio | of words | of peak "
      "bytes |\n"
      "|---|---|---|---|---|---|---|---|---|\n",
      ranks, static_cast<long long>(d.vertices), d.edges.size());
  for (const summing_model& of : {summing_model{"gcn", "gcn", nn::aggregation::mean, 0},
                                  {"gcn, batches", "gcn", nn::aggregation::mean, 1024},
                                  {"sage, max", "sage", nn::aggregation::max, 0},
                                  {"gat", "gat", nn::aggregation::mean, 0}}) {
    print_costs_in<float>(d, of, ranks, "f32");
    print_costs_in<double>(d, of, ranks, "f64");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  int scale = 15, ranks = 4;
  CLI::App app("The training step of every model under every policy on an R-MAT graph: seconds and words.",
               "models");
  CLI::App* const balance =
      app.add_subcommand("balance", "how evenly policies spread words and work, instead");
  CLI::App* const reproducible =
      app.add_subcommand("reproducible", "what reproducible sums cost, on an even number of ranks, instead");
  for (CLI::App* const command : {&app, balance, reproducible}) {
    bench::add_number(*command, "SCALE", scale, 4, 24, "the graph has 2^SCALE vertices");
    bench::add_number(*command, "RANKS", ranks, 1, 4096, "ranks that are threads");
  }
  bench::parse(app, argc, argv);
  bench::print_instructions();
  const io::dataset d = bench::rmat_dataset(scale);
  if (reproducible->parsed() && ranks % 2 != 0) throw error("a grid needs an even number of ranks");
  if (!balance->parsed() && !reproducible->parsed()) return print_times(d, ranks) ? 0 : 1;
  if (balance->parsed())
    print_balance(d, ranks);
  else
    print_costs(d, ranks);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "models: %s\n", e.what());
  return 2;
}
