// SPDX-License-Identifier: Apache-2.0
/// Block conjugate gradients for A X = B, A symmetric positive definite, B with k columns. The residual is
/// kept as Q C, Q with orthonormal columns, so that directions which become dependent break nothing:
///   Q C = B, S = Q;  repeat  G = S^T A S, X += S G^-1 C, Q' Z = Q - A S G^-1, S = Q' + S Z^T, C = Z C, Q =
///   Q'
/// Sources: O'Leary, Linear Algebra Appl. 29 (1980); Dubrulle, ETNA 12 (2001), algorithm BCGrQ.

#include <algorithm>
#include <cmath>

#include "partita/algebra/tall_skinny.hpp"
#include "partita/compiled/host.hpp"
#include "partita/partita.hpp"
#include "solver.hpp"

using namespace partita;

namespace {

using small_matrix = dense<double, replicated, host>;

/// L + I of a graph; any other matrix as it is.
matrix_file read_system(const std::string& path, unpack_limit limit) {
  matrix_file a = read_square(path, limit);
  if (!a.is_edge_list) {
    require_symmetric(a);
    return a;
  }
  a = read_graph(path, limit);
  const std::vector<triplet<double>> edges = std::move(a.entries);
  a.entries.clear();
  for (global_index v = 0; v < a.shape.rows; ++v) a.entries.push_back({v, v, 1});
  for (const auto& [u, v, weight] : edges) {
    a.entries.push_back({u, v, -weight});
    a.entries.push_back({u, u, weight});
  }
  return a;
}

double right_hand_side(global_index i, global_index j) { return std::cos(static_cast<double>(i * (j + 1))); }

/// The largest quotient of the norms of columns, 0 where both are 0.
double largest_quotient(const small_matrix& r, const small_matrix& b) {
  std::vector<double> quotients;
  for (std::size_t j = 0; j < b.values().size(); ++j)
    quotients.push_back(r.values()[j] == 0 ? 0 : r.values()[j] / b.values()[j]);
  return largest_of(quotients);
}

/// G^-1 of a symmetric G (k x k). Throws no_solution that names the matrix's file when G is not positive
/// definite.
small_matrix inverse(small_matrix g, const std::string& path) {
  small_matrix result(g.mesh(), g.shape());
  fill(result, 0);
  for (local_index i = 0; i < result.local().rows; ++i) result.local()(i, i) = 1;
  if (!lapack::cholesky(g.local())) throw no_solution(path + ": the matrix is not positive definite");
  lapack::solve_upper<double>(g.local(), result.local(), true);
  lapack::solve_upper<double>(g.local(), result.local());
  return result;
}

solution block_cg(const problem& p) {
  const global_index n = p.file.shape.rows, k = p.asked.k;
  if (k > n)
    throw no_solution("--k " + std::to_string(k) + " is more than the " + std::to_string(n) + " rows");
  const auto a = distribute(p.mesh, p.policy, p.file.shape, p.share(), symmetry::symmetric);  // (n/pr, n/pc)
  auto b = generate<double>(p.mesh, p.policy.dense, {n, k}, right_hand_side);                 // (n/pr, k/pc)
  dense<double, dynamic_layout, host> x(p.mesh, p.policy.dense, {n, k}), s(p.mesh, p.policy.dense, {n, k}),
      z(p.mesh, p.policy.dense, {n, k}), product(p.mesh, p.policy.dense, {n, k});  // (n/pr, k/pc)
  small_matrix sizes(p.mesh, {1, k}), rest(p.mesh, {1, k});                        // (1, k)
  spmm_plan multiply(a, s);
  auto [q, c] = qr(b);  // (n/pr, k/pc), (k, k)
  gemm_plan combine(s, c, x), combine_transposed(s, transposed(c), product);
  fill(x, 0), copy(q, s), norm(b, sizes), copy(sizes, rest);
  global_index iterations = 0;
  for (; goes_on(p.asked, largest_quotient(rest, sizes), iterations); ++iterations) {
    multiply(s, z);
    small_matrix step = inverse(inner(s, z), p.file.path);  // (k, k)
    combine(1, s, gemm(step, c), 1, x);                     // X += S step C
    combine(-1, z, step, 1, q);
    auto next = qr(q);  // (n/pr, k/pc), (k, k)
    std::swap(q, next.q);
    copy(q, product), combine_transposed(1, s, transposed(next.r), 1, product), std::swap(s, product);
    c = gemm(next.r, c), norm(c, rest);
  }
  copy(b, z), multiply(-1, x, 1, z), norm(z, rest);  // B - A X
  return {{{"n", n}, {"k", k}, {"iterations", iterations}, {"residual", largest_quotient(rest, sizes)}},
          {n, k},
          collect(x)};
}

}  // namespace

int main(int argc, char** argv) {
  const description d{
      .name = "block_cg",
      .what =
          "Block conjugate gradients for A X = B, B(i, j) = cos(i (j + 1)) with i and j from 0.\n"
          "An edge list is taken as an undirected graph, without loops, repeated edges once,\n"
          "and A = L + I, L its Laplacian; another matrix is A itself and must be symmetric\n"
          "positive definite.",
      .k = "columns of B",
      .tolerance = "bound of each column's residual norm, relative to that of B",
      .out = "X (n x k)",
      .defaults = {.k = 1, .tolerance = 1e-10, .iterations = 10000}};
  return run_solver(argc, argv, d, read_system, block_cg);
}
