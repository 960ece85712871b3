// SPDX-License-Identifier: Apache-2.0
/// Conjugate gradients for 16 right-hand sides at once: the 5-point Laplacian of a square grid, B random.
#include <cstdio>

#include <partita/compiled/algebra.hpp>
#include <partita/partita.hpp>
using namespace partita;

constexpr global_index side = 60, n = side * side, f = 16;

std::vector<triplet<double>> laplacian(interval mine) {
  std::vector<triplet<double>> entries;
  for (global_index i = mine.begin; i < mine.end; ++i) {
    entries.push_back({i, i, 4});
    if (i % side > 0) entries.push_back({i, i - 1, -1});
    if (i % side < side - 1) entries.push_back({i, i + 1, -1});
    if (i >= side) entries.push_back({i, i - side, -1});
    if (i < n - side) entries.push_back({i, i + side, -1});
  }
  return entries;
}
double quotient(double a, double b) { return b > 0 ? a / b : 0; }  // 0 where a column has converged

int main() {
  threads::run(6, [](const communicator& world) {
    const mesh<host> m(world, default_mesh(grid_2d, world.size()));
    const auto mine = laplacian(comm::share_of(n, m.rank(), m.size()));
    const auto a = distribute<grid_2d.sparse>(m, {n, n}, mine, symmetry::symmetric);  // (n/pr, n/pc)
    const auto b = generate<grid_2d.dense, double>(
        m, {n, f}, [](auto i, auto j) { return base::random_uniform(7, i, j); });
    dense<double, grid_2d.dense, host> x(m, {n, f}), r(m, {n, f}), p(m, {n, f}),
        q(m, {n, f});  // (n/pr, f/pc)
    dense<double, replicated, host> rr(m, {1, f}), pq(m, {1, f}), step(m, {1, f}), old(m, {1, f});  // (1, f)
    fill(x, 0), copy(b, r), copy(b, p), dot(r, r, rr);
    spmm_plan multiply(a, p);
    int iterations = 0;
    for (; norm(r) > 1e-10 * norm(b); ++iterations) {
      multiply(p, q), dot(p, q, pq);
      zip(rr, pq, step, quotient), axpy(step, p, x);
      transform(step, step, std::negate<>()), axpy(step, q, r);
      copy(rr, old), dot(r, r, rr);
      zip(rr, old, step, quotient), scale_columns(step, p), axpy(1, r, p);
    }
    copy(b, r), multiply(-1, x, 1, r);  // B - A X
    const double residual = norm(r) / norm(b);
    if (world.rank() == 0) std::printf("%d iterations, relative residual %.1e\n", iterations, residual);
    if (residual > 2e-10) throw error("it did not converge");
  });
}
