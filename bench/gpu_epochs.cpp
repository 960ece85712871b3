// SPDX-License-Identifier: Apache-2.0
/// Training epochs in f32 on a CUDA device, on graphs generated there with the vertex and edge counts of real
/// ones.
///
///   gpu_epochs [--cases reddit_gcn_32,...] [--comm threads|nccl] [--ranks N] [--graph uniform|rmat]
///              [--epochs N] [--scale-down N] [--json FILE]
///
/// A training step is forward, loss, backward and Adam, measured from when all ranks start until all devices
/// have finished. Ranks are threads, sharing the first GPU, or with one GPU each over NCCL. Multi-rank cases
/// have N ranks (default: 4).

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "../examples/ranks/cuda_device.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/local/cuda/vendor_products.hpp"
#include "partita/partition/policies.hpp"
#include "support/cuda_calls.hpp"
#include "support/device_models.hpp"
#include "support/json.hpp"
#include "support/options.hpp"

using namespace partita;

namespace {

struct bench_case {
  std::string name;
  bench::graph_counts counts;
  global_index features, classes;
  std::string model;
  global_index hidden;
  int layers;
  std::string policy = "row_1d";
  int ranks = 1;
  bool tf32 = false, bf16 = false,
       graphs = true;  ///< dense products; operands of products with the graph; steps
};

std::vector<bench_case> every_case(int most_ranks) {
  const auto reddit = bench::reddit_counts(), products = bench::products_counts();
  std::vector<bench_case> cases = {{"reddit_gcn_32", reddit, 602, 41, "gcn", 100, 32},
                                   {"products_gcn", products, 100, 47, "gcn", 128, 2},
                                   {"products_sage", products, 100, 47, "sage", 128, 2},
                                   {"products_sage_max", products, 100, 47, "sage_max", 128, 2},
                                   {"products_gat", products, 100, 47, "gat", 8, 2},
                                   {"reddit_gat", reddit, 602, 41, "gat", 8, 2}};
  cases.push_back({"products_gcn_tf32", products, 100, 47, "gcn", 128, 2, "row_1d", 1, true});
  cases.push_back({"products_gcn_bf16", products, 100, 47, "gcn", 128, 2, "row_1d", 1, false, true});
  for (const bool graphs : {true, false}) {  // where a step costs what its launches do
    const std::string how = graphs ? "" : "_no_graph";
    const bench::graph_counts karate{"karate", 34, 156}, cora{"cora", 2708, 10556};
    cases.push_back({"karate_gcn" + how, karate, 34, 2, "gcn", 16, 2, "row_1d", 1, false, false, graphs});
    for (const std::string model : {"gcn", "sage", "gat"})
      cases.push_back({"cora_" + model + how, cora, 1433, 7, model, model == "gat" ? 8 : 16, 2, "row_1d", 1,
                       false, false, graphs});
  }
  for (const std::string policy : {"row_1d", "feature_column"})
    for (const int ranks : {1, most_ranks})
      cases.push_back({policy + "_" + std::to_string(ranks), reddit, 602, 41, "gcn", 128, 2, policy, ranks});
  return cases;
}

/// All training data except the edges.
io::dataset dataset_of(const bench_case& c) {
  io::dataset d;
  d.name = c.name;
  d.vertices = c.counts.vertices;
  d.features = c.features;
  d.classes = c.classes;
  std::vector<float> x(static_cast<std::size_t>(d.vertices * d.features));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(base::mixed_bits(i) >> 40) * 0x1.0p-24f;
  d.vertex_features = io::feature_table(d.vertices, d.features, std::move(x));
  for (global_index v = 0; v < d.vertices; ++v) {
    d.labels.push_back(
        static_cast<std::int64_t>(base::random_bits(3, v, 0) % static_cast<std::uint64_t>(d.classes)));
    d.split.push_back(static_cast<std::uint8_t>(1 + v % 3));
  }
  return d;
}

nn::training_options options_of(const bench_case& c) {
  nn::training_options o;
  o.model = c.model == "sage_max" ? "sage" : c.model;
  if (c.model == "sage_max") o.aggregation = nn::aggregation::max;
  o.hidden = {c.hidden};
  o.layers = c.layers;
  o.raw_features = true;
  if (c.bf16) o.operands = nn::operand_precision::bfloat16;
  return o;
}

struct figures {
  std::int64_t nonzeros = 0;
  double seconds = 0, first_loss = 0, last_loss = 0;
  nn::max_and_total peak, allocations, words, predicted;
  bench::cuda_calls calls;                   ///< by all ranks, in the steady epochs
  bool own_dense = true, own_sparse = true;  ///< built-in kernels instead of the vendor's libraries
  std::size_t device_bytes = 0;              ///< held by the process after training, pools included
};

std::size_t device_bytes_in_use() {
  std::size_t available = 0, total = 0;
  on_cuda::check_cuda(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return total - available;
}

/// A barrier over all ranks.
void meet(const communicator& world) {
  const comm::phase_scope phase(world.ledger(), "meeting");
  global_index nothing[] = {0};
  world.all_reduce(std::span<global_index>(nothing));
}

constexpr int warm_up = 4;

/// The body of every rank; the figures are the same on all.
figures train(const communicator& world, const bench_case& c, const io::dataset& data,
              const std::string& comm, bool rmat, int epochs) {
  const policy& p = find_policy(c.policy);
  const device_queue<cuda_device> queue = cuda_queue(world, comm, c.tf32);
  if (!c.graphs) queue.extend(std::make_shared<on_cuda::without_graphs>());
  const mesh<cuda_device> m = cuda_mesh(cuda_world(world, queue, comm), default_mesh(p, world.size()), queue);
  figures f;
  const nn::training_options options = options_of(c);
  nn::trainer<float, cuda_device> run(
      m, data, options,
      bench::model_on_device(m, p, c.counts, rmat, nn::layer_widths(data, options), options, f.nonzeros));
  std::vector<double> seconds;
  std::uint64_t allocations = 0;
  bench::cuda_calls calls;
  for (int e = 1; e <= warm_up + epochs; ++e) {
    queue.synchronize();
    m.ledger().clear();
    meet(world);
    if (e == warm_up + 1) {
      allocations = queue.meter()->allocations();
      calls = bench::count_cuda_calls();
      meet(world);
    }
    const auto begin = std::chrono::steady_clock::now();
    f.last_loss = run.step(e);
    queue.synchronize();
    meet(world);
    if (e == 1) f.first_loss = f.last_loss;
    if (e > warm_up)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  f.calls = bench::count_cuda_calls() - calls;
  meet(world);
  const traffic received = m.ledger().total([](const comm::ledger_entry& e) { return e.phase != "meeting"; });
  f.seconds = partita::nn::median(std::move(seconds));
  f.peak = nn::summarize(world, static_cast<global_index>(queue.meter()->peak()));
  f.allocations = nn::summarize(world, static_cast<global_index>(queue.meter()->allocations() - allocations));
  f.words = nn::summarize(world, received.words);
  f.predicted = nn::summarize(world, run.predicted().words);
  f.own_dense = on_cuda::libraries_of(queue).gemm_f32 == nullptr;
  f.own_sparse = on_cuda::libraries_of(queue).spmm_f32 == nullptr;
  f.device_bytes = device_bytes_in_use();
  meet(world);
  return f;
}

bench::json in_json(const bench_case& c, const figures& f, int epochs) {
  const auto an_epoch = [&](std::int64_t count) { return static_cast<double>(count) / epochs; };
  const auto of_ranks = [](nn::max_and_total o) {
    return bench::json{{"max_rank", o.max_rank}, {"total", o.total}};
  };
  return {{"case", c.name},
          {"model", c.model},
          {"layers", c.layers},
          {"hidden", c.hidden},
          {"features", c.features},
          {"classes", c.classes},
          {"vertices", c.counts.vertices},
          {"nonzeros", f.nonzeros},
          {"policy", c.policy},
          {"ranks", c.ranks},
          {"dense_products", f.own_dense ? "own kernels"
                             : c.tf32    ? "cuBLASLt, TF32"
                                         : "cuBLASLt"},
          {"graphs", c.graphs},
          {"sparse_products", c.bf16         ? "own kernels, operands of bf16"
                              : f.own_sparse ? "own kernels"
                                             : "the faster of cuSPARSE and own kernels"},
          {"epochs", epochs},
          {"seconds_per_epoch", f.seconds},
          {"first_loss", f.first_loss},
          {"last_loss", f.last_loss},
          {"peak_bytes", of_ranks(f.peak)},
          {"device_bytes", f.device_bytes},
          {"buffers_allocated_per_epoch", an_epoch(f.allocations.total)},
          {"words_received", of_ranks(f.words)},
          {"predicted_words_received", of_ranks(f.predicted)},
          {"calls_per_epoch",
           {{"allocations", an_epoch(f.calls.allocations)},
            {"device_waits", an_epoch(f.calls.device_waits)},
            {"stream_waits", an_epoch(f.calls.stream_waits)},
            {"copies_to_host", an_epoch(f.calls.copies_to_host)},
            {"copies_on_device", an_epoch(f.calls.copies_on_device)}}}};
}

figures measure(const bench_case& c, const io::dataset& data, const std::string& comm, bool rmat,
                int epochs) {
  figures result;
  threads::run(c.ranks, [&](const communicator& world) {
    const figures f = train(world, c, data, comm, rmat, epochs);
    if (world.rank() == 0) result = f;
  });
  return result;
}

struct command {
  std::vector<std::string> cases = {"all"};
  std::string comm = "threads", graph = "uniform", json;
  int ranks = 4, epochs = 10, smaller = 1;
};

/// The requested cases. Throws error for an unknown name.
std::vector<bench_case> chosen_cases(const command& asked) {
  std::vector<bench_case> cases = every_case(asked.ranks);
  if (asked.cases == std::vector<std::string>{"all"}) return cases;
  std::string names;
  for (const bench_case& c : cases) names += " " + c.name;
  for (const std::string& name : asked.cases)
    if (std::ranges::find(cases, name, &bench_case::name) == cases.end())
      throw error("unknown case " + name + "; there are" + names);
  std::erase_if(cases, [&](const bench_case& c) {
    return std::ranges::find(asked.cases, c.name) == asked.cases.end();
  });
  return cases;
}

void run(const command& asked) {
  bench::json results = bench::json::array();
  std::optional<io::dataset> data;
  std::printf("%-18s %5s %10s %10s %10s %12s %12s %10s\n", "case", "ranks", "ms/epoch", "peak GB",
              "device GB", "allocations", "host copies", "loss");
  for (bench_case c : chosen_cases(asked)) {
    c.counts = c.counts.divided_by(asked.smaller);
    std::fprintf(stderr, "making %s ...\n", c.name.c_str());
    if (!data || data->vertices != c.counts.vertices || data->features != c.features) data = dataset_of(c);
    const figures f = measure(c, *data, asked.comm, asked.graph == "rmat", asked.epochs);
    results.push_back(in_json(c, f, asked.epochs));
    std::printf("%-18s %5d %10.3f %10.3f %10.3f %12.1f %12.1f %10.5f\n", c.name.c_str(), c.ranks,
                1e3 * f.seconds, 1e-9 * static_cast<double>(f.peak.total),
                1e-9 * static_cast<double>(f.device_bytes),
                static_cast<double>(f.calls.allocations) / asked.epochs,
                static_cast<double>(f.calls.copies_to_host) / asked.epochs, f.last_loss);
    std::fflush(stdout);
    bench::write_json(asked.json, {{"graph", asked.graph}, {"comm", asked.comm}, {"cases", results}});
  }
}

}  // namespace

int main(int argc, char** argv) try {
  command asked;
  CLI::App app("Training steps in f32 on CUDA devices, on graphs made there with the counts of real ones.",
               "gpu_epochs");
  app.add_option("--cases", asked.cases, "cases, or all")
      ->delimiter(',')
      ->option_text("NAME[,NAME...]")
      ->default_str("all");
  bench::add_choice(app, "--comm", asked.comm, {"threads", "nccl"}, "one card for all ranks, or one each");
  bench::add_number(app, "--ranks", asked.ranks, 2, 1024, "ranks of the cases that have several");
  bench::add_choice(app, "--graph", asked.graph, {"uniform", "rmat"}, "how edges are drawn");
  bench::add_number(app, "--epochs", asked.epochs, 1, 10000, "steps that are measured");
  bench::add_number(app, "--scale-down", asked.smaller, 1, 1 << 20, "vertices and edges are divided by N");
  app.add_option("--json", asked.json, "write the figures")->option_text("FILE");
  bench::parse(app, argc, argv);
  // Lazy kernel loading may block on a GPU that waits for another rank of this process.
  if (asked.comm == "nccl") ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  run(asked);
} catch (const std::exception& e) {
  std::fprintf(stderr, "gpu_epochs: %s\n", e.what());
  return 1;
}
