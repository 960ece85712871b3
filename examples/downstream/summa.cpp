// SPDX-License-Identifier: Apache-2.0
/// SUMMA: C = A B of three dense matrices cut by row and col, with blocks of A broadcast along the rows of
/// the grid and blocks of B along its columns.
#include <cmath>
#include <cstdio>

#include <partita/compiled/host.hpp>
#include <partita/partita.hpp>
using namespace partita;

using grid_matrix = dense<double, layout{axis::row, axis::col}, host>;
constexpr global_index rows = 70, inner_size = 61, cols = 53;

/// Where the inner dimension is cut: at the cuts of A's columns and at those of B's rows.
std::vector<interval> pieces(const grid_matrix& a, const grid_matrix& b) {
  std::vector<interval> cut;
  for (global_index begin = 0; begin < inner_size;) {
    const interval of_a =
        a.col_blocking().block(axis::col, {0, static_cast<int>(a.col_blocking().owner(axis::col, begin)), 0});
    const interval of_b =
        b.row_blocking().block(axis::row, {static_cast<int>(b.row_blocking().owner(axis::row, begin)), 0, 0});
    cut.push_back({begin, std::min(of_a.end, of_b.end)});
    begin = cut.back().end;
  }
  return cut;
}

void summa(const grid_matrix& a, const grid_matrix& b, grid_matrix& c) {
  const auto& m = a.mesh();
  const auto mine_of_a = a.local(), mine_of_b = b.local();
  fill(c, 0);
  for (const interval k : pieces(a, b)) {
    const auto width = static_cast<local_index>(k.size());
    const int col = static_cast<int>(a.col_blocking().owner(axis::col, k.begin)),
              row = static_cast<int>(b.row_blocking().owner(axis::row, k.begin));
    std::vector<double> panel_a(static_cast<std::size_t>(mine_of_a.rows * width)),
        panel_b(static_cast<std::size_t>(width * mine_of_b.cols));
    matrix_view<double> from_a{panel_a.data(), mine_of_a.rows, width, width},
        from_b{panel_b.data(), width, mine_of_b.cols, mine_of_b.cols};
    if (m.at().col == col)
      copy(m.queue(),
           mine_of_a.block(0, static_cast<local_index>(k.begin - a.col_range().begin), mine_of_a.rows, width),
           from_a);
    if (m.at().row == row)
      copy(m.queue(),
           mine_of_b.block(static_cast<local_index>(k.begin - b.row_range().begin), 0, width, mine_of_b.cols),
           from_b);
    m.along(axis::col).broadcast(panel_a, col);
    m.along(axis::row).broadcast(panel_b, row);
    gemm(m.queue(), false, false, 1.0, from_a, from_b, 1.0, c.local());
  }
}

double entry_of_a(global_index i, global_index k) { return std::sin(static_cast<double>(i + 3 * k)); }
double entry_of_b(global_index k, global_index j) { return std::cos(static_cast<double>(2 * k - j)); }

int main() {
  threads::run(6, [](const communicator& world) {
    const mesh<host> m(world, {.row = 2, .col = 3});
    const grid_matrix a = generate<layout{axis::row, axis::col}, double>(m, {rows, inner_size},
                                                                         entry_of_a);  // (rows/pr, inner/pc)
    const grid_matrix b = generate<layout{axis::row, axis::col}, double>(m, {inner_size, cols},
                                                                         entry_of_b);  // (inner/pr, cols/pc)
    grid_matrix c(m, matrix_shape{rows, cols});                                        // (rows/pr, cols/pc)
    summa(a, b, c);
    const auto expected = generate<layout{axis::row, axis::col}, double>(m, {rows, cols}, [](auto i, auto j) {
      double sum = 0;
      for (global_index k = 0; k < inner_size; ++k) sum += entry_of_a(i, k) * entry_of_b(k, j);
      return sum;
    });
    axpy(-1, expected, c);
    const double error = norm(c);
    if (world.rank() == 0) std::printf("|| A B - C || = %.1e\n", error);
    if (error > 1e-10) throw partita::error("A B is wrong");
  });
}
