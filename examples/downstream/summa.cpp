// SPDX-License-Identifier: Apache-2.0
/// SUMMA: C = A B of three dense matrices partitioned by row and col. C stays; blocks of A come along the
/// rows of the grid and blocks of B along its columns, in stages, so that buffers are small.
#include <cmath>
#include <cstdio>

#include <partita/compiled/algebra.hpp>
#include <partita/partita.hpp>
using namespace partita;

constexpr global_index rows = 70, inner_size = 61, cols = 53;
constexpr layout by_grid{axis::row, axis::col};
constexpr partition::gemm_schedule summa{.i = axis::row, .j = axis::col, .k = {}};

double entry_of_a(global_index i, global_index k) { return std::sin(static_cast<double>(i + 3 * k)); }
double entry_of_b(global_index k, global_index j) { return std::cos(static_cast<double>(2 * k - j)); }
double entry_of_c(global_index i, global_index j) {
  double sum = 0;
  for (global_index k = 0; k < inner_size; ++k) sum += entry_of_a(i, k) * entry_of_b(k, j);
  return sum;
}

int main() {
  threads::run(6, [](const communicator& world) {
    const mesh<host> m(world, {.row = 2, .col = 3});
    const auto a = generate<double>(m, by_grid, {rows, inner_size}, entry_of_a);   // (rows/pr, inner/pc)
    const auto b = generate<double>(m, by_grid, {inner_size, cols}, entry_of_b);   // (inner/pr, cols/pc)
    const auto expected = generate<double>(m, by_grid, {rows, cols}, entry_of_c);  // (rows/pr, cols/pc)
    dense<double, dynamic_layout, host> c(m, by_grid, {rows, cols});               // (rows/pr, cols/pc)

    gemm_plan multiply(a, b, c, {.schedule = summa, .memory = 8000});
    multiply(a, b, c);
    axpy(-1, expected, c);
    const double error = norm(c);
    if (world.rank() == 0) std::printf("%s\n|| A B - C || = %.1e\n", multiply.explain().c_str(), error);
    if (error > 1e-10 || multiply.stages().count == 1)
      throw partita::error("A B is wrong, or was not in stages");
  });
}
