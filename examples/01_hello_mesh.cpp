/// The ranks stand on a mesh with three named axes: row, col and depth. Along every axis, and every set of axes,
/// a rank has a communicator with those that differ from it only there.

#include <cstdio>
#include <numeric>
#include <partita/partita.hpp>

using namespace partita;

/// The world's numbers of the ranks along `line`, as they tell one another.
std::vector<global_index> ask(const mesh<host>& m, axis_set line) {
  const communicator& group = m.along(line);
  const global_index mine[] = {m.rank()};
  const std::vector<global_index> counts(static_cast<std::size_t>(group.size()), 1);
  std::vector<global_index> all(counts.size());
  group.all_gather(std::span<const global_index>(mine), std::span<const global_index>(counts), std::span(all));
  return all;
}

void print_line(const char* name, const std::vector<global_index>& ranks) {
  std::printf("  along %-9s", name);
  for (const global_index rank : ranks) std::printf(" %2d", static_cast<int>(rank));
  std::printf("\n");
}

void print_mesh(mesh_shape shape) {
  std::printf("%d ranks on a mesh of %s\n", shape.size(), to_string(shape).c_str());
  for (int depth = 0; depth < shape.depth; ++depth) {
    std::printf("\n  depth %d  ", depth);
    for (int col = 0; col < shape.col; ++col) std::printf("   col %d", col);
    for (int row = 0; row < shape.row; ++row) {
      std::printf("\n    row %d  ", row);
      for (int col = 0; col < shape.col; ++col) std::printf(" %7d", shape.rank({row, col, depth}));
    }
    std::printf("\n");
  }
}

int main() {
  constexpr mesh_shape shape{.row = 2, .col = 3, .depth = 2};
  constexpr int speaker = 7;
  std::vector<int> right(shape.size(), 0);  // one place for each rank: they are threads and share memory

  threads::run(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto along_row = ask(m, axis::row), along_col = ask(m, axis::col);
    const auto on_plane = ask(m, axis::row | axis::col);

    if (m.rank() == speaker) {
      print_mesh(shape);
      std::printf("\nrank %d stands at row %d, col %d, depth %d and finds\n", m.rank(), m.at().row, m.at().col,
                  m.at().depth);
      print_line("row", along_row);
      print_line("col", along_col);
      print_line("depth", ask(m, axis::depth));
      print_line("row+col", on_plane);
    } else {
      ask(m, axis::depth);  // a question is put by all ranks of a line, or hangs
    }

    const int sum = std::accumulate(on_plane.begin(), on_plane.end(), 0);
    right[m.rank()] = shape.at(m.rank()) == m.at() && sum == 0;
  });
}
