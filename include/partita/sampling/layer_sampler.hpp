// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sampling of one set of vertices per layer, by importance.

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "partita/sampling/sampler.hpp"

namespace partita::sampling {

/// What layer_sampler draws.
struct layer_options {
  std::vector<local_index> budgets;  ///< s of each layer, that of the first layer first
  std::uint64_t seed = 0;
  bool keep_diagonal = false;  ///< (v, v) is kept as it is, and is none of the neighbours
  int threads = 1;
};

/// q(u) = |A(:, u)|^2 / |A|_F^2, with squares rounded up to multiples of a small part of the largest: sums of
/// integers do not depend on how the rows are cut. Every rank gets all of q (n).
///
/// Over a cut graph collective over its ranks. What travels: an all-reduce of one element and one of n.
template <class T>
std::vector<double> column_importance(const graph<T>& g) {
  double largest = 0;
  for (const T value : g.values()) largest = std::max(largest, std::abs(static_cast<double>(value)));
  if (!g.is_replicated()) largest = g.ranks().all_reduce(largest, comm::reduction::max);
  int exponent = 0;
  std::frexp(largest, &exponent);
  const auto n = static_cast<std::size_t>(g.vertices());
  const double unit = std::ldexp(1, 62 - std::bit_width(n));  // n squares of at most so many fit in 64 bits
  std::vector<global_index> squares(n, 0);
  for (std::size_t e = 0; e < g.columns().size(); ++e) {
    if (g.values()[e] == 0) continue;
    const double x = std::ldexp(static_cast<double>(g.values()[e]), -exponent);
    squares[static_cast<std::size_t>(g.columns()[e])] +=
        std::max(global_index{1}, static_cast<global_index>(std::ceil(x * x * unit)));
  }
  if (!g.is_replicated()) g.ranks().all_reduce(squares);
  double sum = 0;
  for (const global_index s : squares) sum += static_cast<double>(s);
  std::vector<double> q(n, 0);
  for (std::size_t u = 0; u < n && sum > 0; ++u) q[u] = static_cast<double>(squares[u]) / sum;
  return q;
}

/// Keeps the entries (v, u) of which u is in a random set, the same for all rows: u is in it with probability
/// p(u) = min(1, s q(u)). They are divided by p(u), so that the expectation of the row chosen is the row.
class layer_draw {
 public:
  layer_draw(const local_index* columns, const double* importance, local_index budget, bool keep_diagonal,
             std::uint64_t key)
      : columns_(columns),
        importance_(importance),
        budget_(budget),
        keep_diagonal_(keep_diagonal),
        key_(key) {}

  void operator()(const graph_row& row, global_index, choice& chosen) const {
    const neighbours all(row, keep_diagonal_);
    if (all.count < row.count) chosen.take(all.begin + static_cast<std::size_t>(all.skipped), 1);
    for (local_index i = 0; i < all.count; ++i) {
      const std::size_t e = all.entry(i);
      const double p = std::min(1.0, budget_ * importance_[columns_[e]]);
      if (base::random_uniform(key_, columns_[e], 0) < p) chosen.take(e, 1 / p);
    }
  }

 private:
  const local_index* columns_;
  const double* importance_;
  double budget_;
  bool keep_diagonal_;
  std::uint64_t key_;
};

/// FastGCN's layers: the sources of layer l are budgets[l] vertices, on average, and the targets; see
/// layer_draw. Poisson sampling, so that a vertex is drawn or not whatever the roots, and the sample of
/// several roots is the union of theirs. Source: Chen, Ma, Xiao, ICLR 2018, which draws with replacement.
template <class T>
class layer_sampler final : public sampler<T> {
 public:
  /// Over a cut graph collective over its ranks; what travels: see column_importance. Throws shape_error
  /// naming a budget less than 1, or if there is none.
  layer_sampler(partita::sampling::graph<T> g, layer_options options)
      : hop_(std::move(g), options.threads), options_(std::move(options)) {
    if (options_.budgets.empty())
      throw shape_error("a layer sampler needs a budget for each layer, and was given 0 of them");
    for (const local_index s : options_.budgets)
      if (s < 1) base::throw_error<shape_error>({"the budget of a layer is at least 1 vertex, not ", s});
    importance_ = column_importance(graph());
  }

  void operator()(std::span<const global_index> roots, std::uint64_t epoch, sample<T>& out) override {
    const auto draw_of = [&](std::size_t h) {
      return layer_draw(graph().columns().data(), importance_.data(), options_.budgets[layers() - 1 - h],
                        options_.keep_diagonal, draw_key(options_.seed, epoch, h));
    };
    sample_hops(hop_, layers(), roots, draw_of, out);
  }
  std::size_t layers() const override { return options_.budgets.size(); }
  const partita::sampling::graph<T>& graph() const override { return hop_.graph(); }

 private:
  hop<T> hop_;
  layer_options options_;
  std::vector<double> importance_;
};

}  // namespace partita::sampling
