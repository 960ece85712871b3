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

/// What all ranks receive, and the one that receives most.
struct rows_received {
  global_index all = 0, most = 0;

  void add(global_index of_rank) {
    all += of_rank;
    most = std::max(most, of_rank);
  }
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

void print_line(const std::string& name, const pattern& a, int ranks) {
  const partition::block_finder find(blocking::even(a.n, {ranks, 1, 1}, nesting::rows), axis::row);
  rows_received whole, needed, cover;
  double seconds = 0;
  for (std::size_t r = 0; r < find.count(); ++r) {
    const row_of_blocks blocks = blocks_of(a, find, find.block(r));
    const auto begin = std::chrono::steady_clock::now();
    global_index columns = 0, covered = 0;
    for (std::size_t s = 0; s < find.count(); ++s) {
      if (s == r) continue;
      std::vector<local_index> named = blocks.columns[s];
      std::sort(named.begin(), named.end());
      columns += std::unique(named.begin(), named.end()) - named.begin();
      const auto width = static_cast<local_index>(find.block(s).size());
      covered += partition::minimum_vertex_cover({blocks.begins[s], blocks.columns[s], width}).size;
    }
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    whole.add(a.n - find.block(r).size());
    needed.add(columns);
    cover.add(covered);
  }
  const auto share = [](global_index part, global_index of) {
    return of == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(of);
  };
  std::printf("| %s | %d | %lld | %lld | %lld | %.1f | %lld | %lld | %.2f |\n", name.c_str(), ranks,
              static_cast<long long>(whole.all), static_cast<long long>(needed.all),
              static_cast<long long>(cover.all), share(cover.all, needed.all),
              static_cast<long long>(needed.most), static_cast<long long>(cover.most), seconds / ranks);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Rows exchanged in one product under row_1d: whole blocks, needed rows, minimum vertex covers.");
  std::vector<std::string> directories;
  std::vector<int> ranks{4, 8, 16, 64};
  int scale = 17;
  app.add_option("directories", directories, "dataset directories");
  app.add_option("--ranks", ranks, "numbers of ranks")->delimiter(',')->check(CLI::Range(1, 4096));
  bench::add_number(app, "--rmat", scale, 0, 24, "R-MAT graph of 2^N vertices with 16 edges each");
  bench::parse(app, argc, argv);
  std::puts(
      "| graph | ranks | whole blocks | needed rows | cover | cover, % of needed | busiest, needed | "
      "busiest, cover | seconds a rank |\n|---|---|---|---|---|---|---|---|---|");
  std::vector<bench::graph> graphs;
  for (const std::string& dir : directories) graphs.push_back(bench::dataset_graph(dir));
  graphs.push_back(bench::rmat(scale));
  for (const bench::graph& g : graphs) {
    const pattern a(g);
    for (const int p : ranks) print_line(g.name, a, p);
  }
}
