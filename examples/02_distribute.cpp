// SPDX-License-Identifier: Apache-2.0
/// A matrix is given by a function of its global indices; its layout determines which entries each rank
/// evaluates. No explicit ranks, and no communication until the whole matrix is collected.

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include <partita/partita.hpp>

using namespace partita;

constexpr mesh_shape shape{.row = 3, .col = 2};
constexpr global_index n = 7, f = 10;

/// Entry (i, j) of the matrix.
double entry(global_index i, global_index j) { return static_cast<double>(100 * i + j); }

/// The owner of each entry: every rank fills its block with its own number.
std::vector<double> holders(const mesh<host>& m, layout l) {
  const auto mine = [&](global_index, global_index) { return m.rank(); };
  return collect(generate<double>(m, l, {n, f}, mine));  // (n, f) on every rank
}

void print(const char* title, const std::vector<double>& values) {
  std::printf("  %s\n", title);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%s%.0f%s", i % f == 0 ? "    " : " ", values[i], i % f == f - 1 ? "\n" : "");
}

int main() {
  std::printf("Who holds the entries of a %d x %d matrix on a mesh of %s?\n", int(n), int(f),
              to_string(shape).c_str());
  // Ranks are threads here, and each writes only its own element.
  std::array<std::vector<double>, shape.size()> made, sent;
  threads::run(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto me = static_cast<std::size_t>(m.rank());
    const auto by_row = holders(m, row_1d.dense);    // (n, f)
    const auto by_both = holders(m, grid_2d.dense);  // (n, f)
    const auto vertices = holders(m, vertex_rows);   // (n, f)
    if (me == 0) {
      print("rows cut by row; a copy for each col, of which the first is shown", by_row);
      print("rows cut by row, columns by col", by_both);
      print("rows cut by row and again by col", vertices);
    }

    const auto x = generate<grid_2d.dense, double>(m, {n, f}, entry);  // (n/pr, f/pc)
    made[me] = collect(x);                                             // (n, f) on every rank

    // The reverse: distribute a matrix held by one rank, read from a file for example.
    const auto file = me == 0 ? std::span<const double>(made[0]) : std::span<const double>();
    const auto y = distribute<vertex_rows>(m, {n, f}, file);  // (n/P, f)
    sent[me] = collect(y);                                    // (n, f) on every rank
  });

  std::vector<double> expected;  // (n, f)
  for (global_index i = 0; i < n; ++i)
    for (global_index j = 0; j < f; ++j) expected.push_back(entry(i, j));
  const auto same = [&](const std::vector<double>& values) { return values == expected; };
  const bool right = std::ranges::all_of(made, same) && std::ranges::all_of(sent, same);
  std::printf("collected, the matrix is %s on every rank\n", right ? "whole" : "NOT what it was");
  return right ? 0 : 1;
}
