// SPDX-License-Identifier: Apache-2.0
#include "draw/gemm.hpp"

#include "draw/svg.hpp"
#include "partita/partition/gemm_grid.hpp"

namespace draw {

namespace {

using namespace partita;
using partition::block_layout;
using partition::rectangle;

constexpr global_index size = 8;  // of each index
constexpr mesh_shape grid{2, 2, 2};
constexpr coordinates drawn{0, 1, 0};  // the rank whose blocks are outlined
constexpr partition::gemm_schedule by_axis{axis::row, axis::col, axis::depth};
constexpr const char* outline = "stroke=\"#222222\" stroke-width=\"2.5\" stroke-linejoin=\"round\"";

/// A point of the cube, in units of the indices: i goes down, j to the right and k away.
struct place {
  global_index i, j, k;
};
using patch = std::array<place, 4>;

/// A rectangle of A, B or C on the plane of the cube where the third index is `third`.
patch on_a(rectangle r, global_index third) {
  const auto [i, k] = r;
  return {
      {{i.begin, third, k.begin}, {i.begin, third, k.end}, {i.end, third, k.end}, {i.end, third, k.begin}}};
}
patch on_b(rectangle r, global_index third) {
  const auto [k, j] = r;
  return {
      {{third, j.begin, k.begin}, {third, j.end, k.begin}, {third, j.end, k.end}, {third, j.begin, k.end}}};
}
patch on_c(rectangle r, global_index third) {
  const auto [i, j] = r;
  return {
      {{i.begin, j.begin, third}, {i.begin, j.end, third}, {i.end, j.end, third}, {i.end, j.begin, third}}};
}

/// Where the cube, or a face moved off it, is drawn: the pixel of its corner i = j = k = 0.
struct projection {
  int x, y;

  std::array<int, 2> pixel(place p) const {
    constexpr int unit = 25, away_x = 15, away_y = 11;
    return {x + static_cast<int>(p.j) * unit + static_cast<int>(p.k) * away_x,
            y + static_cast<int>(p.i) * unit - static_cast<int>(p.k) * away_y};
  }
  std::string outline_of(const patch& corners) const {
    std::string d;
    for (const place p : corners) {
      const auto [right, down] = pixel(p);
      d += base::sentence_of({d.empty() ? "M" : "L", right, " ", down});
    }
    return d + "z";
  }
  void number(picture& out, const patch& on, int rank, bool pale) const {
    const auto [x1, y1] = pixel(on[0]);
    const auto [x2, y2] = pixel(on[2]);
    out.centered((x1 + x2) / 2, (y1 + y2) / 2 + 5, 14, std::to_string(rank), pale ? grey : ink(rank));
  }
};

void fill_patch(picture& out, const projection& at, const patch& p, int rank, bool pale) {
  out.area(at.outline_of(p), color(rank),
           base::sentence_of({"stroke=\"white\"", pale ? " fill-opacity=\".25\"" : ""}));
}

/// Who owns what of a matrix; in full colour what is of `wanted`. Returns the owners of that.
template <class On>
std::vector<int> draw_matrix(picture& out, const projection& at, On on, const block_layout& owned,
                             rectangle wanted, global_index third) {
  std::vector<int> owners;
  for (int rank = 0; rank < grid.size(); ++rank) {
    const rectangle block = owned.block(grid.at(rank));
    const bool used = intersection(block, wanted) == block;
    if (used) owners.push_back(rank);
    fill_patch(out, at, on(block, third), rank, !used);
    at.number(out, on(block, third), rank, !used);
  }
  out.path(at.outline_of(on(wanted, third)), outline);
  return owners;
}

/// The blocks that ranks multiply, as far as they are seen.
void draw_cube(picture& out, const projection& at, const partition::gemm_blocks& blocks) {
  std::vector<patch> outlined;
  for (int rank = 0; rank < grid.size(); ++rank) {
    const coordinates q = grid.at(rank);
    std::vector<patch> seen;
    if (q.depth == 0) seen.push_back(on_c(blocks.of_c(q), 0));
    if (q.row == 0) seen.push_back(on_b(blocks.of_b(q), 0));
    if (q.col == grid.col - 1) seen.push_back(on_a(blocks.of_a(q), size));
    for (const patch& p : seen) fill_patch(out, at, p, rank, q != drawn);
    if (!seen.empty()) at.number(out, seen.front(), rank, q != drawn);
    if (q == drawn) outlined = seen;
  }
  for (const patch& p : outlined) out.path(at.outline_of(p), outline);
}

/// An arrow along a line of the picture; `head`: the two strokes at its tip.
void arrow(picture& out, const std::string& line, const std::string& head) {
  out.path(line + head, "stroke=\"#222222\" stroke-width=\"1.5\"");
}

int other_of(const std::vector<int>& owners) { return owners[owners[0] == grid.rank(drawn) ? 1 : 0]; }

}  // namespace

std::string picture_of_gemm() {
  const partition::gemm_problem p = partition::problem_on_grid(size, size, size, grid);
  const partition::gemm_choice choice =
      partition::choose(p, std::numeric_limits<global_index>::max(), by_axis);
  const projection cube{340, 290}, a{cube.x + 210, cube.y}, b{cube.x, 150}, c{30, cube.y};
  const int me = grid.rank(drawn), bottom = cube.y + 200;
  picture out;
  const auto label = [&](int x, int y, const char* name, const std::string& words) {
    out.text(x, y, 14, name, dark, "font-weight=\"bold\"");
    out.text(x, y + 18, 12, words, grey);
  };
  out.text(16, 24, 16,
           "C(i, j) = sum of A(i, k) B(k, j) with i by row, j by col, k by depth on " + to_string(grid), dark,
           "font-weight=\"bold\"");
  draw_cube(out, cube, choice.blocks);
  const auto of_a = draw_matrix(out, a, on_a, p.a, choice.blocks.of_a(drawn), size);
  const auto of_b = draw_matrix(out, b, on_b, p.b, choice.blocks.of_b(drawn), 0);
  const auto of_c = draw_matrix(out, c, on_c, p.c, choice.blocks.of_c(drawn), 0);

  arrow(out, "M744 350H668", "m8 -5L668 350l8 5");
  arrow(out, "M500 156V198", "m-5 -8L500 198l5 -8");
  arrow(out, "M334 350H238", "m8 -5L238 350l8 5");
  label(750, bottom + 24, "A(i, k)", "gathered along col");
  label(676, 90, "B(k, j)", "gathered along row");
  label(c.x, bottom + 24, "C(i, j)", "partial sums, reduce-scattered along depth");
  out.text(270, 440, 12, "i by row", grey);
  out.text(416, bottom + 18, 12, "j by col", grey);
  out.text(612, 462, 12, "k by depth", grey);

  const std::string rank = "rank " + std::to_string(me);
  const std::string lines[] = {
      "A colour and a number are a rank. The cube: which products each rank computes. The faces: who owns "
      "what.",
      "Outlined: the block of " + rank +
          ", and what it needs of A and B and contributes to C, in the colours of the owners.",
      base::sentence_of({"It receives the part of rank ", other_of(of_a), " of A and that of rank ",
                         other_of(of_b), " of B; of the sums for C it keeps its own part, and rank ",
                         other_of(of_c), " the other."})};
  for (int line = 0; line < 3; ++line) out.text(16, bottom + 72 + line * 17, 12, lines[line], grey);
  return out.document(900, bottom + 116);
}

}  // namespace draw
