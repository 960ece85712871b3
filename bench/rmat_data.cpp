// SPDX-License-Identifier: Apache-2.0
/// Writes an R-MAT graph with random features, labels and a split as a data directory: rmat_data DIR, of
/// 2^scale vertices or with the counts of a public graph.

#include <CLI/CLI.hpp>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

#include "partita/io/edge.hpp"
#include "partita/io/npy.hpp"
#include "support/graphs.hpp"

using namespace partita;

namespace {

/// The counts of a public graph, as its both directions of an edge are counted.
struct graph_shape {
  std::string_view name;
  global_index vertices, edges, features, classes, training;  ///< edges: pairs of vertices
};

// ogbn-products: Hu et al. (NeurIPS 2020), table 2 and its split. IGB-medium: Khatua et al. (KDD 2023); an
// eighth of its vertices and edges.
constexpr graph_shape shapes[] = {{"products", 2'449'029, 61'859'140, 100, 47, 196'615},
                                  {"igb_medium_eighth", 1'250'000, 7'504'856, 1024, 19, 750'000}};

/// Both directions of each pair u << 32 | v, in random order.
std::vector<io::edge> both_directions(std::vector<global_index> pairs) {
  base::shuffle(pairs, random_key{.seed = 4}.word());
  std::vector<io::edge> edges;
  edges.reserve(2 * pairs.size());
  const std::uint64_t word = random_key{.seed = 6}.word();
  for (const global_index pair : pairs) {
    const io::edge e{pair >> 32, pair & 0xffffffff}, back{e.target, e.source};
    const bool first = base::random_bits(word, pair, 0) % 2 == 0;
    edges.insert(edges.end(), {first ? e : back, first ? back : e});
  }
  return edges;
}

void keep_distinct(std::vector<global_index>& pairs) {
  std::ranges::sort(pairs);
  const auto again = std::ranges::unique(pairs);
  pairs.erase(again.begin(), again.end());
}

/// The pairs of an R-MAT graph of 2^scale vertices and `draws` draws for each, made in parts.
std::vector<global_index> pairs_of(int scale, int draws) {
  constexpr int parts = 16;
  std::vector<global_index> pairs;
  for (int part = 0; part < parts; ++part)
    for (const auto& e : bench::rmat(scale, draws).share(part, parts))
      if (e.row != e.col) pairs.push_back(std::min(e.row, e.col) << 32 | std::max(e.row, e.col));
  keep_distinct(pairs);
  return pairs;
}

/// The pairs of a graph of 2^scale vertices whose `draws` draws for each are uniform.
std::vector<global_index> uniform_pairs(int scale, int draws) {
  const global_index n = global_index{1} << scale;
  const std::uint64_t word = random_key{.seed = 7}.word();
  std::vector<global_index> pairs;
  for (global_index k = 0; k < draws * n; ++k) {
    const auto u = static_cast<global_index>(base::random_bits(word, k, 0) % static_cast<std::uint64_t>(n)),
               v = static_cast<global_index>(base::random_bits(word, k, 1) % static_cast<std::uint64_t>(n));
    if (u != v) pairs.push_back(std::min(u, v) << 32 | std::max(u, v));
  }
  keep_distinct(pairs);
  return pairs;
}

/// As many pairs as a shape has, drawn as R-MAT draws them on the next power of two, whose vertices are
/// scaled down.
std::vector<global_index> pairs_of(const graph_shape& s) {
  const int scale = std::bit_width(static_cast<std::uint64_t>(s.vertices - 1));
  std::vector<global_index> pairs;
  for (std::uint64_t round = 1; static_cast<global_index>(pairs.size()) < s.edges; ++round) {
    const global_index missing = s.edges - static_cast<global_index>(pairs.size());
    const global_index draws = missing + missing / 4 + 1, parts = (draws >> scale) + 1;
    for (global_index part = 0; part < parts; ++part)
      for (const auto& e :
           bench::rmat(scale, 1, round << 20 | static_cast<std::uint64_t>(part)).share(0, 1)) {
        const global_index u = e.row * s.vertices >> scale, v = e.col * s.vertices >> scale;
        if (u != v) pairs.push_back(std::min(u, v) << 32 | std::max(u, v));
      }
    keep_distinct(pairs);
  }
  base::shuffle(pairs, random_key{.seed = 5}.word());
  pairs.resize(static_cast<std::size_t>(s.edges));
  return pairs;
}

/// Row by row: they may be more than memory has room for.
void write_features(const std::filesystem::path& path, const graph_shape& s) {
  std::vector<float> row(static_cast<std::size_t>(s.features));
  const std::size_t bytes = row.size() * sizeof(float);
  std::ofstream file(path, std::ios::binary);
  file << io::npy_header_text<float>({s.vertices, s.features}, static_cast<std::size_t>(s.vertices) * bytes,
                                     path.string());
  for (global_index v = 0; v < s.vertices && file; ++v) {
    for (global_index j = 0; j < s.features; ++j)
      row[static_cast<std::size_t>(j)] = static_cast<float>(base::random_uniform(2, v, j));
    file.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(bytes));
  }
  if (!file.flush()) throw error("cannot write " + path.string());
}

void write_rows(const std::filesystem::path& folder, const graph_shape& s) {
  const global_index n = s.vertices;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> split;
  for (global_index v = 0; v < n; ++v) {
    labels.push_back(
        static_cast<std::int64_t>(base::random_bits(3, v, 0) % static_cast<std::uint64_t>(s.classes)));
    if (s.training == 0)
      split.push_back(static_cast<std::uint8_t>(1 + v % 3));
    else  // 1 for `training` vertices, the others in turn for validation and test
      split.push_back(v * s.training / n != (v + 1) * s.training / n ? 1
                                                                     : static_cast<std::uint8_t>(2 + v % 2));
  }
  write_features(folder / "features.npy", s);
  io::write_npy(folder / "labels.npy", {n}, labels);
  io::write_npy(folder / "split.npy", {n}, split);
}

}  // namespace

int main(int argc, char** argv) try {
  std::filesystem::path folder;
  std::string name;
  int scale = 20, draws = 16;
  global_index features = 64, down = 1;
  CLI::App app(
      "An R-MAT graph as a data directory: of 2^scale vertices, or with the counts of a public graph");
  app.add_option("folder", folder, "is made if it is not there")->required();
  app.add_option("--scale", scale, "2^scale vertices")->capture_default_str()->check(CLI::Range(4, 28));
  app.add_option("--draws", draws, "of pairs, for each vertex; both directions of a pair become edges")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  bool is_uniform = false;
  auto* const uniform = app.add_flag("--uniform", is_uniform, "draw pairs uniformly, not as R-MAT does");
  app.add_option("--features", features)->capture_default_str()->check(CLI::PositiveNumber);
  auto* const shape = app.add_option("--shape", name, "products or igb_medium_eighth, in place of --scale")
                          ->excludes(uniform)
                          ->check(CLI::IsMember({"products", "igb_medium_eighth"}));
  app.add_option("--scale-down", down, "of a shape: so many times fewer vertices and edges")
      ->needs(shape)
      ->check(CLI::Range(1, 1 << 12));
  CLI11_PARSE(app, argc, argv);

  graph_shape s{"", global_index{1} << scale, 0, features, 16, 0};
  if (*shape) s = *std::ranges::find(shapes, name, &graph_shape::name);
  s.vertices /= down;
  s.edges /= down;
  s.training /= down;
  std::filesystem::create_directories(folder);
  const std::vector<io::edge> edges = both_directions(*shape       ? pairs_of(s)
                                                      : is_uniform ? uniform_pairs(scale, draws)
                                                                   : pairs_of(scale, draws));
  io::write_npy(folder / "edges.npy", {static_cast<global_index>(edges.size()), 2},
                std::span(&edges.data()->source, 2 * edges.size()));
  write_rows(folder, s);
  std::printf("%s: %lld vertices, %zu edges, %lld features\n", folder.c_str(),
              static_cast<long long>(s.vertices), edges.size(), static_cast<long long>(s.features));
} catch (const std::exception& e) {
  std::fprintf(stderr, "rmat_data: %s\n", e.what());
  return 1;
}
