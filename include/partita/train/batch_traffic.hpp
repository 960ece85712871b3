// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the placements of a batch receive, in closed form, from what was sampled.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "partita/sampling/block.hpp"
#include "partita/sampling/placement.hpp"
#include "partita/train/models.hpp"

namespace partita::nn {

/// Words that the busiest rank receives for the inputs of one iteration under each placement, gradients of
/// parameters apart. With U_r the distinct rows that rank r needs, R_r those of them that other ranks have,
/// A_r those that other ranks need of r's, once for each of them; T micro-batches, and t_r, n_r and e_r the
/// inputs, rows and entries of their first blocks together:
///
///     even, owner       R_r f + A_r + P - 1                        rows, ids that are asked for, their
///     numbers column_gather   U_r (f - f_r) + sum_(q != r) U_q + P - 1   pieces of rows, ids, their numbers
///     column          m ((P - 1) n_r + sum_(q != r) n_q) d + sum_(q != r) (2 e_q + n_q + t_q + 3 T)
///
/// d and m: columns and number of the weights that the input is multiplied with; for a model whose first
/// layer multiplies by them before its block, t in place of n in the first term, and no e and n in the
/// second. Where X is learned, gradients of rows travel back: f A_r more for even and owner, f_r sum_(q != r)
/// U_q for column_gather, and nothing for column. Sources: P3 (Gandhi, Iyer, OSDI 2021), section 3; DistDGL;
/// HopGNN.
class batch_traffic {
 public:
  batch_traffic(int rank, int ranks, global_index features, global_index width, sampling_traits layer,
                bool learned = false)
      : rank_(rank),
        ranks_(ranks),
        features_(features),
        width_(width),
        layer_(layer),
        learned_(learned),
        needed_of_even_(static_cast<std::size_t>(ranks), 0),
        needed_of_owner_(needed_of_even_) {}

  /// Adds the micro-batches of an iteration whose roots were placed like that: even or owner.
  template <class T>
  void add(sampling::placement how, const std::vector<sampling::sample<T>>& parts,
           const sampling::vertex_owners& owner) {
    std::vector<global_index> rows;
    for (const auto& part : parts) rows.insert(rows.end(), part.vertices.begin(), part.vertices.end());
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    auto& needed = how == sampling::placement::owner ? needed_of_owner_ : needed_of_even_;
    for (const global_index v : rows) ++needed[owner(v)];
    if (how == sampling::placement::owner) return;
    rows_ += std::ssize(rows);
    parts_ += std::ssize(parts);
    for (const auto& part : parts) {
      inputs_ += std::ssize(part.vertices);
      targets_ += part.blocks[0].rows;
      entries_ += std::ssize(part.blocks[0].columns);
    }
  }

  /// The mean over so many iterations. What travels: all-reduces of a few numbers, and of one per rank;
  /// collective.
  std::vector<std::pair<sampling::placement, global_index>> busiest_rank(const communicator& world,
                                                                         global_index iterations) const {
    global_index sums[] = {rows_, inputs_, targets_, entries_};
    world.all_reduce(sums);
    const interval columns = comm::share_of(features_, rank_, ranks_);
    const global_index used = layer_.aggregates ? targets_ : inputs_,
                       all_used = layer_.aggregates ? sums[2] : sums[1];
    const global_index products = layer_.products * width_ * ((ranks_ - 1) * used + all_used - used);
    const global_index topology =
        sums[1] - inputs_ + (layer_.aggregates ? 2 * (sums[3] - entries_) + sums[2] - targets_ : 0);
    const global_index numbers = iterations * (ranks_ - 1), sizes = 3 * parts_ * (ranks_ - 1);
    const global_index asked_for_columns = columns.empty() ? 0 : sums[0] - rows_;
    global_index words[] = {numbers + whole_rows(world, needed_of_owner_),
                            numbers + whole_rows(world, needed_of_even_),
                            numbers + rows_ * (features_ - columns.size()) +
                                asked_for_columns * (learned_ ? 1 + columns.size() : 1),
                            sizes + products + topology};
    world.all_reduce(words, reduction::max);
    using sampling::placement;
    return {{placement::owner, words[0] / iterations},
            {placement::even, words[1] / iterations},
            {placement::column_gather, words[2] / iterations},
            {placement::column, words[3] / iterations}};
  }

 private:
  /// R_r f + A_r; `needed`: the rows of each rank that this one needs.
  global_index whole_rows(const communicator& world, const std::vector<global_index>& needed) const {
    const auto mine = static_cast<std::size_t>(rank_);
    std::vector<global_index> by_all = needed;
    world.all_reduce(by_all);
    const global_index remote = std::accumulate(needed.begin(), needed.end(), -needed[mine]);
    return remote * features_ + (by_all[mine] - needed[mine]) * (learned_ ? 1 + features_ : 1);
  }

  int rank_, ranks_;
  global_index features_, width_;
  sampling_traits layer_;
  bool learned_;
  std::vector<global_index> needed_of_even_, needed_of_owner_;  ///< by the rank that has them
  global_index rows_ = 0, parts_ = 0, inputs_ = 0, targets_ = 0, entries_ = 0;
};

}  // namespace partita::nn
