// SPDX-License-Identifier: Apache-2.0
// Needed rows instead of whole blocks, and what survives on its way between ranks.
#include <numeric>
#include <set>

#include "../support/graphs.hpp"
#include "../support/small_matrices.hpp"
#include "cagnet.hpp"
#include "partita/partition/volume.hpp"
#ifdef PARTITA_WITH_METIS
#include "partita/partition/metis.hpp"
#endif

namespace bench::claims {

namespace {

using namespace partita;
using triplets = std::vector<triplet<double>>;

constexpr spmm_options needed_rows{.stationary = stationary::c, .rows = row_exchange::sparsity_aware};

triplets share_of(const triplets& all, const communicator& world) {
  const interval mine = comm::share_of(std::ssize(all), world.rank(), world.size());
  return {all.begin() + mine.begin, all.begin() + mine.end};
}

/// Words of all ranks in a product under row_1d.
global_index words_1d(const triplets& all, global_index n, global_index f, int ranks, spmm_options how) {
  global_index sum = 0;
  for (const global_index w : words_of({ranks, 1, 1}, [&](const host_mesh& m) {
         const auto a = distribute(m, row_1d, {n, n}, share_of(all, m.world()));
         const auto x = random_rows(m, row_1d.dense, n, f);
         return counted_product(a, x, how);
       }))
    sum += w;
  return sum;
}

/// Pairs of a column and a rank that has an entry in it, and not the row of X.
global_index remote_columns(const triplets& all, global_index n, int ranks) {
  const auto owner = [&](global_index v) {
    int r = 0;
    while (!(v < comm::share_of(n, r, ranks).end)) ++r;
    return r;
  };
  std::set<std::pair<global_index, int>> pairs;
  for (const auto& e : all)
    if (owner(e.row) != owner(e.col)) pairs.insert({e.col, owner(e.row)});
  return std::ssize(pairs);
}

/// The parts of a skewed graph with the fewest edges between them, and what a refinement of these makes of
/// the volumes.
std::string balanced_volumes(parts& p) {
  std::set<std::pair<global_index, global_index>> pattern;
  const graph skewed = rmat(11);
  for (const auto& e : skewed.share(0, 1)) pattern.emplace(e.row, e.col);
  std::vector<global_index> offsets(static_cast<std::size_t>(skewed.vertices) + 1, 0), columns;
  for (const auto& [row, col] : pattern) {
    ++offsets[static_cast<std::size_t>(row) + 1];
    columns.push_back(col);
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  constexpr int ranks = 8;
#ifdef PARTITA_WITH_METIS
  const std::vector<int> start = partition::metis_parts(offsets, columns, ranks);
#else
  std::vector<int> start(static_cast<std::size_t>(skewed.vertices));
  for (std::size_t v = 0; v < start.size(); ++v) start[v] = static_cast<int>(v * ranks / start.size());
#endif
  const auto most = [&](const std::vector<int>& of) {
    return partition::volumes_of(offsets, columns, of, ranks).largest();
  };
  const global_index before = most(start),
                     after = most(partition::lower_largest_volume(offsets, columns, start, ranks));
  p.require(after < before, "the largest volume of a rank is no smaller after the refinement");
  return text("R-MAT of 2^11 vertices: at most %lld rows a rank, %lld refined",
              static_cast<long long>(before), static_cast<long long>(after));
}

outcome only_needed_rows() {
  parts p;
  constexpr global_index n = 64, f = 5;
  triplets rmat_entries, diagonal, full;
  for (const auto& e : rmat(6).share(0, 1)) rmat_entries.push_back({e.row, e.col, 1.0});
  for (global_index v = 0; v < n; ++v)
    for (global_index u = 0; u < n; ++u) {
      full.push_back({v, u, 1.0});
      if (u / 8 == v / 8) diagonal.push_back({v, u, 1.0});
    }
  struct matrix {
    const char* name;
    triplets entries;
  };
  std::string found;
  for (const matrix& a : {matrix{"random", random_entries(n, 3, false)},
                          {"R-MAT", rmat_entries},
                          {"block diagonal", diagonal},
                          {"full", full}}) {
    for (const int ranks : {2, 4, 8}) {
      const global_index needed = words_1d(a.entries, n, f, ranks, needed_rows),
                         whole = words_1d(a.entries, n, f, ranks, whole_blocks);
      p.equal(needed, f * remote_columns(a.entries, n, ranks), text("%s, P = %d", a.name, ranks));
      p.require(needed <= whole, text("%s, P = %d: more than whole blocks", a.name, ranks));
      if (ranks == 8)
        found += text("%s%s %.2f", found.empty() ? "" : ", ", a.name,
                      static_cast<double>(needed) / static_cast<double>(whole));
    }
  }
  p.equal(words_1d(diagonal, n, f, 8, needed_rows), 0, "block diagonal");
  p.equal(words_1d(full, n, f, 8, needed_rows), words_1d(full, n, f, 8, whole_blocks), "full");
  return p.result("f times the remote columns; of whole blocks, P = 8: " + found + "; " +
                  balanced_volumes(p));
}

/// Rows of X in the buffers of a plan of the middle rank, when all ranks need 2 x `width` rows of others.
double buffered_rows(global_index n, global_index width) {
  double rows = 0;
  threads::run(4, [&](const communicator& world) {
    const host_mesh m(world, {4, 1, 1});
    triplets band;
    const interval mine = comm::share_of(n, world.rank(), 4);
    for (global_index v = mine.begin; v < mine.end; ++v)
      for (global_index u = std::max<global_index>(0, v - width); u <= std::min(n - 1, v + width); ++u)
        band.push_back({v, u, 1.0});
    const auto a = distribute(m, row_1d, {n, n}, band, symmetry::one_way);
    double bytes[] = {0, 0, 0};  // the first with what only the first plan makes
    for (const int i : {0, 1, 2}) {
      const auto x = random_rows(m, row_1d.dense, n, 16 + 16 * i);
      dense<double, dynamic_layout, host> y(m, x.layout(), x.row_blocking(), x.col_blocking());
      auto& meter = *m.queue().meter();
      const auto before = static_cast<double>(meter.current());
      meter.restart_peak();
      spmm_plan<double, host> multiply(a, x, needed_rows);
      multiply(x, y), multiply(x, y);
      bytes[i] = static_cast<double>(meter.peak()) - before;
    }
    if (world.rank() == 1) rows = (bytes[2] - bytes[1]) / (16 * sizeof(double));
  });
  return rows;
}

outcome no_whole_buffer() {
  parts p;
  constexpr global_index width = 5;
  const double few = buffered_rows(400, width), many = buffered_rows(4000, width);
  p.near(many, few, 1e-9, "rows in buffers of ten times the rows");
  p.require(many <= 4 * width, text("%.1f rows for %d that are received", many, static_cast<int>(2 * width)));
  return p.result(text("%.0f rows in buffers (%d received, %d packed) for n = 400 and for 4000", many,
                       static_cast<int>(2 * width), static_cast<int>(2 * width)));
}

outcome wide_indices() {
  parts p;
  constexpr global_index half = (global_index{1} << 24) + 32, n = 2 * half;
  static_assert(half - 1 > (1 << 24));
  std::vector<double> found;
  threads::run(2, [&](const communicator& world) {
    const host_mesh m(world, {1, 2, 1});
    triplets entries;  // neighbours that float has no different numbers for, each sent by the other rank
    for (const global_index column : {half - 2, half - 1, n - 2, n - 1})
      if ((column < half) == (world.rank() == 1)) entries.push_back({column % 4, column, 1.0});
    const auto a = distribute(m, grid_2d, {4, n}, entries, symmetry::one_way);
    const auto x = generate<double>(
        m, grid_2d.dense, {n, 2}, [](global_index i, global_index j) { return static_cast<double>(i + j); });
    const auto y = collect(spmm(a, x, whole_blocks));
    if (world.rank() == 0) found = y;
  });
  for (const global_index column : {half - 2, half - 1, n - 2, n - 1}) {
    const auto row = static_cast<std::size_t>(column % 4);
    double expected = 0;
    for (const global_index c : {half - 2, half - 1, n - 2, n - 1})
      if (c % 4 == column % 4) expected += static_cast<double>(c);
    p.require(found.at(2 * row) == expected,
              text("row %d: %.0f instead of %.0f", static_cast<int>(row), found.at(2 * row), expected));
  }
  return p.result(
      "columns 2^24 + 30 and 31 of a block: A distributed, its blocks sent along col, products exact");
}

outcome any_value() {
  parts p;
  constexpr double magic = 42.1234;
  int wrong = 0;
  for (const policy& by : named_policies)
    threads::run(8, [&](const communicator& world) {
      const host_mesh m(world, default_mesh(by, 8));
      const auto x = generate<double>(m, vertex_rows, {21, 9}, [](global_index i, global_index j) {
        return i % 3 == 0 || j == 0 ? magic : 1.0;
      });
      const auto there = redistribute(x, by.dense);
      const auto back = collect(redistribute(there, layout(vertex_rows)));
      const auto one = generate<double>(m, vertex_rows, {21, 2},
                                        [](global_index i, global_index) { return i == 3 ? 1.0 : 0.0; });
      const auto gradient = collect(inner(one, x));  // rows of x[3, :], twice
      const auto before = collect(x);
      if (world.rank() != 0) return;
      wrong += before != back;
      wrong += std::ranges::count_if(gradient, [](double g) { return g != magic; });
    });
  p.equal(wrong, 0, "values that changed");
  return p.result("redistributions and sums of gradients under all policies, P = 8, bit for bit");
}

}  // namespace

std::vector<claim> rows_of_cagnet() {
  return {
      {"CAGNET", "E6", "needed rows: never more than blocks, f times the remote columns; balanced volumes",
       "METIS on Reddit: -72 % in all, -29 % at most", only_needed_rows},
      {"CAGNET", "E7", "needed rows without a buffer of n rows", "n f words set to zero in each product",
       no_whole_buffer},
      {"CAGNET", "E13", "indices above 2^24 in a block survive", "wrong: indices are floats", wide_indices},
      {"CAGNET", "E14", "an entry of 42.1234 survives", "deleted: it marks padding", any_value}};
}

}  // namespace bench::claims
