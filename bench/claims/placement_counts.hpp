// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows and words that mini-batches move under each placement, on graphs with planted communities. The ranks
/// are simulated: what they would receive follows from the samples and the owners of rows.

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../support/planted_graph.hpp"
#include "partita/sampling/placement.hpp"

namespace bench {

/// Rows of X that all ranks need of each other, and in all.
struct row_counts {
  global_index needed = 0, remote = 0, most_remote = 0;
  global_index of_layers = 0;  ///< vertices of all layers, roots included

  void operator+=(const row_counts& c) {
    needed += c.needed, remote += c.remote, of_layers += c.of_layers;
    most_remote = std::max(most_remote, c.remote);
  }
};

/// Batches under `even`, under `owner`, and in micrographs whose rows are gathered one by one: those of the
/// roots that share r of the batch has at rank s, for every r and s.
struct placement_rows {
  row_counts even, owner, apart;
  global_index batches = 0;
  double cut = 0;  ///< share of the entries between ranks
};

struct batch_size {
  int hops;
  global_index roots;
  bool per_rank;  ///< or of all ranks together
  std::size_t batches;
};

/// Roots that crowd on part 0, left where their rows are or moved until ranks have nearly equally many.
struct skew_counts {
  double times = 0;                     ///< roots of part 0, in means
  double unbalanced = 0, balanced = 0;  ///< roots of the busiest rank, in means
  global_index moved = 0;               ///< roots
  row_counts even, before, after;
};

/// Words of the busiest rank by the closed forms, per number of features and hidden width.
struct choice_table {
  std::map<std::pair<global_index, global_index>,
           std::vector<std::pair<partita::sampling::placement, global_index>>>
      words;
  double inputs_per_target = 0;  ///< n_0 / n_1 under `even`

  global_index words_under(partita::sampling::placement how, global_index features,
                           global_index hidden) const;
  /// Which placement receives least.
  std::pair<partita::sampling::placement, global_index> least(global_index features,
                                                              global_index hidden) const;
  /// Whether `column`, P3's, receives less than `even`, and whether f n_0 / n_1 > 2 P d, a rule of thumb,
  /// says so.
  bool column_wins(global_index features, global_index hidden) const;
  bool rule_says_so(global_index features, global_index hidden, int ranks) const;
};

inline constexpr global_index feature_widths[] = {16, 64, 256, 1024, 4096}, hidden_widths[] = {16, 64, 256};

/// A planted graph to count on.
class placement_counts {
 public:
  explicit placement_counts(const planted& how);
  ~placement_counts();

  global_index vertices() const;
  std::size_t entries() const;
  /// Of batches of vertices in a random order, fan-out 10. The vertices are cut into equal blocks, or into
  /// one with half of them and equal shares of the rest.
  placement_rows rows(const batch_size& size, int ranks, bool uneven = false) const;
  /// Of one rank with so many roots.
  row_counts frontier(int hops, global_index roots) const;
  /// Of a batch of 1024, 2 hops, whose vertices are drawn so that part 0 has `times` the mean.
  skew_counts skew(int ranks, double times) const;
  /// Of batches of 1024 with two hops.
  choice_table choices(const std::vector<partita::local_index>& fanouts, int ranks) const;

 private:
  struct graph;
  std::unique_ptr<graph> graph_;
};

}  // namespace bench
