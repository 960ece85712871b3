// SPDX-License-Identifier: Apache-2.0
/// Draws the policies as SVG on standard output, using the library's own index arithmetic: without an
/// argument, the ownership under each policy; with the name of a policy, its ownership and one rank's part of
/// Y = A X; with vertex_rows, the redistribution of X between that layout and those of the policies; with
/// gemm, the blocks of C = A B on a grid of three axes.
///
///   draw_policies > docs/policies.svg;  draw_policies grid_2d > docs/policies/grid_2d.svg

#include <cstdio>
#include <string>
#include <string_view>

#include "draw/gemm.hpp"
#include "draw/policy.hpp"
#include "draw/svg.hpp"
#include "partita/matrix/sparse.hpp"

using namespace partita;

namespace {

constexpr int ranks = 8, n = 16, f = 8, cell = 9;

/// A run of entries in one row owned by one rank, with lines between the entries.
struct row_of_cells {
  int x, y, begin = 0, at = 0, rank = -1;

  void add(int owner) {
    if (owner != rank) flush();
    rank = owner;
    ++at;
  }
  void flush() {
    if (at > begin)
      std::printf("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", x + begin * cell, y,
                  (at - begin) * cell, cell, draw::color(rank));
    begin = at;
  }
};

void grid(int x, int y, int columns) {
  std::printf("<path d=\"");
  for (int i = 0; i <= n; ++i) std::printf("M%d %dh%d", x, y + i * cell, columns * cell);
  for (int j = 0; j <= columns; ++j) std::printf("M%d %dv%d", x + j * cell, y, n * cell);
  std::printf("\" stroke=\"white\" stroke-width=\".6\"/>\n");
}

void text(int x, int y, int size, const std::string& words) {
  std::printf("<text x=\"%d\" y=\"%d\" font-size=\"%d\">%s</text>\n", x, y, size, words.c_str());
}

/// The first rank for which `owns(coordinates)` holds, and the number of such ranks.
template <class Owns>
std::pair<int, int> owners(mesh_shape m, Owns owns) {
  int first = -1, copies = 0;
  for (int r = 0; r < m.size(); ++r)
    if (owns(m.at(r))) {
      if (first < 0) first = r;
      ++copies;
    }
  return {first, copies};
}

void panel(const policy& p, int left, int top) {
  const mesh_shape m = default_mesh(p, ranks);
  const layout a = p.sparse, x = p.dense;
  const blocking rows = blocking::even(n, m, nesting::rows), features = blocking::even(f, m, nesting::cols);
  int copies_a = 0, copies_x = 0;
  for (int i = 0; i < n; ++i) {
    row_of_cells in_a{left, top + i * cell}, in_x{left + (n + 2) * cell, top + i * cell};
    for (int j = 0; j < n; ++j) {
      const auto [rank, copies] = owners(m, [&](coordinates at) {
        if (!rows.block(a.rows, at).contains(i)) return false;
        for (at.row = 0; at.row < (a.rows.contains(axis::row) ? m.row : 1); ++at.row)
          if (rows.block(partition::column_cut(a), at).contains(j)) return true;
        return false;
      });
      in_a.add(rank);
      copies_a = copies;
    }
    for (int j = 0; j < f; ++j) {
      const auto [rank, copies] = owners(m, [&](coordinates at) {
        return rows.block(x.rows, at).contains(i) && features.block(x.cols, at).contains(j);
      });
      in_x.add(rank);
      copies_x = copies;
    }
    in_a.flush();
    in_x.flush();
  }
  grid(left, top, n);
  grid(left + (n + 2) * cell, top, f);
  const auto label = [](const char* name, int copies) {
    return name + (copies > 1 ? ", " + std::to_string(copies) + " copies" : std::string());
  };
  text(left, top - 18, 14, std::string(p.name) + " on " + to_string(m));
  text(left, top - 5, 10, label("A", copies_a));
  text(left + (n + 2) * cell, top - 5, 10, label("X, Y", copies_x));
}

void overview() {
  constexpr int width = 3 * 260 + 10, height = 2 * 195 + 30;
  std::printf(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\">\n",
      width, height, width, height);
  std::printf("<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  int at = 0;
  for (const policy& p : named_policies) {
    panel(p, 10 + at % 3 * 260, 45 + at / 3 * 195);
    ++at;
  }
  text(
      10, height - 6, 11,
      "A colour is a rank (of 8; with copies, the first that owns the entry). Meshes are row x col x depth.");
  std::printf("</svg>\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name.empty())
    overview();
  else if (name == "gemm")
    std::fputs(draw::picture_of_gemm().c_str(), stdout);
  else if (name == "vertex_rows")
    std::fputs(draw::picture_of_vertex_rows().c_str(), stdout);
  else
    std::fputs(draw::picture_of(find_policy(name)).c_str(), stdout);
}
