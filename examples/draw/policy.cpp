// SPDX-License-Identifier: Apache-2.0
#include "draw/policy.hpp"

#include "draw/stages.hpp"
#include "draw/svg.hpp"
#include "partita/transfer/redistribution.hpp"

namespace draw {

namespace {

using namespace partita;

constexpr int n = 24, f = 8;
constexpr int margin = 16, card = 7;  // copies lie behind, this far apart
constexpr int large = 8, small = 4;   // an index of A and X, in who owns what and in stages
constexpr int pitch = 222, stage_height = 150, columns = 4;

/// Each policy on the smallest mesh that shows what it does, and the rank whose stages are drawn.
scene scene_of(const policy& p) {
  const auto has = [&](axis a) { return p.used().contains(a); };
  mesh_shape m;
  if (has(axis::row) && has(axis::col) && has(axis::depth))
    m = {2, 2, 2};
  else if (has(axis::row))
    m = {has(axis::col) || has(axis::depth) ? 3 : 4, has(axis::col) ? 2 : 1, has(axis::depth) ? 2 : 1};
  else
    m = {1, 4, 1};
  return {p, m, n, f};
}

coordinates drawn_rank(mesh_shape m) { return {m.row > 1 ? 1 : 0, m.col > 2 ? 1 : 0, 0}; }

box place(const piece& b, int x, int y, int unit) {
  const auto px = [unit](global_index i) { return static_cast<int>(i) * unit; };
  return {x + px(b.cols.begin), y + px(b.rows.begin), px(b.cols.size()), px(b.rows.size())};
}

/// The axes of several ranks.
axis_set axes_of(mesh_shape m) {
  axis_set several;
  for (const axis a : partition::all_axes)
    if (m[a] > 1) several = several | a;
  return several;
}

/// The ranks at `at` in every copy along `axes`, the copy with the smallest numbers first.
std::vector<int> copies_of(mesh_shape m, axis_set axes, coordinates at) {
  std::vector<int> ranks;
  for (int c = 0; c < m.size(axes); ++c) ranks.push_back(m.rank(partition::group_member(m, axes, at, c)));
  return ranks;
}

/// A matrix whose copies along `axes` lie behind one another; block(at): what the rank at `at` owns of it.
template <class Block>
void draw_owners(picture& out, mesh_shape m, axis_set axes, int x, int y, Block block) {
  const int copies = m.size(axes);
  for (int c = copies - 1; c >= 0; --c)
    for (int r = 0; r < m.size(); ++r) {
      const std::vector<int> ranks = copies_of(m, axes, m.at(r));
      if (ranks[static_cast<std::size_t>(c)] != r) continue;
      for (const piece& b : block(m.at(r))) {
        const box here = place(b, x + c * card, y + (copies - 1 - c) * card, large);
        out.rectangle(here, color(r), "stroke=\"white\"");
        if (c > 0) continue;
        std::string names;
        for (const int rank : ranks) names += (names.empty() ? "" : " ") + std::to_string(rank);
        out.centered(here.x + here.width / 2, here.y + here.height / 2 + 5, 14, names, ink(r));
      }
    }
}

void draw_mesh(picture& out, mesh_shape m, int x, int y) {
  constexpr int side = 34;
  for (int d = 0; d < m.depth; ++d) {
    const int left = x + 44 + d * (m.col * side + 24);
    if (m.depth > 1) out.text(left, y + 8, 11, "depth " + std::to_string(d), grey);
    for (int c = 0; c < m.col && m.col > 1; ++c)
      out.centered(left + c * side + side / 2, y + 26, 11, "col " + std::to_string(c), grey);
    for (int r = 0; r < m.row; ++r) {
      const int top = y + 32 + r * side;
      if (d == 0 && m.row > 1) out.text(x, top + side / 2 + 4, 11, "row " + std::to_string(r), grey);
      for (int c = 0; c < m.col; ++c) {
        const int rank = m.rank({r, c, d});
        out.rectangle({left + c * side, top, side, side}, color(rank), "stroke=\"white\"");
        out.centered(left + c * side + side / 2, top + side / 2 + 5, 14, std::to_string(rank), ink(rank));
      }
    }
  }
}

/// Who owns what, and the ranks on their mesh. Returns the height.
int draw_ownership(picture& out, const scene& s, int top) {
  const axis_set ranks = axes_of(s.shape);
  const axis_set along_a = ranks - s.p.sparse.used(), along_x = ranks - s.p.dense.used();
  const int most = std::max(s.shape.size(along_a), s.shape.size(along_x));
  const auto label = [&](const char* name, axis_set along) {
    const int copies = s.shape.size(along);
    return copies == 1
               ? std::string(name)
               : name + (", " + std::to_string(copies)) + " copies along " + partition::name_of(along);
  };
  const int y = top + 22, below = y + n * large + (most - 1) * card;
  const int x_left = margin + n * large + (s.shape.size(along_a) - 1) * card + 40;
  draw_owners(out, s.shape, along_a, margin, below - n * large - (s.shape.size(along_a) - 1) * card,
              [&](coordinates at) { return s.block_of_a(at); });
  draw_owners(out, s.shape, along_x, x_left, below - n * large - (s.shape.size(along_x) - 1) * card,
              [&](coordinates at) { return std::vector{s.block_of_x(at)}; });
  out.text(margin, below + 18, 12, label("A", along_a), grey);
  out.text(x_left, below + 18, 12, label("X and Y", along_x), grey);
  constexpr int mesh_left = 460;
  draw_mesh(out, s.shape, mesh_left, y - 8);
  out.text(mesh_left, below + 18, 12, "the mesh of ranks", grey);
  constexpr const char* legend[] = {
      "A colour is a rank.",       "Copies lie behind one another.", "In the stages:",
      "pale: what the rank owns;", "outlined: what is used, in the", "colour of the rank it comes from."};
  for (int line = 0; line < 6; ++line)
    out.text(margin + 3 * pitch + 10, y + 12 + line * 17, 12, legend[line], grey);
  return below + 40 - top;
}

/// One stage: the operands in outline, this rank's blocks pale, what is used in the colour of its owner.
void draw_stage(picture& out, const scene& s, coordinates me, const stage& now, int number, int left,
                int top) {
  out.text(left, top + 12, 12, std::to_string(number) + ". " + now.title, dark, "font-weight=\"bold\"");
  out.text(left, top + 27, 11, now.note, grey);
  const int y_left = left, a_left = y_left + f * small + 30, x_left = a_left + n * small + 12, y = top + 36;
  const auto draw = [&](int x, int width, const std::vector<piece>& own, const std::vector<piece>& used) {
    out.rectangle({x, y, width * small, n * small}, pale);
    for (const piece& b : own) out.rectangle(place(b, x, y, small), color(b.rank), "fill-opacity=\".3\"");
    for (const piece& b : used) out.rectangle(place(b, x, y, small), color(b.rank), "stroke=\"#222222\"");
  };
  draw(y_left, f, {s.block_of_x(me)}, now.y);
  for (const piece& b : now.sum)
    out.rectangle(place(b, y_left, y, small), "none", "stroke=\"#222222\" stroke-dasharray=\"3 2\"");
  draw(a_left, n, s.block_of_a(me), now.a);
  draw(x_left, f, {s.block_of_x(me)}, now.x);
  out.centered(y_left + f * small / 2, y + n * small + 13, 11, "Y", grey);
  out.centered(a_left + n * small / 2, y + n * small + 13, 11, "A", grey);
  out.centered(x_left + f * small / 2, y + n * small + 13, 11, "X", grey);
}

/// The stages on one rank. Returns the height.
int draw_stages(picture& out, const scene& s, bool a_stays, int top) {
  const coordinates me = drawn_rank(s.shape);
  std::string title = "What rank " + std::to_string(s.shape.rank(me)) + " does";
  if (s.cut_by_col()) title += a_stays ? ", if A stays" : ", if A moves";
  out.text(margin, top + 14, 14, title, dark, "font-weight=\"bold\"");
  const std::vector<stage> stages = stages_of(s, me, a_stays);
  int at = 0;
  for (const stage& now : stages) {
    draw_stage(out, s, me, now, at + 1, margin + at % columns * pitch,
               top + 26 + at / columns * (stage_height + 14));
    ++at;
  }
  return 26 + (at + columns - 1) / columns * (stage_height + 14);
}

/// How a matrix goes from one layout to another.
std::string movement_between(mesh_shape m, layout from, layout to) {
  if (partition::same_blocks(m, from, to)) return "nothing";
  const partition::route way = partition::route_between(from, to);
  const std::string along = " along " + partition::name_of(way.group & axes_of(m));
  return way.kind == partition::movement::slice        ? "a slice"
         : way.kind == partition::movement::all_gather ? "all-gather" + along
                                                       : "all-to-all" + along;
}

/// X in vertex_rows and as the policy multiplies it, and what moves there and back.
void draw_change(picture& out, const scene& s, int left, int top) {
  const scene whole_rows{{"", {}, vertex_rows}, s.shape, s.n, s.f};
  const axis_set copies = axes_of(s.shape) - s.p.dense.used();
  const int y = top + 34, middle = left + f * large + 70, right = middle + 70;
  const auto blocks_of = [](const scene& of) {
    return [&of](coordinates at) { return std::vector{of.block_of_x(at)}; };
  };
  out.text(left, top + 14, 14, std::string(s.p.name) + " on " + to_string(s.shape), dark,
           "font-weight=\"bold\"");
  draw_owners(out, s.shape, {}, left, y, blocks_of(whole_rows));
  draw_owners(out, s.shape, copies, right, y - (s.shape.size(copies) - 1) * card, blocks_of(s));
  const auto arrow = [&](int at, int tail, int tip, const std::string& words) {
    const std::string line = base::sentence_of({"M", tail, " ", at, "H", tip, "m", tip > tail ? -7 : 7,
                                                " -5L", tip, " ", at, "l", tip > tail ? -7 : 7, " 5"});
    out.path(line, "stroke=\"#222222\" stroke-width=\"1.5\"");
    const std::size_t cut = words.find(" along ");
    out.centered(middle, at - 10 - (cut == words.npos ? 0 : 14), 11, words.substr(0, cut), grey);
    if (cut != words.npos) out.centered(middle, at - 10, 11, words.substr(cut + 1), grey);
  };
  arrow(y + 70, middle - 55, middle + 55, movement_between(s.shape, vertex_rows, s.p.dense));
  arrow(y + 140, middle + 55, middle - 55, movement_between(s.shape, s.p.dense, vertex_rows));
}

}  // namespace

std::string picture_of(const policy& p) {
  const scene s = scene_of(p);
  picture out;
  out.text(margin, 24, 16, std::string(p.name) + " on " + to_string(s.shape) + ": who owns what", dark,
           "font-weight=\"bold\"");
  int top = 36;
  top += draw_ownership(out, s, top);
  top += draw_stages(out, s, false, top);
  if (s.cut_by_col()) top += draw_stages(out, s, true, top);
  return out.document(margin + columns * pitch, top + 4);
}

std::string picture_of_vertex_rows() {
  picture out;
  out.text(margin, 24, 16, "X between vertex_rows (left) and the layouts of the policies (right)", dark,
           "font-weight=\"bold\"");
  int at = 0;
  for (const policy& p : named_policies) {
    draw_change(out, scene_of(p), margin + at % 3 * 310, 40 + at / 3 * 260);
    ++at;
  }
  return out.document(margin + 3 * 310, 40 + (at + 2) / 3 * 260);
}

}  // namespace draw
