// SPDX-License-Identifier: Apache-2.0
// What single verbs move under NeutronTP's layouts, and closed forms for its data sets.
#include "../support/small_matrices.hpp"
#include "neutrontp.hpp"
#include "partita/partition/gemm_choice.hpp"

namespace bench::claims {

namespace {

using namespace partita;

constexpr layout rows_cut = vertex_rows, columns_cut = feature_column.dense;

outcome columns_move_nothing() {
  parts p;
  global_index moved = 0;
  for (const int ranks : {2, 3, 5, 8})
    for (const global_index f : {1, 7, 16})
      for (const global_index w : words_of({1, ranks, 1}, [&](const host_mesh& m) {
             const auto a = distribute(m, feature_column, {41, 41},
                                       random_entries(41, 6, false, m.world().rank(), ranks));
             const auto x = random_rows(m, columns_cut, 41, f);
             return counted_product(a, x) + counted_product(transposed(a), x);
           }))
        moved += w;
  p.equal(moved, 0, "words");
  return p.result("0 words: P = 2, 3, 5, 8, f = 1, 7, 16, A and A^T");
}

outcome redistribution_moves() {
  parts p;
  for (const int ranks : {2, 3, 4, 8}) {
    const global_index n = 6 * ranks, f = 2 * ranks;
    for (const auto& [from, to] : {std::pair{rows_cut, columns_cut}, {columns_cut, rows_cut}})
      for (const global_index w : words_of({1, ranks, 1}, [&](const host_mesh& m) {
             const auto x = random_rows(m, from, n, f);
             return counted(m, [&] { (void)redistribute(x, to); });
           }))
        p.equal(w, (ranks - 1) * n * f / (ranks * ranks), text("a rank of %d", ranks));
  }
  return p.result("(P-1)/P^2 V d on every rank: max/min = 1, P = 2, 3, 4, 8, both ways");
}

/// Words of all ranks when n x c goes from rows to columns, by the library's closed form.
global_index one_way(int ranks, global_index n, global_index c) {
  global_index all = 0;
  for (const global_index w : words_of({1, ranks, 1}, [&](const host_mesh& m) {
         return redistribution<double, host>::predicted(m, blocking::even(n, m.shape(), nesting::rows),
                                                        blocking::even(c, m.shape(), nesting::cols), rows_cut,
                                                        columns_cut);
       }))
    all += w;
  return all;
}

outcome ragged_columns() {
  parts p;
  constexpr global_index n = 232'965;
  const auto bytes = [](global_index words) { return 4e-9 * static_cast<double>(4 * words); };
  // what stays on a rank is its block of both cuts
  const auto expected = [](global_index c) {
    global_index stays = 0;
    for (int r = 0; r < 16; ++r) stays += (n / 16 + (r < n % 16)) * (c / 16 + (r < c % 16));
    return n * c - stays;
  };
  for (const global_index c : {64, 41})
    p.equal(one_way(16, n, c), expected(c), text("%d columns", static_cast<int>(c)));
  global_index least = 41, most = 0;
  threads::run(16, [&](const communicator& world) {
    const host_mesh m(world, {1, 16, 1});
    const global_index mine =
        random_rows(m, columns_cut, 16, 41).col_blocking().block(columns_cut.cols, m.at()).size();
    global_index ends[] = {mine, -mine};
    world.all_reduce(std::span<global_index>(ends), reduction::max);
    if (world.rank() == 0) most = ends[0], least = -ends[1];
  });
  p.require(least == 2 && most == 3, "blocks of 41 columns are not 2 and 3 wide");
  const double saved = 1 - static_cast<double>(one_way(16, n, 64)) / static_cast<double>(one_way(16, n, 80));
  p.near(saved, 0.2, 0.01, "saved against 80 columns");
  return p.result(text("64 columns as 64: %.3f GB, %.0f %% less than 80; 41 as 9 x 3 + 7 x 2: %.3f GB",
                       bytes(one_way(16, n, 64)), 100 * saved, bytes(one_way(16, n, 41))));
}

/// Elements per vertex that all ranks receive in X W, X and the result in feature columns.
double chosen_per_vertex(int ranks, global_index in, global_index out) {
  const global_index n = 64 * ranks;
  const mesh_shape m{1, ranks, 1};
  const auto choice = partition::choose(
      {m, partition::evenly({n, in}, m, columns_cut), partition::evenly({in, out}, m, layout{}),
       partition::evenly({n, out}, m, columns_cut)},
      global_index{1} << 40);
  return static_cast<double>(choice.words * ranks) / static_cast<double>(n);
}

outcome between_layers() {
  parts p;
  std::string found;
  for (const int ranks : {2, 4, 8, 16}) {
    constexpr double in = 256, out = 48;  // 48: blocks of equal width on 16 ranks
    const double pair = (ranks - 1.0) / ranks * (in + out), sums = (ranks - 1) * out;
    const double chosen = chosen_per_vertex(ranks, 256, 48);
    p.require(chosen <= std::min(pair, sums) + 1e-9,
              text("P = %d: %.1f, not %.1f or %.1f", ranks, chosen, pair, sums));
    found += text("%sP = %d: %.0f of %.0f, %.0f", found.empty() ? "" : "; ", ranks, chosen, pair, sums);
  }
  return p.result(found + " (48 classes)");
}

outcome fewer_columns_than_ranks() {
  parts p;
  constexpr global_index n = 48, f = 2;
  for (const global_index w : words_of({4, 2, 1}, [&](const host_mesh& m) {
         const auto a = distribute(m, feature_row, {n, n}, random_entries(n, 40, false, m.world().rank(), 8));
         const auto x = random_rows(m, feature_row.dense, n, f);
         if (x.local().cols == 0) throw error("a rank has no columns");
         return counted_product(a, x, {.rows = row_exchange::full});
       }))
    p.equal(w, n * f / 2 - n * f / 8, "words");
  return p.result("8 ranks, 2 columns, as 4 x 2: n f/pc (1 - 1/pr) on each, no rank without columns");
}

outcome bandwidth_bound() {
  parts p;
  struct graph {
    const char* name;
    global_index vertices, classes;
    double bound, published;
  };
  std::string found;
  for (const graph& g : {graph{"Reddit", 232'965, 41, 0.0048, 0.19},
                         {"products", 2'449'029, 47, 0.058, 0.24},
                         {"papers100M", 111'059'956, 172, 9.6, 53.6},
                         {"Friendster", 65'608'366, 64, 2.1, 32.9}}) {
    const double seconds = 4 * 4 * static_cast<double>(one_way(16, g.vertices, g.classes)) / 16 / (15e9 / 8);
    p.near(seconds, g.bound, 0.02, g.name);
    found += text("%s%s %.3g s of %.3g", found.empty() ? "" : ", ", g.name, seconds, g.published);
  }
  return p.result(found + "; a model");
}

/// Seconds of two hops, of which the first begins with what a split in n chunks has brought, and a gather
/// sends what the second has made; messages and products have their own resource each.
double pipelined(double split, double first, double second, double gather, int n) {
  double arrived = 0, computed = 0;
  for (int j = 0; j < n; ++j) {
    arrived += split / n;
    computed = std::max(arrived, computed) + first / n;
  }
  double sent = 0;
  for (int j = 0; j < n; ++j) {
    computed += second / n;
    sent = std::max(computed, sent) + gather / n;
  }
  return sent;
}

outcome overlap() {
  parts p;
  struct times {
    const char* name;
    double compute, communication;
  };
  std::string found;
  for (const times& t : {times{"Reddit", .39, .19},
                         {"products", .46, .24},
                         {"papers100M", 95.8, 53.6},
                         {"Friendster", 74.3, 32.9}}) {
    // forward and backward alike: a split, two hops, a gather
    const double total =
        2 * pipelined(t.communication / 4, t.compute / 4, t.compute / 4, t.communication / 4, 16);
    const double eta = (t.compute + t.communication - total) / std::min(t.compute, t.communication);
    p.require(eta >= 0.83, text("%s: %.2f", t.name, eta));
    found += text("%s%s %.2f", found.empty() ? "" : ", ", t.name, eta);
  }
  return p.result("simulated, 16 chunks: " + found);
}

}  // namespace

std::vector<claim> words_of_neutrontp() {
  return {{"NeutronTP", "1", "a product with X cut by columns moves nothing", "0", columns_move_nothing},
          {"NeutronTP", "2", "rows to columns and back: equal shares on all ranks", "(P-1)/P V d in all",
           redistribution_moves},
          {"NeutronTP", "6", "columns are not padded", "C = 64, P = 16: 80 columns", ragged_columns},
          {"NeutronTP", "7", "X W in columns takes the cheaper of two all-to-alls and sums of parts",
           "256 -> 41: sums at P = 2 and 4, all-to-alls from 8 on", between_layers},
          {"NeutronTP", "8", "fewer columns than ranks: a grid keeps all ranks busy", "P - C ranks idle",
           fewer_columns_than_ranks},
          {"NeutronTP", "12", "splits and gathers overlap with hops: at least 0.83", "0.95, 0.83, 0.28, 0.51",
           overlap},
          {"NeutronTP", "16", "time of a product by width on Reddit's matrix",
           "t(w) ~ nnz (8 + 4 w)/bandwidth", [] { return on_a_card("times of one GPU"); }},
          {"NeutronTP", "17", "bound of communication at 15 Gbit/s, P = 16", "4.8 ms, 58 ms, 9.6 s, 2.1 s",
           bandwidth_bound}};
}

}  // namespace bench::claims
