// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores as people read them.

#include <cmath>
#include <fmt/format.h>
#include <string>

#include "partita/io/dataset_type.hpp"

inline const char* title_of(partita::io::task task) {
  using enum partita::io::task;
  return task == classes ? "accuracy" : task == labels ? "micro-F1" : task == values ? "R^2" : "MRR";
}

/// A share in percent, or R^2 or MRR; parts of the split without vertices have none.
inline std::string score_text(partita::io::task task, double score) {
  if (std::isnan(score)) return "n/a";
  using enum partita::io::task;
  return task == values || task == links ? fmt::format("{:.4f}", score)
                                         : fmt::format("{:.1f} %", 100 * score);
}
