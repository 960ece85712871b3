// SPDX-License-Identifier: Apache-2.0
// Rows that one product exchanges under row_1d by closed forms, without ranks: whole blocks, needed rows, and
// minimum vertex covers.
#include <chrono>
#include <cstdio>

#include "partita/partition/block_finder.hpp"
#include "partita/partition/vertex_cover.hpp"
#include "support/dataset_graph.hpp"
#include "support/options.hpp"

namespace {

using namespace partita;

/// What all ranks receive, and the one that receives most; of all, what comes from another node.
struct rows_received {
  global_index all = 0, most = 0, between_nodes = 0;

  void add(global_index of_rank) {
    all += of_rank;
    most = std::max(most, of_rank);
  }
};
/// The same for each exchange.
struct exchanges {
  rows_received whole, needed, cover;
  double seconds = 0;
};

/// The entries of A by row, each place once.
struct pattern {
  global_index n;
  std::vector<std::pair<global_index, global_index>> places;

  explicit pattern(const bench::graph& g) : n(g.vertices) {
    for (const auto& e : g.share(0, 1)) places.push_back({e.row, e.col});
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
};

/// The blocks of one rank: rows begin in each of them where `begins` says.
struct row_of_blocks {
  std::vector<std::vector<std::size_t>> begins;
  std::vector<std::vector<local_index>> columns;
};

row_of_blocks blocks_of(const pattern& a, const partition::block_finder& find, interval rows) {
  const std::size_t ranks = find.count();
  row_of_blocks found{std::vector(ranks, std::vector<std::size_t>{0}),
                      std::vector<std::vector<local_index>>(ranks)};
  auto e = std::lower_bound(a.places.begin(), a.places.end(), std::pair(rows.begin, global_index{0}));
  for (global_index i = rows.begin; i < rows.end; ++i) {
    for (; e != a.places.end() && e->first == i; ++e) {
      const std::size_t r = find(e->second);
      found.columns[r].push_back(static_cast<local_index>(e->second - find.block(r).begin));
    }
    for (std::size_t r = 0; r < ranks; ++r) found.begins[r].push_back(found.columns[r].size());
  }
  return found;
}

/// For these blocks, each of a rank; nodes have so many consecutive ones.
exchanges count_rows(const pattern& a, const partition::block_finder& find, int per_node) {
  const auto ranks = static_cast<int>(find.count());
  exchanges found;
  for (int r = 0; r < ranks; ++r) {
    const interval rows = find.block(static_cast<std::size_t>(r));
    const row_of_blocks blocks = blocks_of(a, find, rows);
    const auto begin = std::chrono::steady_clock::now();
    global_index columns = 0, covered = 0;
    for (int s = 0; s < ranks; ++s) {
      if (s == r) continue;
      const auto t = static_cast<std::size_t>(s);
      std::vector<local_index> named = blocks.columns[t];
      std::sort(named.begin(), named.end());
      const global_index needed = std::unique(named.begin(), named.end()) - named.begin();
      const auto width = static_cast<local_index>(find.block(t).size());
      const global_index cover =
          partition::minimum_vertex_cover({blocks.begins[t], blocks.columns[t], width}).size;
      columns += needed;
      covered += cover;
      if (s / per_node == r / per_node) continue;
      found.needed.between_nodes += needed;
      found.cover.between_nodes += cover;
    }
    found.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    found.whole.add(a.n - rows.size());
    found.needed.add(columns);
    found.cover.add(covered);
  }
  return found;
}

double share(global_index part, global_index of) {
  return of == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(of);
}
long long number(global_index n) { return n; }

void print_line(const std::string& name, const pattern& a, int ranks) {
  const blocking rows = blocking::even(a.n, {ranks, 1, 1}, nesting::rows);
  const auto [whole, needed, cover, seconds] = count_rows(a, {rows, axis::row}, ranks);
  std::printf("| %s | %d | %lld | %lld | %lld | %.1f | %lld | %lld | %.2f |\n", name.c_str(), ranks,
              number(whole.all), number(needed.all), number(cover.all), share(cover.all, needed.all),
              number(needed.most), number(cover.most), seconds / ranks);
}
/// What crosses from node to node: each row to each rank that receives it; or once to each node, where it is
/// handed on, and sums are taken over the ranks of a node before they leave it. Then nodes have the exchange
/// that ranks had.
void print_nodes(const std::string& name, const pattern& a, int ranks, int per_node) {
  const blocking rows = blocking::even(a.n, {ranks / per_node, 1, per_node}, nesting::rows);
  const exchanges flat = count_rows(a, {rows, partition::every_axis}, per_node),
                  once = count_rows(a, {rows, axis::row}, 1);
  std::printf("| %s | %d | %d | %lld | %lld | %lld | %lld | %.1f |\n", name.c_str(), ranks / per_node,
              per_node, number(flat.needed.between_nodes), number(flat.cover.between_nodes),
              number(once.needed.between_nodes), number(once.cover.between_nodes),
              share(once.cover.between_nodes, flat.cover.between_nodes));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Rows exchanged in one product under row_1d: whole blocks, needed rows, minimum vertex covers.");
  std::vector<std::string> directories;
  std::vector<int> ranks{4, 8, 16, 64};
  int scale = 17, per_node = 1;
  app.add_option("directories", directories, "dataset directories");
  app.add_option("--ranks", ranks, "numbers of ranks")->delimiter(',')->check(CLI::Range(1, 4096));
  bench::add_number(app, "--rmat", scale, 0, 24, "R-MAT graph of 2^N vertices with 16 edges each");
  bench::add_number(app, "--per-node", per_node, 1, 4096, "what crosses between nodes of N ranks each");
  bench::parse(app, argc, argv);
  for (const int p : ranks)
    if (p % per_node != 0) return std::fputs("--per-node must divide the numbers of ranks\n", stderr), 2;
  std::puts(
      per_node == 1
          ? "| graph | ranks | whole blocks | needed rows | cover | cover, % of needed | busiest, needed | "
            "busiest, cover | seconds a rank |\n|---|---|---|---|---|---|---|---|---|"
          : "| graph | nodes | ranks of each | needed rows | cover | needed, once a node | "
            "cover, once a node | %, of covers |\n|---|---|---|---|---|---|---|---|");
  std::vector<bench::graph> graphs;
  for (const std::string& dir : directories) graphs.push_back(bench::dataset_graph(dir));
  graphs.push_back(bench::rmat(scale));
  for (const bench::graph& g : graphs) {
    const pattern a(g);
    for (const int p : ranks) per_node == 1 ? print_line(g.name, a, p) : print_nodes(g.name, a, p, per_node);
  }
}
