// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores as people read them.

#include <cmath>
#include <fmt/format.h>
#include <string>

#include "partita/io/labelled_graph.hpp"

inline const char* title_of(partita::io::task task) {
  using enum partita::io::task;
  return task == classes ? "accuracy" : task == labels ? "micro-F1" : "R^2";
}

/// A share in percent, or R^2; parts of the split without vertices have none.
inline std::string score_text(partita::io::task task, double score) {
  if (std::isnan(score)) return "n/a";
  return task == partita::io::task::values ? fmt::format("{:.4f}", score)
                                           : fmt::format("{:.1f} %", 100 * score);
}
