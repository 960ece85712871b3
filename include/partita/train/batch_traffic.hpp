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
/// parameters apart. With U_r the distinct rows that rank r needs, n_r and e_r the rows and entries of its
/// first block, and R_r those of U_r that other ranks have:
///
///     any, home       R_r (f + 1)                      rows, and as many ids that are asked for
///     column_gather   U_r (f - f_r) + sum_(q != r) U_q  pieces of rows, and ids
///     column          m ((P - 1) n_r + sum_(q != r) n_q) d + sum_(q != r) (2 e_q + n_q + U_q)
///
/// d and m: columns and number of the weights that the input is multiplied with; for a model whose first
/// layer multiplies by them before its block, U in place of n in the first term, and no e and n in the
/// second. Where X is learned, gradients of rows travel back: f for each row that another rank asks of this
/// one, f_r sum_(q != r) U_q for column_gather, and nothing for column. Sources: P3 (Gandhi, Iyer, OSDI
/// 2021), section 3; DistDGL; HopGNN.
class batch_traffic {
 public:
  batch_traffic(int rank, int ranks, global_index features, global_index width, first_layer layer,
                bool learned)
      : rank_(rank),
        ranks_(ranks),
        features_(features),
        width_(width),
        layer_(layer),
        learned_(learned),
        asked_of_any_(static_cast<std::size_t>(ranks), 0),
        asked_of_home_(static_cast<std::size_t>(ranks), 0) {}

  /// Adds the micro-batches of an iteration whose roots were placed like that: any or home.
  template <class T>
  void add(sampling::placement how, const std::vector<sampling::sample<T>>& parts,
           const sampling::row_homes& home) {
    std::vector<global_index> rows;
    for (const auto& part : parts) rows.insert(rows.end(), part.vertices.begin(), part.vertices.end());
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    auto& asked = how == sampling::placement::home ? asked_of_home_ : asked_of_any_;
    for (const global_index v : rows)
      if (home(v) != static_cast<std::size_t>(rank_)) ++asked[home(v)];
    if (how == sampling::placement::home) return;
    rows_ += std::ssize(rows);
    for (const auto& part : parts) {
      inputs_ += std::ssize(part.vertices);
      targets_ += part.blocks[0].rows;
      entries_ += std::ssize(part.blocks[0].columns);
    }
  }

  /// The mean over so many iterations. What travels: all-reduces of a few numbers; collective.
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
    const global_index others = sums[0] - rows_;
    global_index words[] = {
        for_rows(asked_of_home_, world), for_rows(asked_of_any_, world),
        rows_ * (features_ - columns.size()) + others * (learned_ ? 1 + columns.size() : 1),
        products + topology};
    world.all_reduce(words, reduction::max);
    using sampling::placement;
    return {{placement::home, words[0] / iterations},
            {placement::any, words[1] / iterations},
            {placement::column_gather, words[2] / iterations},
            {placement::column, words[3] / iterations}};
  }

 private:
  /// Words received for whole rows of which so many are asked of each rank.
  global_index for_rows(std::vector<global_index> asked, const communicator& world) const {
    const global_index mine = std::accumulate(asked.begin(), asked.end(), global_index{0});
    world.all_reduce(asked);
    return mine * (features_ + 1) + (learned_ ? asked[static_cast<std::size_t>(rank_)] * features_ : 0);
  }

  int rank_, ranks_;
  global_index features_, width_;
  first_layer layer_;
  bool learned_;
  std::vector<global_index> asked_of_any_, asked_of_home_;  ///< rows, of each rank
  global_index rows_ = 0, inputs_ = 0, targets_ = 0, entries_ = 0;
};

}  // namespace partita::nn
