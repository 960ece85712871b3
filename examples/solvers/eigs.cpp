// SPDX-License-Identifier: Apache-2.0
/// The k smallest eigenvalues of the normalised Laplacian L = I - D^-1/2 A D^-1/2 of an undirected graph and
/// their vectors (a spectral embedding), by subspace iteration: X = Q of p(L) X, then Rayleigh-Ritz. The
/// Chebyshev polynomial p is small between the largest value that the subspace has and 2, the bound of the
/// spectrum. Source: Zhou, Saad, Tiago, Chelikowsky, J. Comput. Phys. 219 (2006).

#include <algorithm>
#include <cmath>

#include "partita/algebra/tall_skinny.hpp"
#include "partita/compiled/host.hpp"
#include "partita/partita.hpp"
#include "solver.hpp"

using namespace partita;

namespace {

using tall_matrix = dense<double, dynamic_layout, host>;
using small_matrix = dense<double, replicated, host>;
using product_plan = spmm_plan<double, host>;

constexpr double top = 2.001;  // a little above 2, so that the interval to damp is never empty

/// This rank's entries of L: 1 on the diagonal, 0 for vertices without edges.
std::vector<triplet<double>> laplacian(const problem& p) {
  const communicator& world = p.mesh.world();
  std::vector<double> degree(static_cast<std::size_t>(p.file.shape.rows), 0);  // (n)
  const auto of = [&](global_index v) -> double& { return degree[static_cast<std::size_t>(v)]; };
  for (const auto& [u, v, weight] : p.share()) of(u) += weight;
  world.all_reduce(degree);
  require_degrees(p.file, degree);
  std::vector<triplet<double>> entries;
  for (const auto& [u, v, weight] : p.share())
    entries.push_back({u, v, -weight / (std::sqrt(of(u)) * std::sqrt(of(v)))});
  const interval mine = comm::share_of(p.file.shape.rows, world.rank(), world.size());
  for (global_index v = mine.begin; v < mine.end; ++v)
    if (of(v) > 0) entries.push_back({v, v, 1});
  return entries;
}

/// x = p(L) x, p the Chebyshev polynomial of the interval from `low` to `top`, scaled to 1 at `lowest`; y is
/// overwritten.
void filter(product_plan& multiply, double lowest, double low, tall_matrix& x, tall_matrix& y) {
  const double half = (top - low) / 2, middle = (top + low) / 2;
  const double growth =
      std::acosh(std::max((middle - lowest) / half, 1 + 1e-8));  // of the lowest, per degree
  const int degree = std::clamp(static_cast<int>(20 / growth), 2, 100);
  const double tau = 2 * (lowest - middle) / half;
  double sigma = 2 / tau;
  copy(x, y), multiply(sigma / half, x, -sigma * middle / half, y);
  for (int i = 2; i <= degree; ++i) {
    const double next = 1 / (tau - sigma);
    multiply(2 * next / half, y, -sigma * next, x), axpy(-2 * next * middle / half, y, x);
    std::swap(x, y);
    sigma = next;
  }
  std::swap(x, y);
}

solution eigs(const problem& p) {
  const global_index n = p.file.shape.rows, k = p.asked.k, f = std::min(n, k + k / 2 + 4);
  if (k > n)
    throw no_solution("--k " + std::to_string(k) + " is more than the " + std::to_string(n) + " vertices");
  const auto a =
      distribute(p.mesh, p.policy, p.file.shape, laplacian(p), symmetry::symmetric);  // (n/pr, n/pc)
  tall_matrix x = generate<double>(p.mesh, p.policy.dense, {n, f},
                                   [](auto i, auto j) { return base::random_uniform(1, i, j) - 0.5; }),
              y = spmm(a, x);                                     // (n/pr, f/pc)
  small_matrix minus(p.mesh, {1, f}), residuals(p.mesh, {1, f});  // (1, f)
  std::vector<double> values(static_cast<std::size_t>(f));
  product_plan multiply(a, x);
  const auto worst = [&] { return largest_of(residuals.values().first(static_cast<std::size_t>(k))); };
  for (global_index iterations = 0;; ++iterations) {
    x = qr(x).q;
    multiply(x, y);
    small_matrix v = inner(x, y);  // (f, f)
    lapack::symmetric_eigen(v.local(), values);
    x = gemm(x, v), y = gemm(y, v);  // (n/pr, f/pc)
    std::ranges::transform(values, minus.values().begin(), std::negate<>());
    axpy(minus, x, y), norm(y, residuals);  // L x_j - lambda_j x_j
    if (!goes_on(p.asked, worst(), iterations)) {
      values.resize(static_cast<std::size_t>(k));
      return {
          {{"n", n}, {"k", k}, {"iterations", iterations}, {"residual", worst()}, {"eigenvalues", values}},
          {n, k},
          first_columns(collect(x), f, k)};
    }
    filter(multiply, values.front(), values.back(), x, y);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const description d{
      .name = "eigs",
      .what =
          "The smallest eigenvalues of the normalised Laplacian I - D^-1/2 A D^-1/2 of an undirected\n"
          "graph, and their vectors. An edge list is taken as undirected, without loops, repeated\n"
          "edges once; another matrix must be symmetric: its absolute values off the diagonal are\n"
          "the weights.",
      .k = "eigenvalues",
      .tolerance = "bound of the norms of L x - lambda x, for x of norm 1",
      .out = "the eigenvectors (n x k), as columns",
      .defaults = {.k = 6, .tolerance = 1e-9, .iterations = 1000}};
  return run_solver(argc, argv, d, read_graph, eigs);
}
