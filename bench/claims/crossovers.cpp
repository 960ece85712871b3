// SPDX-License-Identifier: Apache-2.0
// CAGNET's algorithms over the number of ranks, by the formulas of the paper, and 1D with the cheaper order.
#include <fstream>

#include "cagnet_words.hpp"
#include "examples/draw/svg.hpp"
#include "tables.hpp"

namespace bench::claims {

namespace {

using namespace cagnet;

constexpr machine on = perlmutter;
constexpr int width = 200, height = 200, least_power = -4, powers = 5;  // from 1e-4 s on

struct algorithm {
  const char* name;
  double (*seconds)(const network&, int ranks);
};
/// The last sends 2 x 16 columns: the second layer's before it multiplies with W, and their gradient. A X of
/// the first is kept.
constexpr algorithm algorithms[] = {
    {"1D", [](const network& g, int ranks) { return seconds_1d(g, ranks, on); }},
    {"1.5D",
     [](const network& g, int ranks) { return seconds_1_5d(g, ranks, best_replication(g, ranks, on), on); }},
    {"2D", [](const network& g, int ranks) { return seconds_2d(g, ranks, on); }},
    {"3D", [](const network& g, int ranks) { return seconds_3d(g, ranks, on); }},
    {"partita's row_1d", [](const network& g, int ranks) {
       return seconds_1d(g, ranks, on) - 4 * g.vertices * (g.columns() - 2 * g.widths[1]) * on.byte_time;
     }}};
constexpr int colors[] = {6, 0, 3, 2, 4};

std::string curve(const network& g, const algorithm& a, int left, int top) {
  std::string d;
  for (int power = 2; power <= 12; ++power) {
    const double decades = std::log10(a.seconds(g, 1 << power)) - least_power;
    d += (d.empty() ? "M" : "L") + std::to_string(left + (power - 2) * width / 10) + " " +
         std::to_string(top + height - static_cast<int>(std::lround(decades * height / powers)));
  }
  return d;
}

void draw_panel(draw::picture& p, const network& g, int left, int top) {
  p.centered(left + width / 2, top - 8, 13, std::string(g.name));
  p.path("M" + std::to_string(left) + " " + std::to_string(top) + "v" + std::to_string(height) + "h" +
             std::to_string(width),
         "stroke=\"" + std::string(draw::grey) + "\"");
  for (int power = 2; power <= 12; power += 2)
    p.centered(left + (power - 2) * width / 10, top + height + 16, 11, std::to_string(1 << power),
               draw::grey);
  for (std::size_t i = 0; i < std::size(algorithms); ++i)
    p.path(curve(g, algorithms[i], left, top),
           "stroke=\"" + std::string(draw::color(colors[i])) + "\" stroke-width=\"2\"");
}

}  // namespace

void write_crossovers(const std::string& file) {
  constexpr int first = 56, top = 58, apart = width + 34;
  draw::picture p;
  int legend = first;
  for (std::size_t i = 0; i < std::size(algorithms); ++i) {
    p.rectangle({legend, 12, 14, 14}, draw::color(colors[i]));
    p.text(legend + 20, 24, 13, algorithms[i].name);
    legend += 72;
  }
  constexpr const char* labels[] = {"0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s"};
  for (int i = 0; i <= powers; ++i)
    p.text(8, top + height - i * height / powers + 4, 11, labels[i], draw::grey);
  int left = first;
  for (const network& g : {reddit, amazon, protein}) {
    draw_panel(p, g, left, top);
    left += apart;
  }
  p.text(left - 20, top + height + 16, 11, "ranks", draw::grey);
  std::ofstream out(file);
  out << p.document(left + 24, top + height + 28);
  if (!out.flush()) throw partita::error("cannot write " + file);
}

}  // namespace bench::claims
