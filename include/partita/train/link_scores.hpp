// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How high links are ranked among pairs without one: MRR and Hits at K, as OGB's evaluators compute them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "partita/io/edge.hpp"
#include "partita/nn/link_decoder.hpp"
#include "partita/sampling/graph.hpp"
#include "partita/train/state_dict.hpp"
#include "partita/transfer/gather_rows.hpp"

namespace partita::nn {

/// The rank of each link among itself and its negatives, whose scores are a row of `negatives` (links x N,
/// row-major): 1, the negatives that score higher, and half of those that score the same, which is the mean
/// of the optimistic and the pessimistic rank. Scores that are not numbers count as higher. Local. Throws
/// shape_error where the sizes disagree. Source: ogbl-citation2 of Hu et al. (NeurIPS 2020).
inline std::vector<double> ranks_among(std::span<const double> links, std::span<const double> negatives) {
  if (links.empty() ? !negatives.empty() : negatives.size() % links.size() != 0)
    base::throw_error<shape_error>(
        {negatives.size(), " scores of negatives are not equally many for each of ", links.size(), " links"});
  std::vector<double> ranks;
  const std::size_t count = links.empty() ? 0 : negatives.size() / links.size();
  for (std::size_t i = 0; i < links.size(); ++i) {
    double rank = 1;
    for (const double s : negatives.subspan(i * count, count))
      rank += s == links[i] ? 0.5 : static_cast<double>(!(s < links[i]));
    ranks.push_back(rank);
  }
  return ranks;
}

/// The mean of 1 / rank; not a number for no ranks. Local.
inline double mean_reciprocal_rank(std::span<const double> ranks) {
  double total = 0;
  for (const double rank : ranks) total += 1 / rank;
  return ranks.empty() ? std::numeric_limits<double>::quiet_NaN() : total / static_cast<double>(ranks.size());
}
/// The share of ranks that are at most k; not a number for none. Local.
inline double hits_at(std::span<const double> ranks, int k) {
  const auto hits = std::ranges::count_if(ranks, [=](double rank) { return rank <= k; });
  return ranks.empty() ? std::numeric_limits<double>::quiet_NaN()
                       : static_cast<double>(hits) / static_cast<double>(ranks.size());
}
/// The share of links that score higher than the k-th highest of negatives that all links have in common; 1
/// where there are fewer than k. Local. Source: ogbl-ppa, ogbl-collab and ogbl-ddi of Hu et al. (NeurIPS
/// 2020).
inline double hits_above(std::span<const double> links, std::vector<double> negatives, int k) {
  const auto number = static_cast<std::size_t>(k);
  if (links.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (k < 1 || negatives.size() < number) return 1;
  std::ranges::nth_element(negatives, negatives.begin() + k - 1, [](double a, double b) { return a > b; });
  const auto hits = std::ranges::count_if(links, [&](double s) { return s > negatives[number - 1]; });
  return static_cast<double>(hits) / static_cast<double>(links.size());
}

/// The score of each of these pairs, in their order, on every rank. So many of them at a time are spread over
/// the ranks.
///
/// Collective over the mesh of H (n x k), with the same pairs on every rank. What travels: the rows of both
/// ends of a rank's pairs that other ranks own, and an all-gather of the scores. Throws shape_error naming a
/// vertex that is not a row of H.
template <class T, class Device>
std::vector<double> scores_of_pairs(const link_decoder<T, Device>& decoder,
                                    const dense<T, vertex_rows, Device>& h, std::span<const io::edge> pairs,
                                    std::size_t at_once = std::size_t{1} << 16) {
  using matrix = dense<T, vertex_rows, Device>;
  const mesh<Device>& m = h.mesh();
  const mesh<Device> alone(self::world(), mesh_shape(), m.queue());
  gather_rows_plan<T, Device> rows(h);
  std::vector<double> scores;
  for (; !pairs.empty(); pairs = pairs.subspan(std::min(at_once, pairs.size()))) {
    const auto now = pairs.first(std::min(at_once, pairs.size()));
    matrix products(m, blocking::even(static_cast<global_index>(now.size()), m.shape(), nesting::rows),
                    h.col_blocking());
    const interval mine = products.row_range();
    std::vector<global_index> ends[2];
    for (global_index i = mine.begin; i < mine.end; ++i) {
      ends[0].push_back(now[static_cast<std::size_t>(i)].source);
      ends[1].push_back(now[static_cast<std::size_t>(i)].target);
    }
    rows.assign(std::span<const std::vector<global_index>>(ends));
    rows.start(h);
    rows.finish();
    const matrix_shape shape{mine.size(), h.shape().cols};
    matrix sources(alone, shape), targets = matrix::view(alone, shape, products.values());
    rows.rows(0, h, sources);
    rows.rows(1, h, targets);
    zip(sources, targets, targets, std::multiplies<>{});
    matrix of_now(m, products.row_blocking(), blocking::even(1, m.shape(), nesting::cols));
    decoder.score_rows(products, of_now);
    const std::vector<T> all = collect(of_now);
    scores.insert(scores.end(), all.begin(), all.end());
  }
  return scores;
}

/// The rank of each link u -> v among v and `count` targets of its own, on every rank; as ranks_among. So
/// many pairs at a time are scored: targets(first, links) has those of this many links from the first on
/// (row-major), and -1 where there is none. Collective, and what travels: see scores_of_pairs.
template <class T, class Device, class Targets>
std::vector<double> ranks_among_targets(const link_decoder<T, Device>& decoder,
                                        const dense<T, vertex_rows, Device>& h,
                                        std::span<const io::edge> links, std::size_t count, Targets targets,
                                        std::size_t at_once = std::size_t{1} << 16) {
  std::vector<double> ranks;
  const std::size_t most = std::max<std::size_t>(1, at_once / (count + 1));
  for (std::size_t first = 0; first < links.size(); first += most) {
    const auto chunk = links.subspan(first, std::min(most, links.size() - first));
    const auto others = targets(first, chunk.size());
    std::vector<io::edge> pairs(chunk.begin(), chunk.end());
    for (std::size_t k = 0; k < others.size(); ++k)
      pairs.push_back({chunk[k / count].source, std::max<global_index>(others[k], 0)});
    std::vector<double> scores = scores_of_pairs(decoder, h, std::span<const io::edge>(pairs), at_once);
    for (std::size_t k = 0; k < others.size(); ++k)
      if (others[k] < 0) scores[chunk.size() + k] = -std::numeric_limits<double>::infinity();
    const std::span<const double> all = scores;
    const std::vector<double> of_chunk = ranks_among(all.first(chunk.size()), all.subspan(chunk.size()));
    ranks.insert(ranks.end(), of_chunk.begin(), of_chunk.end());
  }
  return ranks;
}

/// The rank of each link among itself and negatives that all links share; as ranks_among. Local.
inline std::vector<double> ranks_among_shared(std::span<const double> links, std::vector<double> negatives) {
  constexpr double most = std::numeric_limits<double>::infinity();
  for (double& s : negatives)
    if (std::isnan(s)) s = most;
  std::ranges::sort(negatives);
  std::vector<double> ranks;
  for (const double s : links) {
    const auto same = std::ranges::equal_range(negatives, std::isnan(s) ? -most : s);
    ranks.push_back(1 + static_cast<double>(negatives.end() - same.end()) +
                    static_cast<double>(same.size()) / 2);
  }
  return ranks;
}

/// The probability that a link scores higher than a negative, half of it where they score the same:
///
///     AUC = (1 / (m N)) sum_ij ([s_i > t_j] + [s_i = t_j] / 2)
///
/// of m links with scores s and N negatives with scores t, the area under the ROC curve. Not a number where
/// there is no link or no negative; a link whose score is not a number scores lower, such a negative higher.
/// Local. Source: Kipf and Welling, Variational Graph Auto-Encoders (2016).
inline double area_under_roc(std::span<const double> links, std::vector<double> negatives) {
  const double pairs = static_cast<double>(links.size()) * static_cast<double>(negatives.size());
  if (pairs == 0) return std::numeric_limits<double>::quiet_NaN();
  double lost = 0;
  for (const double rank : ranks_among_shared(links, std::move(negatives))) lost += rank - 1;
  return (pairs - lost) / pairs;
}

namespace detail {

/// How many of this rank's vertices `rows` score higher than each link, then how many score the same: all but
/// the link's own source, and those that it is known to be linked with. `scores`: rows x links.
template <class T>
std::vector<global_index> counts_above(std::span<const io::edge> links, const sampling::graph<T>& known,
                                       interval rows, const std::vector<T>& scores,
                                       const std::vector<T>& of_links) {
  const std::size_t c = links.size();
  std::vector<global_index> found(2 * c, 0);
  const auto count = [&](global_index w, std::size_t i, global_index times) {
    const T s = scores[static_cast<std::size_t>(w - rows.begin) * c + i];
    if (s == of_links[i])
      found[c + i] += times;
    else if (!(s < of_links[i]))
      found[i] += times;
  };
  for (global_index w = rows.begin; w < rows.end; ++w) {
    for (std::size_t i = 0; i < c; ++i)
      if (links[i].source != w) count(w, i, 1);
    const sampling::graph_row row = known.row(w);
    for (local_index e = 0; e < row.count; ++e) {
      const global_index u = known.columns()[row.begin + static_cast<std::size_t>(e)];
      if (u == w) continue;
      for (const io::edge& link : std::ranges::equal_range(links, u, {}, &io::edge::source))
        count(w, static_cast<std::size_t>(&link - links.data()), -1);
    }
  }
  return found;
}

}  // namespace detail

/// The rank of each link u -> v among v and all vertices w other than u for which u -> w is not known, on
/// every rank; as ranks_among. `known`: row w has the u of known links u -> w, of all vertices of this rank
/// (graph::link_rows with held-out links); `links`: known, too, and sorted by source.
///
/// A chunk of links at a time: its scores with all vertices take at most `most_bytes` of a rank, or one
/// column. Collective over the mesh of H (n x k), with the same links on every rank. What travels: the rows
/// of the sources, to all ranks; all-reduces of three numbers for each link.
template <class T, class Device>
std::vector<double> full_ranks(const link_decoder<T, Device>& decoder, const dense<T, vertex_rows, Device>& h,
                               const sampling::graph<T>& known, std::span<const io::edge> links,
                               std::size_t most_bytes = std::size_t{1} << 25) {
  const mesh<Device>& m = h.mesh();
  const mesh<Device> alone(self::world(), mesh_shape(), m.queue());
  const interval mine = h.row_range();
  const global_index most_rows = m.world().all_reduce(mine.size(), reduction::max);
  const auto room = static_cast<global_index>(most_bytes / sizeof(T)) / std::max<global_index>(most_rows, 1);
  const auto at_once = static_cast<std::size_t>(decoder.rows_at_once(std::max<global_index>(room, 1)));
  gather_rows_plan<T, Device> rows(h);
  std::vector<double> ranks;
  for (; !links.empty(); links = links.subspan(std::min(at_once, links.size()))) {
    const auto chunk = links.first(std::min(at_once, links.size()));
    std::vector<global_index> ids;
    for (const io::edge& e : chunk) ids.push_back(e.source);
    const matrix_shape shape{static_cast<global_index>(ids.size()), h.shape().cols};
    dense<T, replicated, Device> sources(m, shape);  // (c, k)
    auto here = dense<T, vertex_rows, Device>::view(alone, shape, sources.values());
    rows.assign(ids);
    rows(h, here);
    dense<T, vertex_rows, Device> scores(m, h.row_blocking(),
                                         blocking::even(shape.rows, m.shape(), nesting::cols));
    decoder.score_all(h, sources, scores);  // (n, c)
    const std::vector<T> block = detail::block_in_host_memory(scores);
    std::vector<T> of_links(ids.size(), T(0));
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (const global_index v = chunk[i].target; mine.contains(v))
        of_links[i] = block[static_cast<std::size_t>(v - mine.begin) * ids.size() + i];
    m.world().all_reduce(of_links);
    std::vector<global_index> counts = detail::counts_above(chunk, known, mine, block, of_links);
    m.world().all_reduce(counts);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ranks.push_back(1 + static_cast<double>(counts[i]) + static_cast<double>(counts[ids.size() + i]) / 2);
  }
  return ranks;
}

}  // namespace partita::nn
