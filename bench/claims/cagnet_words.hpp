// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CAGNET's published algorithms in closed form. Sources: Tripathy, Yelick, Buluc, SC20, and its code.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

namespace bench::claims::cagnet {

/// A graph and the widths of a GCN of two layers.
struct network {
  std::string_view name;
  double vertices, entries;
  std::array<int, 3> widths;

  /// Columns that all layers aggregate forward and backward in CAGNET's order, (A^T H) W.
  double columns() const { return widths[0] + 2.0 * widths[1] + widths[2]; }
};
inline constexpr network reddit{"Reddit", 232'965, 114'848'857, {602, 16, 41}},
    amazon{"Amazon", 14'249'639, 230.8e6, {300, 16, 24}},
    protein{"Protein", 8'745'542, 2.12e9, {128, 16, 256}};

/// Columns of an epoch with the cheaper order in each layer: f_in forward, and backward, but for the first
/// layer, whose A^T X is new in each epoch here, the smaller of both; or f_out both ways.
inline double reordered_columns(const network& g) {
  double sum = 0;
  for (std::size_t l = 0; l < 2; ++l) {
    const double in = g.widths[l], out = g.widths[l + 1];
    sum += std::min(in + (l > 0 ? std::min(in, out) : 0), 2 * out);
  }
  return sum;
}

/// Words that a rank receives in an epoch, without the sums of gradients. A nonzero of 2D is 3 words.
inline double words_1d(const network& g, double ranks) {
  return g.vertices * (ranks - 1) / ranks * g.columns();
}
inline double words_1_5d(const network& g, double ranks, double c) {
  return g.vertices * g.columns() * ((1 - c / ranks) / c + 2 * (c - 1) / ranks);
}
inline double words_2d(const network& g, double ranks) {
  const double q = std::sqrt(ranks);
  return (q - 1) / q * (2 * 2 * 3 * g.entries + 3 * g.columns() * g.vertices) / q;
}

/// A message of b bytes takes latency + b x byte_time seconds.
struct machine {
  std::string_view name;
  double latency, byte_time, memory;  ///< the last: bytes of a rank
};
inline constexpr machine summit{"Summit", 5e-6, 1 / 12.5e9, 16e9},
    perlmutter{"Perlmutter", 3e-6, 1 / 25e9, 40e9};

/// Seconds of communication in an epoch by the paper's formulas, over two layers of the mean width.
inline double seconds_1d(const network& g, double ranks, const machine& on) {
  return 2 * 3 * std::log2(ranks) * on.latency + 4 * g.vertices * g.columns() * on.byte_time;
}
inline double seconds_1_5d(const network& g, double ranks, double c, const machine& on) {
  const double groups = std::max(1.0, ranks / (c * c));
  return 2 * 2 * groups * std::max(1.0, std::log2(groups)) * on.latency +
         4 * g.vertices * g.columns() * (1 / c + c / ranks) * on.byte_time;
}
inline double seconds_2d(const network& g, double ranks, const machine& on) {
  const double q = std::sqrt(ranks);
  return 2 * (5 * q + 3 * std::log2(ranks)) * on.latency +
         4 * (4 * g.vertices * g.columns() + 2 * 2 * g.entries) / q * on.byte_time;
}
inline double seconds_3d(const network& g, double ranks, const machine& on) {
  const double q = std::cbrt(ranks);
  return 2 * 4 * q * on.latency +
         4 * (2 * 2 * g.entries + 6 * g.vertices * g.columns()) / (q * q) * on.byte_time;
}

/// The replication with which 1.5D is fastest, as far as memory allows c n f / P for every layer.
inline int best_replication(const network& g, int ranks, const machine& on) {
  int best = 1;
  for (int c = 1; c * c <= ranks; c *= 2)
    if (4 * c * g.vertices * g.columns() / ranks <= on.memory &&
        seconds_1_5d(g, ranks, c, on) < seconds_1_5d(g, ranks, best, on))
      best = c;
  return best;
}

/// The fastest of the four.
inline std::string fastest(const network& g, int ranks, const machine& on) {
  const int c = best_replication(g, ranks, on);
  const double seconds[] = {seconds_1d(g, ranks, on), seconds_1_5d(g, ranks, c, on), seconds_2d(g, ranks, on),
                            seconds_3d(g, ranks, on)};
  constexpr const char* names[] = {"1D", "1.5D", "2D", "3D"};
  return names[std::min_element(seconds, seconds + 4) - seconds];
}

}  // namespace bench::claims::cagnet
