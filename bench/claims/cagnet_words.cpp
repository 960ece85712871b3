// SPDX-License-Identifier: Apache-2.0
// CAGNET's words of a product: what ledgers say when the verbs run, beside the formulas of the paper.
#include "../support/small_matrices.hpp"
#include "cagnet.hpp"
#include "claim.hpp"
#include "partita/transfer/scaled_pattern.hpp"

namespace bench::claims {

namespace {

using namespace partita;

sparse<double, dynamic_layout, host> matrix_on(const host_mesh& m, const policy& p, global_index n,
                                               global_index degree, bool pattern = false) {
  const auto mine = random_entries(n, degree, true, m.world().rank(), m.world().size());
  return pattern ? distribute(m, p, {n, n}, transfer::scaled_pattern(mine), symmetry::symmetric)
                 : distribute(m, p, {n, n}, mine, symmetry::symmetric);
}

/// What one product with A (n x n) and X (n x f) receives on each rank.
std::vector<global_index> words_of_product(const policy& p, mesh_shape shape, global_index n, global_index f,
                                           spmm_options how, global_index degree = 9) {
  return words_of(shape, [&](const host_mesh& m) {
    const auto a = matrix_on(m, p, n, degree);
    const auto x = random_rows(m, p.dense, n, f);
    return counted_product(a, x, how);
  });
}

/// The products and the sum of a weight's gradient in a layer of CAGNET's 1D algorithm.
std::vector<global_index> words_of_layer(int ranks, global_index n, global_index in, global_index out) {
  return words_of({ranks, 1, 1}, [&](const host_mesh& m) {
    const auto a = matrix_on(m, row_1d, n, 9);
    const auto h = random_rows(m, row_1d.dense, n, in), g = random_rows(m, row_1d.dense, n, out);
    return counted_product(a, h, whole_blocks) +              // forward: A^T H
           counted_product(transposed(a), g, whole_blocks) +  // backward: A G, used twice
           counted(m, [&] { (void)inner(h, g); });            // H^T (A G)
  });
}

global_index sum(const std::vector<global_index>& list) {
  return std::accumulate(list.begin(), list.end(), global_index{0});
}

outcome words_1d() {
  parts p;
  int runs = 0;
  for (const int ranks : {1, 2, 3, 4, 6, 8})
    for (const global_index n : {40, 41}) {
      global_index all = 0, expected = 0;
      for (const auto& [in, out] : {std::pair{7, 5}, {5, 3}}) {
        all += sum(words_of_layer(ranks, n, in, out));
        expected += (ranks - 1) * n * (in + out) + 2 * (ranks - 1) * in * out;
      }
      p.equal(all, expected, text("P = %d, n = %d", ranks, static_cast<int>(n)));
      ++runs;
    }
  return p.result(text("equal in all %d cases: P = 1 to 8, n = 40 and 41, two layers", runs));
}

outcome words_1_5d() {
  parts p;
  constexpr global_index n = 128, f = 4;
  for (const auto& [ranks, c] : {std::pair{4, 2}, {8, 2}, {8, 4}, {16, 2}, {16, 4}}) {
    const auto words = words_of_product(replicated_1_5d, {ranks / c, 1, c}, n, f, whole_blocks);
    for (const global_index w : words)
      p.equal(w, n * f / c - n * f / ranks + 2 * (c - 1) * n * f / ranks, text("P = %d, c = %d", ranks, c));
  }
  std::string ratios;
  double least = 2, of_least = 0;
  const double one = static_cast<double>(words_of_product(row_1d, {64, 1, 1}, n, f, whole_blocks)[0]);
  for (const int c : {2, 4, 8, 16, 32}) {
    const double ratio =
        static_cast<double>(words_of_product(replicated_1_5d, {64 / c, 1, c}, n, f, whole_blocks)[0]) / one;
    // the paper's formula counts the block that a rank has: 1/P of the 1D algorithm's
    p.near(ratio, 1.0 / c + 2 * (c - 1) / 64.0, 1.0 / 16, text("ratio for c = %d", c));
    ratios += text("%s%.2f (c = %d)", ratios.empty() ? "" : ", ", ratio, c);
    if (ratio < least - 1e-9) least = ratio, of_least = c;
  }
  p.require(of_least == 4, text("the least is at c = %.0f", of_least));
  const std::string refused = parts::error_of([] { (void)default_mesh(replicated_1_5d, 8, 3); });
  p.require(refused.find("replication 3 does not divide 8 ranks") != std::string::npos, "c = 3 is accepted");
  return p.result("P = 64: " + ratios + "; c = 3 of 8: \"" + refused + "\"");
}

/// Words of A's blocks on the wire for each of its nonzeros.
double words_per_nonzero(int q, global_index n, global_index degree, bool pattern) {
  constexpr global_index f = 4;
  global_index nonzeros = 0;
  const auto words = words_of({q, q, 1}, [&](const host_mesh& m) {
    const auto a = matrix_on(m, grid_2d, n, degree, pattern);
    const auto x = random_rows(m, grid_2d.dense, n, f);
    if (m.world().rank() == 0) nonzeros = std::ssize(random_entries(n, degree, true));
    return counted_product(a, x, whole_blocks);
  });
  const global_index rows_of_x = q * n * f - n * f;  // over all ranks
  return static_cast<double>(sum(words) - rows_of_x) / static_cast<double>((q - 1) * nonzeros);
}

outcome words_2d() {
  parts p;
  constexpr global_index n = 144, f = 12, degree = 72;
  const double weighted = words_per_nonzero(4, n, degree, false),
               pattern = words_per_nonzero(4, n, degree, true);
  // beside columns and values, a block of n/q rows has n/q + 1 offsets for each of q tiles
  const double offsets = 4.0 * (n / 4 + 1) / (degree * n / 16.0);
  p.require(weighted <= 2 + 1.1 * offsets, text("%.3f words a nonzero", weighted));
  p.require(pattern <= 1 + 1.1 * offsets, text("%.3f words a nonzero of a pattern", pattern));
  for (const int q : {2, 3, 4}) {
    constexpr spmm_options stays{.stationary = stationary::a, .rows = row_exchange::full};
    for (const global_index w : words_of_product(grid_2d, {q, q, 1}, n, f, stays, degree))
      p.equal(w, n * f / (q * q) - n * f / (q * q * q) + 2 * (n * f / q - n * f / (q * q)),
              text("A in place, %d x %d", q, q));
  }
  const auto ratio = [](double w) { return (3 + w * 493 / 16) / 8; };  // Reddit's degree, f = 16, P = 64
  return p.result(text(
      "%.2f words a nonzero, %.2f of a pattern, offsets included (%.2f); A in place: 0, in every product; "
      "(3 + w d/f)/8 for Reddit, f = 16: %.1f for w = 3, %.1f, %.1f, %.2f for w = 2, 1, 0",
      weighted, pattern, offsets, ratio(3), ratio(2), ratio(1), ratio(0)));
}

}  // namespace

std::array<double, 2> words_over_2d(int q) {
  constexpr global_index n = 128, f = 2, degree = 62;  // Reddit's 493 over 16 columns
  constexpr spmm_options in_place{.stationary = stationary::a, .rows = row_exchange::full};
  const auto all = [&](const policy& p, mesh_shape shape, spmm_options how) {
    return static_cast<double>(sum(words_of_product(p, shape, n, f, how, degree)));
  };
  const double replicated = all(replicated_1_5d, {q, 1, q}, whole_blocks);
  return {replicated / all(grid_2d, {q, q, 1}, whole_blocks), replicated / all(grid_2d, {q, q, 1}, in_place)};
}

std::vector<claim> words_of_cagnet() {
  return {{"CAGNET", "E1", "1D moves n (P-1)/P (f_in + f_out) and the sum of the gradient in a layer",
           "(P-1) n (f_in + f_out) + 2 (P-1) f_in f_out on all ranks", words_1d},
          {"CAGNET", "E2", "1.5D moves 1/c + 2 (c-1)/P of 1D, least at c = 4 or 8 of 64; other c are refused",
           "P = 64: 0.34 for c = 4 and 8", words_1_5d},
          {"CAGNET", "E3", "2D over 1D: (3 + w d/f)/sqrt P, with w <= 2, 1 for a pattern, 0 where A stays",
           "w = 3", words_2d}};
}

}  // namespace bench::claims
