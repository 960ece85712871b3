// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages of a function, entry by entry, and their gradients by differences.

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "partita/algebra/messages.hpp"
#include "support/edge_matrices.hpp"

namespace test_support {

using partita::algebra::message_reduction;

constexpr global_index message_vertices = 23, message_width = 6;

/// Directed, with empty rows and columns, and a vertex without any edge.
inline std::vector<triplet<double>> edges_of_messages() {
  std::vector<triplet<double>> edges;
  for (const auto& e : sparse_entries({message_vertices, message_vertices}, 4))
    if (e.row != 20 && e.col != 20) edges.push_back(e);
  return edges;
}
inline double score_slope(global_index v, global_index u, global_index h) {
  return 1 + 0.1 * edge_entry(v, u, h + 2);
}

/// Rows of sources and targets, rows for each edge and of parameters, and what comes of their messages.
struct serial_messages {
  local_index heads = 1;  ///< of values; 0: none
  message_reduction reduction = message_reduction::sum;
  local_index parameter_columns = message_width;
  local_index score_heads = 0;  ///< 0: rows
  std::vector<triplet<double>> edges = edges_of_messages();
  std::vector<double> sources = whole({message_vertices, message_width}, field(0)),
                      targets = whole({message_vertices, message_width}, field(0)), values = {},
                      parameters = {};

  void set_values(std::size_t parameter_rows) {
    for (const auto& e : edges)
      for (local_index h = 0; h < heads; ++h) values.push_back(edge_entry(e.row, e.col, h));
    parameters = whole({static_cast<global_index>(parameter_rows), parameter_columns}, field(3));
  }
  static std::size_t at(global_index i, global_index j, global_index cols = message_width) {
    return static_cast<std::size_t>(i * cols + j);
  }
  template <class F>
  double message(const F& f, std::size_t k, global_index j) const {
    partita::local::parameters_of<F, double> p{};
    for (std::size_t n = 0; n < p.size(); ++n)
      p[n] = parameters[at(static_cast<global_index>(n), j * parameter_columns / message_width,
                           parameter_columns)];
    const double value =
        heads == 0 ? 1 : values[k * static_cast<std::size_t>(heads) + at(0, j * heads / message_width)];
    return partita::local::message_of(f, sources[at(edges[k].col, j)], targets[at(edges[k].row, j)], value,
                                      p);
  }
  /// Rows (vertices x width), or scores (edges x heads).
  template <class F>
  std::vector<double> results(const F& f) const {
    if (score_heads > 0) return scores(f);
    std::vector<double> z(message_vertices * message_width, 0), count(message_vertices, 0);
    std::vector<bool> has(z.size(), false);
    for (const auto& e : edges) count[at(0, e.row)] += 1;
    for (std::size_t k = 0; k < edges.size(); ++k)
      for (global_index j = 0; j < message_width; ++j) {
        const double m = message(f, k, j);
        const std::size_t to = at(edges[k].row, j);
        if (reduction == message_reduction::sum) z[to] += m;
        if (reduction == message_reduction::mean) z[to] += m / count[at(0, edges[k].row)];
        if (reduction == message_reduction::max) z[to] = has[to] ? std::max(z[to], m) : m;
        if (reduction == message_reduction::min) z[to] = has[to] ? std::min(z[to], m) : m;
        has[to] = true;
      }
    return z;
  }
  template <class F>
  std::vector<double> scores(const F& f) const {
    std::vector<double> s(edges.size() * static_cast<std::size_t>(score_heads), 0);
    for (std::size_t k = 0; k < edges.size(); ++k)
      for (global_index j = 0; j < message_width; ++j)
        s[at(static_cast<global_index>(k), j * score_heads / message_width, score_heads)] += message(f, k, j);
    return s;
  }
  /// The slope of the loss by a result.
  double slope(std::size_t result) const {
    const auto n = static_cast<global_index>(result);
    if (score_heads == 0) return element(n / message_width, n % message_width, 1);
    const auto& e = edges[static_cast<std::size_t>(n / score_heads)];
    return score_slope(e.row, e.col, n % score_heads);
  }
  template <class F>
  std::vector<double> differences(const F& f, std::vector<double> serial_messages::*of) {
    std::vector<double> slopes;
    const auto loss = [&] {
      const std::vector<double> z = results(f);
      double total = 0;
      for (std::size_t i = 0; i < z.size(); ++i) total += z[i] * slope(i);
      return total;
    };
    for (double& x : this->*of) {
      const double before = x, step = 1e-6;
      x = before + step;
      const double above = loss();
      x = before - step;
      slopes.push_back((above - loss()) / (2 * step));
      x = before;
    }
    return slopes;
  }
};

using by_edge = std::map<std::tuple<global_index, global_index, global_index>, double>;

struct expected_messages {
  std::vector<double> z, dsources, dtargets, dparameters;
  by_edge scores, dvalues;
};

template <class F>
expected_messages expected_of(const F& f, serial_messages c) {
  c.set_values(partita::local::parameter_count<F>());
  expected_messages all{c.results(f),
                        c.differences(f, &serial_messages::sources),
                        c.differences(f, &serial_messages::targets),
                        c.differences(f, &serial_messages::parameters),
                        {},
                        {}};
  const auto list = [&](const std::vector<double>& of, local_index heads, by_edge& to) {
    for (std::size_t k = 0; k < of.size(); ++k) {
      const auto& e = c.edges[k / static_cast<std::size_t>(heads)];
      to[{e.row, e.col, static_cast<global_index>(k) % heads}] = of[k];
    }
  };
  list(c.differences(f, &serial_messages::values), c.heads, all.dvalues);
  if (c.score_heads > 0) list(all.z, c.score_heads, all.scores);
  return all;
}

/// Checks that each gradient of a plan of messages has the same bits whichever others are wanted beside it,
/// that those which are not wanted are untouched, and that words are as predicted.
template <class T>
void check_wanted_gradients(auto& plan, const partita::dense<T, partita::dynamic_layout, partita::host>& x,
                            const partita::edge_matrix<T, partita::host>& e, const auto& slopes,
                            const partita::dense<T, partita::replicated, partita::host>& parameters) {
  const host_mesh& m = x.mesh();
  auto dsources = copy(x), dtargets = copy(x);
  auto dp = copy(parameters);
  partita::edge_matrix<T, partita::host> de(e.pattern(), e.heads());
  const auto of = [&](int subset) {
    const partita::algebra::wanted_gradients wants{(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0,
                                                   (subset & 8) != 0};
    fill(dsources, T(0));
    fill(dtargets, T(0));
    fill(dp, T(0));
    std::ranges::fill(de.values(), T(0));
    m.ledger().clear();
    plan.backward_part(x, x, &e, slopes, wants.sources ? &dsources : nullptr,
                       wants.targets ? &dtargets : nullptr, wants.edges ? &de : nullptr, &parameters,
                       wants.parameters ? &dp : nullptr);
    same(heard(m), plan.predicted_backward_part(wants), "the gradients that are wanted");
    const auto values = [](const auto& y) { return std::vector<T>(y.values().begin(), y.values().end()); };
    return std::array{values(dsources), values(dtargets), values(std::as_const(de)), values(dp)};
  };
  const auto expected = of(15);
  for (const int subset : {1, 4, 8, 12, 13, 14}) {
    const auto found = of(subset);
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK((subset >> k & 1 ? found[k] == expected[k]
                             : std::ranges::count(found[k], T(0)) == std::ssize(found[k])));
  }
}

}  // namespace test_support
