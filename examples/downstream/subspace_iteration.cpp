// SPDX-License-Identifier: Apache-2.0
/// The largest eigenvalues of a sparse symmetric matrix by subspace iteration with Cholesky QR:
///   Q R = A X, X = Q; the adjacency matrix of the karate club plus 5 I, whose eigenvalues are positive
#include <cmath>
#include <cstdio>

#include <partita/compiled/algebra.hpp>
#include <partita/partita.hpp>
using namespace partita;

constexpr global_index f = 6, wanted = 3;

/// R^-1 of the Cholesky factor G = R^T R, in place of G (f x f, row-major).
void invert_cholesky(std::span<double> g) {
  constexpr auto k = static_cast<std::size_t>(f);
  std::vector<double> l(k * k, 0), inverse(k * k, 0);  // R^T, and its inverse
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = g[i * k + j];
      for (std::size_t c = 0; c < j; ++c) sum -= l[i * k + c] * l[j * k + c];
      l[i * k + j] = i == j ? std::sqrt(sum) : sum / l[j * k + j];
    }
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = i == j ? 1 : 0;
      for (std::size_t c = j; c < i; ++c) sum -= l[i * k + c] * inverse[c * k + j];
      inverse[i * k + j] = sum / l[i * k + i];
    }
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j) g[i * k + j] = inverse[j * k + i];
}

int main() {
  const io::dataset club = io::karate_club();
  threads::run(4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(grid_2d, world.size()));
    const global_index n = club.vertices;
    const auto mine = graph::matrix_entries<double>(world, club).with_loops(5);
    const auto a = distribute(m, grid_2d, {n, n}, mine, symmetry::symmetric);  // (n/pr, n/pc)
    auto x = generate<double>(m, grid_2d.dense, {n, f},
                              [](auto i, auto j) { return base::random_uniform(3, i, j); });
    auto y = spmm(a, x);                                                // (n/pr, f/pc)
    dense<double, replicated, host> values(m, {1, f}), off(m, {1, f});  // (1, f)
    spmm_plan multiply(a, x);
    for (int iteration = 0; iteration < 200; ++iteration) {
      auto r = inner(y, y);  // (f, f), on every rank
      invert_cholesky(r.values());
      x = gemm(y, r);  // orthonormal columns
      multiply(x, y);
    }
    dot(x, y, values);  // x_j . A x_j
    scale_columns(values, x), axpy(-1, x, y);
    norm(y, off);  // || A x_j - lambda_j x_j ||
    for (std::size_t j = 0; j < wanted && world.rank() == 0; ++j)
      std::printf("eigenvalue %.10f, residual %.1e\n", values.values()[j] - 5, off.values()[j]);
    if (off.values()[0] > 1e-10) throw error("it did not converge");
  });
}
