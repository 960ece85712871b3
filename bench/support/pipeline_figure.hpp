// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The timeline of a simulated pipeline, as SVG.

#include <cmath>
#include <cstdio>
#include <string>

#include "examples/draw/svg.hpp"
#include "pipeline_simulation.hpp"

namespace bench {

/// One line per stage: chunks forward and backward, numbered where there is room; grey where the stage is
/// idle.
inline std::string pipeline_figure(const pipeline_run& run) {
  constexpr int left = 62, top = 40, width = 600, line = 32, gap = 6;
  const int lines = static_cast<int>(run.stages.size()), bottom = top + lines * (line + gap);
  const auto x = [&](double seconds) {
    return left + static_cast<int>(std::lround(seconds / run.seconds * width));
  };
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    return std::string(text);
  };
  constexpr int ranks[] = {0, 7};  // colours of forward and backward
  draw::picture p;
  int legend = left;
  for (const int way : {0, 1}) {
    p.rectangle({legend, 14, 14, 14}, draw::color(ranks[way]));
    p.text(legend + 20, 26, 13, way == 0 ? "forward" : "backward");
    legend += way == 0 ? 88 : 100;
  }
  p.rectangle({legend, 14, 14, 14}, draw::pale);
  p.text(legend + 20, 26, 13, "idle");
  for (int s = 0; s < lines; ++s) {
    const auto& tasks = run.stages[static_cast<std::size_t>(s)];
    const int y = top + s * (line + gap), middle = y + line / 2 + 4;
    p.text(8, middle, 13, "stage " + std::to_string(s));
    p.rectangle({left, y, width, line}, draw::pale);
    for (const timed_task& t : tasks) {
      const int begin = x(t.begin), end = x(t.end), rank = ranks[t.way == direction::forward ? 0 : 1];
      p.rectangle({begin, y, end - begin, line}, draw::color(rank),
                  end - begin > 3 ? "stroke=\"white\" stroke-width=\"1\"" : "");
      const std::string chunk = std::to_string(t.chunk);
      if (end - begin >= 6 + 7 * static_cast<int>(chunk.size()))
        p.centered((begin + end) / 2, middle, 12, chunk, draw::ink(rank));
    }
    const int percent = static_cast<int>(std::lround(100 * run.idle(static_cast<std::size_t>(s))));
    p.text(left + width + 10, middle, 13, std::to_string(percent) + " % idle");
  }
  const double ms = 1e3 * run.seconds, power = std::pow(10, std::floor(std::log10(ms / 8)));
  const double step = power * (ms / 8 < 2 * power ? 2 : ms / 8 < 5 * power ? 5 : 10);
  p.path("M" + std::to_string(left) + " " + std::to_string(bottom) + "h" + std::to_string(width),
         "stroke=\"" + std::string(draw::grey) + "\"");
  for (int tick = 0; tick * step <= ms * (1 + 1e-9); ++tick) {
    const int at = x(tick * step / 1e3);
    p.path("M" + std::to_string(at) + " " + std::to_string(bottom) + "v5",
           "stroke=\"" + std::string(draw::grey) + "\"");
    p.centered(at, bottom + 19, 12, number(tick * step), draw::grey);
  }
  p.text(left + width + 10, bottom + 19, 12, "ms", draw::grey);
  return p.document(left + width + 80, bottom + 30);
}

}  // namespace bench
