// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sampling of a bounded number of neighbours per vertex and hop.

#include <algorithm>
#include <utility>
#include <vector>

#include "partita/sampling/fanout.hpp"
#include "partita/sampling/sampler.hpp"

namespace partita::sampling {

/// What neighbour_sampler draws.
struct neighbour_options {
  /// Of each layer, that of the first layer first (DGL's order; in PyTorch Geometric's the roots' come
  /// first).
  std::vector<fanout> fanouts;
  std::uint64_t seed = 0;
  bool replace = false;        ///< draw with replacement; repeats are summed
  bool weighted = false;       ///< in proportion to the graph's weights, else uniformly
  bool keep_diagonal = false;  ///< (v, v) is kept as it is, and is none of the neighbours
  int threads = 1;
  /// A vertex draws the same neighbours in all hops: each block has the first rows of the one before it, with
  /// the same entries. Of one fan-out for all layers.
  bool alike = false;
};

/// Chooses up to k of the entries of a row; unbiased: the expectation of the row chosen is the row.
///
/// Without replacement: all d entries, unchanged, if d <= k; else k uniformly drawn ones times d / k, or by
/// weight: those with the k largest w / u, u uniform in
/// (0, 1], times max(1, t / w), t being the next largest (priority sampling: Duffield, Lund, Thorup, J. ACM
/// 54(6), 2007). With replacement: an entry drawn m times, times m d / k, or by weight m (sum of w) / (k w).
template <class T>
class neighbour_draw {
 public:
  /// `cumulative`: of the weights of neighbours in each row, if they are drawn with replacement.
  neighbour_draw(const graph<T>& g, const neighbour_options& o, const std::vector<double>& cumulative,
                 const fanout& of_layer, std::uint64_t key)
      : weights_(g.weights().data()),
        columns_(g.columns().data()),
        cumulative_(cumulative.data()),
        replace_(o.replace),
        weighted_(o.weighted),
        keep_diagonal_(o.keep_diagonal),
        fanout_(of_layer),
        relations_(g.relations()),
        key_(key) {}

  void operator()(const graph_row& row, global_index v, choice& chosen) const {
    const neighbours all(row, keep_diagonal_);
    if (all.count < row.count) chosen.take(all.begin + static_cast<std::size_t>(all.skipped), 1);
    const local_index k = fanout_[static_cast<std::size_t>(v % relations_)];
    if (all.count == 0 || k == 0) return;
    if (k < 0 || (!replace_ && all.count <= k)) {
      for (local_index i = 0; i < all.count; ++i) chosen.take(all.entry(i), 1);
    } else if (replace_) {
      draw_with_replacement(row, all, k, v, chosen);
    } else if (weighted_) {
      draw_by_priority(all, k, v, chosen);
    } else {
      const double factor = static_cast<double>(all.count) / k;
      draw_subset(all.count, k, key_, v, chosen.seen,
                  [&](local_index i) { chosen.take(all.entry(i), factor); });
    }
  }

 private:
  void draw_by_priority(const neighbours& all, local_index k, global_index v, choice& chosen) const {
    auto& ranked = chosen.ranked;
    ranked.clear();
    for (local_index i = 0; i < all.count; ++i) {
      const std::size_t e = all.entry(i);
      ranked.emplace_back(static_cast<double>(weights_[e]) / (1 - base::random_uniform(key_, v, columns_[e])),
                          i);
    }
    const auto next = ranked.begin() + k;
    std::nth_element(ranked.begin(), next, ranked.end(), [](const auto& a, const auto& b) { return a > b; });
    for (auto r = ranked.begin(); r != next; ++r) {
      const std::size_t e = all.entry(r->second);
      chosen.take(e, std::max(1.0, next->first / static_cast<double>(weights_[e])));
    }
  }

  void draw_with_replacement(const graph_row& row, const neighbours& all, local_index k, global_index v,
                             choice& chosen) const {
    auto& places = chosen.places;
    places.clear();
    const double* const sums = weighted_ ? cumulative_ + row.begin : nullptr;
    for (local_index i = 0; i < k; ++i)
      if (weighted_)
        places.push_back(static_cast<local_index>(
            std::upper_bound(sums, sums + row.count, base::random_uniform(key_, v, i) * sums[row.count - 1]) -
            sums));
      else
        places.push_back(below(all.count, base::random_bits(key_, v, i)));
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0, end; i < places.size(); i = end) {
      for (end = i + 1; end < places.size() && places[end] == places[i];) ++end;
      const double share = static_cast<double>(end - i) / k;
      if (weighted_) {
        const std::size_t e = row.begin + static_cast<std::size_t>(places[i]);
        chosen.take(e, share * sums[row.count - 1] / static_cast<double>(weights_[e]));
      } else {
        chosen.take(all.entry(places[i]), share * all.count);
      }
    }
  }

  const T* weights_;
  const local_index* columns_;
  const double* cumulative_;
  bool replace_, weighted_, keep_diagonal_;
  const fanout& fanout_;
  local_index relations_;
  std::uint64_t key_;
};

/// GraphSAGE's neighbourhoods: each target of layer l keeps fanouts[l] of its in-neighbours under each
/// relation, see neighbour_draw. A vertex draws the same neighbours in a hop whatever the roots, so the
/// sample of several roots is the union of theirs. Source: Hamilton, Ying, Leskovec, NIPS 2017.
template <class T>
class neighbour_sampler final : public sampler<T> {
 public:
  /// Local; no communication. Throws shape_error if there is no fan-out, and what fanout::require throws;
  /// error if `weighted` and the graph has no weights.
  neighbour_sampler(partita::sampling::graph<T> g, neighbour_options options)
      : hop_(std::move(g), options.threads), options_(std::move(options)) {
    if (options_.fanouts.empty())
      throw shape_error("a neighbour sampler needs a fan-out for each layer, and was given 0 of them");
    for (const fanout& of_layer : options_.fanouts) of_layer.require(graph().relations());
    if (options_.alike &&
        std::ranges::count(options_.fanouts, options_.fanouts[0]) != std::ssize(options_.fanouts))
      throw shape_error("layers whose neighbours are the same have one fan-out");
    if (!options_.weighted) return;
    if (!graph().is_weighted())
      throw error("neighbours cannot be drawn by weight from a graph without weights");
    if (options_.replace) sum_weights();
  }

  void operator()(std::span<const global_index> roots, std::uint64_t epoch, sample<T>& out) override {
    const auto draw_of = [&](std::size_t h) {
      return neighbour_draw<T>(graph(), options_, cumulative_, options_.fanouts[layers() - 1 - h],
                               draw_key(options_.seed, epoch, options_.alike ? 0 : h));
    };
    sample_hops(hop_, layers(), roots, draw_of, out);
  }
  std::size_t layers() const override { return options_.fanouts.size(); }
  const partita::sampling::graph<T>& graph() const override { return hop_.graph(); }

 private:
  void sum_weights() {
    const interval rows = graph().row_range();
    cumulative_.reserve(graph().columns().size());
    for (global_index k = rows.begin * graph().relations(); k < rows.end * graph().relations(); ++k) {
      const graph_row row =
          graph().row(k / graph().relations(), static_cast<local_index>(k % graph().relations()));
      double sum = 0;
      for (local_index i = 0; i < row.count; ++i) {
        const std::size_t e = row.begin + static_cast<std::size_t>(i);
        if (!options_.keep_diagonal || i != row.diagonal) sum += static_cast<double>(graph().weights()[e]);
        cumulative_.push_back(sum);
      }
    }
  }

  hop<T> hop_;
  neighbour_options options_;
  std::vector<double> cumulative_;
};

}  // namespace partita::sampling
