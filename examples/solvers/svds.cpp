// SPDX-License-Identifier: Apache-2.0
/// The k largest singular values of a sparse matrix, square or not, and their vectors, by randomised subspace
/// iteration:
///   P random;  repeat  Q = orth(A P), P R = A^T Q, R^T = V S U^T;  then A ~ (Q V) S (P U)^T
/// Source: Halko, Martinsson, Tropp, SIAM Rev. 53 (2011), algorithms 4.4 and 5.1.

#include <algorithm>
#include <cmath>

#include "partita/algebra/tall_skinny.hpp"
#include "partita/compiled/host.hpp"
#include "partita/partita.hpp"
#include "solver.hpp"

using namespace partita;

namespace {

using small_matrix = dense<double, replicated, host>;

constexpr global_index more = 10;  // columns than are asked for

solution svds(const problem& p) {
  const auto [rows, cols] = p.file.shape;
  const global_index k = p.asked.k, least = std::min(rows, cols), f = std::min(least, k + more);
  if (k > least)
    throw no_solution("--k " + std::to_string(k) + " is more than the " + std::to_string(least) +
                      " singular values");
  const auto a = distribute(p.mesh, p.policy, p.file.shape, p.share());  // (rows/pr, cols/pc)
  auto right = generate<double>(p.mesh, p.policy.dense, {cols, f}, [](auto i, auto j) {
    return base::random_uniform(1, i, j) - 0.5;
  });                          // (cols/pr, f/pc)
  auto left = spmm(a, right);  // (rows/pr, f/pc)
  spmm_plan multiply(a, right), multiply_transposed(transposed(a), left);
  small_matrix u(p.mesh, {f, f}), v_transposed(p.mesh, {f, f}), minus(p.mesh, {1, f}),
      residuals(p.mesh, {1, f});
  std::vector<double> values(static_cast<std::size_t>(f), 0);
  for (global_index iterations = 1;; ++iterations) {
    const std::vector<double> before = values;
    const auto q = qr(left).q;  // (rows/pr, f/pc)
    multiply_transposed(q, right);
    auto [next, r] = qr(right);  // (cols/pr, f/pc), (f, f)
    lapack::svd(r.local(), u.local(), values, v_transposed.local());
    multiply(next, left);
    std::vector<double> changes(static_cast<std::size_t>(k));
    std::transform(values.begin(), values.begin() + k, before.begin(), changes.begin(),
                   [](double now, double then) { return std::abs(now - then); });
    const double change = largest_of(changes);
    if (goes_on(p.asked, change == 0 ? 0 : change / values.front(), iterations)) continue;
    const auto of_left = gemm(q, transposed(v_transposed)), of_right = gemm(next, u);  // U, V
    auto product = gemm(left, u);                                                      // A V (rows/pr, f/pc)
    std::ranges::transform(values, minus.values().begin(), std::negate<>());
    axpy(minus, of_left, product), norm(product, residuals);
    const double residual = largest_of(residuals.values().first(static_cast<std::size_t>(k)));
    std::vector<double> vectors = first_columns(collect(of_left), f, k);
    const std::vector<double> below = first_columns(collect(of_right), f, k);
    vectors.insert(vectors.end(), below.begin(), below.end());
    values.resize(static_cast<std::size_t>(k));
    return {{{"k", k}, {"iterations", iterations}, {"residual", residual}, {"singular_values", values}},
            {rows + cols, k},
            std::move(vectors)};
  }
}

}  // namespace

int main(int argc, char** argv) {
  const description d{
      .name = "svds",
      .what =
          "The largest singular values of a sparse matrix, square or not, and their vectors.\n"
          "An edge list is the matrix with a 1 at (u, v) for u -> v; repeated edges add up.",
      .k = "singular values",
      .tolerance = "bound of a step's change of the singular values, relative to the largest",
      .out = "U above V (rows + columns x k)",
      .defaults = {.k = 6, .tolerance = 1e-12, .iterations = 1000}};
  return run_solver(argc, argv, d, read_matrix, svds);
}
