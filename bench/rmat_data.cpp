// SPDX-License-Identifier: Apache-2.0
/// Writes an R-MAT graph with random features, labels and a split as a data directory: rmat_data DIR.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <span>

#include "partita/io/edge.hpp"
#include "partita/io/npy.hpp"
#include "support/graphs.hpp"

using namespace partita;

namespace {

/// Both directions of each edge, once each and in random order, without loops.
std::vector<io::edge> symmetric_edges(int scale) {
  std::vector<global_index> packed;
  for (const auto& e : bench::rmat(scale).share(0, 1))
    if (e.row != e.col) packed.insert(packed.end(), {e.row << 32 | e.col, e.col << 32 | e.row});
  std::ranges::sort(packed);
  const auto again = std::ranges::unique(packed);
  packed.erase(again.begin(), again.end());
  base::shuffle(packed, random_key{.seed = 4}.word());
  std::vector<io::edge> edges;
  edges.reserve(packed.size());
  for (const global_index e : packed) edges.push_back({e >> 32, e & 0xffffffff});
  return edges;
}

}  // namespace

int main(int argc, char** argv) try {
  std::filesystem::path folder;
  int scale = 20;
  global_index features = 64;
  CLI::App app("An R-MAT graph of 2^scale vertices, 16 edges each, as a data directory");
  app.add_option("folder", folder, "is made if it is not there")->required();
  app.add_option("--scale", scale)->capture_default_str()->check(CLI::Range(4, 28));
  app.add_option("--features", features)->capture_default_str()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  std::filesystem::create_directories(folder);
  const std::vector<io::edge> edges = symmetric_edges(scale);
  io::write_npy(folder / "edges.npy", {static_cast<global_index>(edges.size()), 2},
                std::span(&edges.data()->source, 2 * edges.size()));
  const auto n = global_index{1} << scale;
  std::vector<float> x;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> split;
  for (global_index v = 0; v < n; ++v) {
    for (global_index j = 0; j < features; ++j)
      x.push_back(static_cast<float>(base::random_uniform(2, v, j)));
    labels.push_back(static_cast<std::int64_t>(base::random_bits(3, v, 0) % 16));
    split.push_back(static_cast<std::uint8_t>(1 + v % 3));
  }
  io::write_npy(folder / "features.npy", {n, features}, x);
  io::write_npy(folder / "labels.npy", {n}, labels);
  io::write_npy(folder / "split.npy", {n}, split);
  std::printf("%s: %lld vertices, %zu edges, %lld features\n", folder.c_str(), static_cast<long long>(n),
              edges.size(), static_cast<long long>(features));
} catch (const std::exception& e) {
  std::fprintf(stderr, "rmat_data: %s\n", e.what());
  return 1;
}
