/// The training step of every model under every policy on an R-MAT graph (Graph500 parameters): seconds and
/// words.
///
///   models [SCALE [RANKS]]     vertices: 2^SCALE (15), 16 edges each; 64 features, 16 classes, hidden width
///   32; ranks: 4

#include <cstdio>
#include <cstdlib>

#include "../examples/training/host.hpp"
#include "partita/comm/threads.hpp"
#include "partita/partition/policies.hpp"
#include "support/graphs.hpp"

using namespace partita;

namespace {

dataset rmat_dataset(int scale) {
  dataset d;
  d.name = "rmat_" + std::to_string(scale);
  d.vertices = global_index{1} << scale;
  d.features = 64;
  d.classes = 16;
  const bench::graph g = bench::rmat(scale);
  for (const auto& e : g.share(0, 1)) d.edges.push_back({e.col, e.row});
  std::vector<float> x;
  for (global_index v = 0; v < d.vertices; ++v) {
    for (global_index j = 0; j < d.features; ++j) x.push_back(static_cast<float>(random_uniform(2, v, j)));
    d.labels.push_back(static_cast<std::int64_t>(random_bits(3, v, 0) % 16));
    d.split.push_back(static_cast<std::uint8_t>(1 + v % 3));
  }
  d.vertex_features = feature_table(d.vertices, d.features, std::move(x));
  return d;
}

training_options options_of(const std::string& model, coupling how) {
  training_options o;
  o.model = model;
  o.coupling = how;
  o.hidden = {model == "gat" ? 8 : 32};
  o.heads = 4;
  o.layers = model == "gcnii" ? 8 : 0;
  o.epochs = 5;
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const int scale = argc > 1 ? std::atoi(argv[1]) : 15, ranks = argc > 2 ? std::atoi(argv[2]) : 4;
  if (scale < 4 || scale > 24 || ranks < 1) {
    std::fputs("models: a scale from 4 to 24 and a number of ranks\n", stderr);
    return 2;
  }
  const dataset d = rmat_dataset(scale);
  std::printf("%d ranks as threads, %lld vertices, %zu edges, f32; median of 5 epochs\n\n", ranks,
              static_cast<long long>(d.vertices), d.edges.size());
  std::printf(
      "| model | policy | mesh | ms an epoch | words received, busiest rank | all ranks "
      "|\n|---|---|---|---|---|---|\n");
  bool right = true;
  const auto run = [&](const char* model, coupling how) {
    for_each_policy([&](auto policy) {
      threads::run(ranks, [&](const communicator& world) {
        using policy_type = decltype(policy);
        const mesh<host> m(world, default_mesh<policy_type>(ranks));
        const training_result r = train_model<float, policy_type>(m, d, options_of(model, how));
        if (world.rank() != 0) return;
        right = right && r.words_received.total == r.predicted_words_received.total;
        std::printf("| %s%s | %s | %s | %.1f | %lld | %lld |\n", model,
                    how == coupling::decoupled ? ", decoupled" : "", policy_type::name,
                    to_string(m.shape()).c_str(), 1e3 * r.seconds_per_epoch,
                    static_cast<long long>(r.words_received.max_rank),
                    static_cast<long long>(r.words_received.total));
        std::fflush(stdout);
      });
    });
  };
  for (const char* model : {"gcn", "sage", "gin", "gat", "sgc", "appnp", "gcnii"})
    run(model, coupling::coupled);
  for (const char* model : {"gcn", "sage"}) run(model, coupling::decoupled);
  return right ? 0 : 1;
}
