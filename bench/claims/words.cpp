// SPDX-License-Identifier: Apache-2.0
// Published algorithms as policies and options of partita: what all ranks receive in a small case, by ledger,
// beside the published formula.
#include <cstdio>
#include <map>
#include <set>

#include "../support/small_matrices.hpp"
#include "cagnet.hpp"
#include "runs.hpp"
#include "tables.hpp"

namespace bench::claims {

namespace {

using namespace partita;

constexpr global_index n = 96, f = 8, degree = 8;

struct words_row {
  const char *algorithm, *as, *formula;
  int ranks;
  global_index counted, expected;
};

global_index sum(const std::vector<global_index>& list) {
  return std::accumulate(list.begin(), list.end(), global_index{0});
}

/// What all ranks receive in A X.
global_index counted_on(const policy& p, mesh_shape shape, spmm_options how) {
  return sum(words_of(shape, [&](const host_mesh& m) {
    const auto mine = random_entries(n, degree, true, m.world().rank(), m.world().size());
    const auto a = distribute(m, p, {n, n}, mine, symmetry::symmetric);
    return counted_product(a, random_rows(m, p.dense, n, f), how);
  }));
}

/// Rows of X that blocks of A's rows need of others, where `parts` of them are cut.
global_index needed_of_others(int parts) {
  std::set<std::pair<global_index, global_index>> pairs;
  const global_index block = n / parts;
  for (const auto& e : random_entries(n, degree, true))
    if (e.row / block != e.col / block) pairs.insert({e.row / block, e.col});
  return std::ssize(pairs);
}

/// Over all blocks of A that belong to two of `parts`, entries no two of which share a row or a column: as
/// many as there can be, by augmenting paths.
global_index matched(int parts) {
  std::map<std::pair<global_index, global_index>, std::map<global_index, std::vector<global_index>>> blocks;
  const global_index block = n / parts;
  for (const auto& e : random_entries(n, degree, true))
    if (e.row / block != e.col / block) blocks[{e.row / block, e.col / block}][e.row].push_back(e.col);
  global_index size = 0;
  for (const auto& [pair, rows] : blocks) {
    std::map<global_index, global_index> row_of;
    std::set<global_index> seen;
    const auto augment = [&](global_index row, const auto& again) -> bool {
      for (const global_index col : rows.at(row))
        if (seen.insert(col).second && (!row_of.contains(col) || again(row_of[col], again))) {
          row_of[col] = row;
          return true;
        }
      return false;
    };
    for (const auto& [row, columns] : rows) {
      seen.clear();
      size += augment(row, augment);
    }
  }
  return size;
}

/// Words of A's blocks that cross col on a pr x pc x pd mesh: columns and values, and for each of pr tiles
/// the offsets of its rows.
global_index words_of_a(mesh_shape m) {
  const global_index nonzeros = std::ssize(random_entries(n, degree, true)),
                     offsets = (n + m.row + 3) / 4 * 4;
  return (m.col - 1) * (2 * nonzeros + m.size() * offsets);
}
/// Words of X along row and of Y along depth, where A moves.
global_index words_of_rows(mesh_shape m) {
  return m.size() * (n * f / (m.col * m.depth) - n * f / m.size()) + (m.depth - 1) * n * f;
}

void add_products(std::vector<words_row>& rows) {
  constexpr spmm_options blocks{.stationary = stationary::c, .rows = row_exchange::full},
      needed{.stationary = stationary::c, .rows = row_exchange::sparsity_aware},
      cover{.rows = row_exchange::cover};
  const auto with_a = [](mesh_shape m) { return words_of_a(m) + words_of_rows(m); };
  rows.push_back({"CAGNET 1D", "`row_1d`, whole blocks", "(P-1) n f", 8,
                  counted_on(row_1d, {8, 1, 1}, blocks), 7 * n * f});
  rows.push_back({"CAGNET 1D, sparsity-aware", "`row_1d`, needed rows",
                  "f x pairs of a rank and a remote column", 8, counted_on(row_1d, {8, 1, 1}, needed),
                  f * needed_of_others(8)});
  rows.push_back({"SuperGCN", "`row_1d`, `row_exchange::cover`", "f x largest matchings of the blocks", 8,
                  counted_on(row_1d, {8, 1, 1}, cover), f * matched(8)});
  rows.push_back({"CAGNET 1.5D", "`replicated_1_5d` on P/c x 1 x c", "P n f/c (1 - c/P) + 2 (c-1) n f", 8,
                  counted_on(replicated_1_5d, {4, 1, 2}, blocks), 4 * n * f - n * f + 2 * n * f});
  rows.push_back({"CAGNET 2D", "`grid_2d`, A moves", "(q-1) (n f + 2 nnz), offsets; published: 3 nnz", 16,
                  counted_on(grid_2d, {4, 4, 1}, blocks), with_a({4, 4, 1})});
  rows.push_back({"CAGNET 3D", "`split_3d` on q x q x q, A moves",
                  "(q-1) (2 n f + 2 nnz), offsets; published: 3 nnz", 8,
                  counted_on(split_3d, {2, 2, 2}, blocks), with_a({2, 2, 2})});
  rows.push_back({"distributed_sddmm, 1.5D dense shift", "`split_3d` on P/c x 1 x c",
                  "P n f/c + (c-1) n f, less own blocks, n f", 8, counted_on(split_3d, {4, 1, 2}, blocks),
                  4 * n * f - n * f + n * f});
  rows.push_back({"distributed_sddmm, 1.5D sparse shift", "`split_3d` on 1 x P/c x c, A moves",
                  "(P/c - 1) 2 nnz, offsets, + (c-1) n f *", 8, counted_on(split_3d, {1, 4, 2}, blocks),
                  with_a({1, 4, 2})});
  rows.push_back({"distributed_sddmm, 2.5D dense replicating", "`split_3d` on q x q x c, A moves",
                  "(q-1) (n f + 2 nnz), offsets, + (c-1) n f *", 16, counted_on(split_3d, {2, 2, 4}, blocks),
                  with_a({2, 2, 4})});
  rows.push_back({"distributed_sddmm, 2.5D sparse replicating", "`feature_row` on P/c x c, 1D inside",
                  "(P/c - 1) n f *", 8, counted_on(feature_row, {4, 2, 1}, blocks), 3 * n * f});
  rows.push_back({"CRP-SpMM", "`feature_row`, needed rows",
                  "f x pairs of a block of rows and a remote column *", 8,
                  counted_on(feature_row, {4, 2, 1}, needed), f * needed_of_others(4)});
  constexpr policy plexus{"plexus", {{}, axis::depth}, {axis::depth, axis::col}};
  rows.push_back({"Plexus, two of its axes", "own policy: A (none, depth), X (depth, col) on 1 x y x x",
                  "(x-1) n f; published: 2 (x-1) n f, all-reduced", 8, counted_on(plexus, {1, 2, 4}, blocks),
                  3 * n * f});
}

void add_training(std::vector<words_row>& rows) {
  nn::training_options o;
  o.coupling = nn::coupling::decoupled, o.hidden = {6}, o.epochs = 2;
  const auto decoupled = train(complete_graph(24, 10, 4), o, feature_column, {1, 4, 1});
  rows.push_back({"NeutronTP", "`feature_column`, decoupled", "4 (P-1)/P n C an epoch", 4,
                  of_operation(decoupled, operation::all_to_all).words, 4 * 3 * 24 * 4 / 4});
  o = {};
  o.hidden = {6}, o.epochs = 2, o.dropout = 0;
  o.mini_batch = {.batch = 24, .fanouts = {-1, -1}, .sampled_scores = true};
  const auto sums = [&](sampling::placement how, auto counts) {
    o.mini_batch.placement = how;
    const auto r = train(complete_graph(24, 10, 3), o, row_1d, {4, 1, 1});
    global_index words = 0;
    for (const auto& e : r.ledger)
      if (e.phase != "evaluation" && counts(e)) words += e.received.words;
    return words;
  };
  // every rank needs all 24 vertices in both layers
  rows.push_back({"P3", "mini-batches, placement `column`", "2 (P-1) n_1 d", 4,
                  sums(sampling::placement::column,
                       [](const auto& e) {
                         return e.phase == "training" &&
                                (e.kind == operation::reduce_scatter ||
                                 (e.kind == operation::all_gather && e.axis != "world"));
                       }),
                  2 * 3 * (4 * 24) * 6});
  rows.push_back(
      {"LeapGNN", "mini-batches, placement `owner`", "remote rows x F, their ids, P (P-1) counts", 4,
       sums(sampling::placement::owner,
            [](const auto& e) { return e.phase == "features" && e.kind == operation::all_to_all; }),
       3 * 24 * 10 + 3 * 24 + 4 * 3});
  o = {};
  o.model = "gcnii", o.hidden = {6}, o.layers = 8, o.epochs = 2;
  o.pipeline.stages = 4, o.pipeline.chunks = 4;
  rows.push_back({"GNNPipe", "`--stages`", "2 (S-1) n H (1+s)", 4,
                  train(complete_graph(24, 10, 3), o, row_1d, {4, 1, 1}).pipeline->boundary_words.total,
                  2 * 3 * 24 * 6 * 2});
}

}  // namespace

bool print_words() {
  std::vector<words_row> rows;
  add_products(rows);
  add_training(rows);
  std::printf(
      "| algorithm | in partita | words of all ranks | P | by ledger | by formula "
      "|\n|---|---|---|---|---|---|\n");
  bool equal = true;
  for (const words_row& r : rows) {
    std::printf("| %s | %s | %s | %d | %lld | %lld |\n", r.algorithm, r.as, r.formula, r.ranks,
                static_cast<long long>(r.counted), static_cast<long long>(r.expected));
    equal = equal && r.counted == r.expected;
  }
  return equal;
}

}  // namespace bench::claims
