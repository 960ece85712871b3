// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What each model is for: the matrix it multiplies with, where it can be trained, and its own options.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "partita/train/options.hpp"

namespace partita::nn {

/// How the first layer of a model on sampled blocks uses its input: with how many weights it is multiplied (0
/// for a model that cannot be trained on blocks), and whether after the block. `slices`: whether it takes
/// slices of the columns of its input, as placement column has them.
struct sampling_traits {
  int products = 0;
  bool aggregates = false;
  bool slices = true;
};

/// A variant of a model.
struct model_row {
  std::string_view name;
  nn::coupling coupling = nn::coupling::coupled;
  nn::aggregation aggregation = nn::aggregation::mean;
  graph::propagation_matrix multiplies_with = graph::propagation_matrix::gcn_normalized;
  bool counts_edges_once = false;  ///< although its matrix has weights
  sampling_traits on_blocks = {};
  bool on_stages = false;           ///< whether its layers can be cut into stages; see pipeline_trainer
  int convolutions = 0;             ///< unless options.layers says otherwise; 0: as many as `hidden` implies
  int other_layers = 0;             ///< with parameters, dense ones and norms, besides those convolutions
  std::string_view options = {};    ///< names of the fields that it reads of those that not every model reads
  bool reads_edge_vectors = false;  ///< io::dataset::edge_features, where there are some
  bool carries_edges = false;       ///< from layer to layer: on blocks, their edges must be the same

  /// Whether every product with the graph is one of builder::product, which rounds operands, and what
  /// backward reads is kept by builder::kept; so it is where stages multiply with other products.
  bool rounds_operands() const { return on_stages; }
  bool is_on_blocks() const { return on_blocks.products > 0; }
  /// Convolutions, of a model that has so many unless the options say otherwise.
  int convolutions_of(const training_options& o) const { return o.layers > 0 ? o.layers : convolutions; }
  /// Whether sums over sampled neighbours have the same bits in every order, unlike those of attention.
  bool is_reproducible_on_blocks() const { return on_blocks.aggregates || reads_edge_vectors; }
  bool reads_edge_weights() const { return !counts_edges_once && !is_pattern(multiplies_with); }
  bool reads_edge_types() const { return multiplies_with == graph::propagation_matrix::relations; }
  /// Whether the diagonal of its matrix is a vertex's own share, which samplers keep, and not loops.
  bool has_own_diagonal() const {
    using enum graph::propagation_matrix;
    return multiplies_with == gcn_normalized || multiplies_with == weighted_self ||
           multiplies_with == self_loops;
  }
  bool is_of(const training_options& o) const {
    return name == o.model && coupling == o.coupling && aggregation == o.aggregation;
  }
  /// Whether it reads the field.
  bool reads(std::string_view field) const {
    const std::string all = " " + std::string(options) + " ";
    return all.find(" " + std::string(field) + " ") != all.npos;
  }
  /// As in sentences.
  std::string title() const {
    const bool decoupled = coupling == nn::coupling::decoupled, max = aggregation == nn::aggregation::max;
    return std::string(name) + (decoupled ? " in its decoupled form" : max ? " with max aggregation" : "");
  }
};

/// Every model; named_models has their factories.
inline constexpr model_row model_rows[] = {
    {.name = "gcn",
     .on_blocks = {1, true},
     .on_stages = true,
     .options =
         "hidden layers coupling self-loops dropout exchange stationary exchange-pieces ranks-of-node"},
    {.name = "sage",
     .multiplies_with = graph::propagation_matrix::mean_normalized,
     .on_blocks = {2, true},
     .on_stages = true,
     .options =
         "hidden layers coupling aggregation dropout exchange stationary exchange-pieces ranks-of-node"},
    {.name = "sage",
     .aggregation = aggregation::max,
     .multiplies_with = graph::propagation_matrix::whole_rows,
     .options = "hidden layers coupling aggregation dropout"},
    {.name = "gin",
     .multiplies_with = graph::propagation_matrix::weighted_self,
     .on_blocks = {1, true},
     .on_stages = true,
     .options = "hidden layers epsilon dropout exchange stationary exchange-pieces ranks-of-node"},
    {.name = "gat",
     .multiplies_with = graph::propagation_matrix::self_loops,
     .on_blocks = {1, false},
     .options = "hidden layers coupling heads last-heads dropout"},
    {.name = "gine",
     .multiplies_with = graph::propagation_matrix::adjacency,
     .on_blocks = {1, false, false},
     .options = "hidden layers epsilon dropout",
     .reads_edge_vectors = true},
    {.name = "gatv2",
     .multiplies_with = graph::propagation_matrix::self_loops,
     .on_blocks = {2, false, false},
     .options = "hidden layers heads last-heads dropout",
     .reads_edge_vectors = true},
    {.name = "transformer",
     .multiplies_with = graph::propagation_matrix::adjacency,
     .on_blocks = {4, false, false},
     .options = "hidden layers heads last-heads dropout",
     .reads_edge_vectors = true},
    {.name = "meshgraphnet",
     .multiplies_with = graph::propagation_matrix::adjacency,
     .on_blocks = {1, false, false},
     .convolutions = 8,
     .options = "hidden layers",
     .reads_edge_vectors = true,
     .carries_edges = true},
    {.name = "sgc",
     .options = "hops split-pieces self-loops exchange stationary exchange-pieces ranks-of-node"},
    {.name = "appnp",
     .options = "hidden layers hops split-pieces alpha self-loops dropout exchange stationary "
                "exchange-pieces ranks-of-node"},
    {.name = "gcnii",
     .on_stages = true,
     .convolutions = 8,
     .other_layers = 2,
     .options = "hidden layers alpha lambda self-loops convolution-decay dropout exchange stationary "
                "exchange-pieces "
                "ranks-of-node"},
    {.name = "resgcn",
     .multiplies_with = graph::propagation_matrix::mean_normalized,
     .on_stages = true,
     .convolutions = 8,
     .other_layers = 3,
     .options = "hidden layers dropout exchange stationary exchange-pieces ranks-of-node"},
    {.name = "rgcn",
     .multiplies_with = graph::propagation_matrix::relations,
     .on_blocks = {2, true, false},
     .options =
         "hidden layers bases relation-blocks inverse-relations dropout exchange stationary exchange-pieces "
         "ranks-of-node"},
    {.name = "rgat",
     .multiplies_with = graph::propagation_matrix::relations,
     .counts_edges_once = true,
     .on_blocks = {2, false, false},
     .options = "hidden layers heads last-heads inverse-relations dropout"},
    {.name = "gcn",
     .coupling = coupling::decoupled,
     .options = "hidden layers coupling split-pieces self-loops dropout exchange stationary exchange-pieces "
                "ranks-of-node"},
    {.name = "sage",
     .coupling = coupling::decoupled,
     .multiplies_with = graph::propagation_matrix::mean_normalized,
     .options =
         "hidden layers coupling split-pieces dropout exchange stationary exchange-pieces ranks-of-node"},
    {.name = "gat",
     .coupling = coupling::decoupled,
     .multiplies_with = graph::propagation_matrix::self_loops,
     .options = "hidden layers coupling heads dropout"},
};

/// The row of the model that the options name; null where there is none. Local.
constexpr const model_row* find_row(std::string_view name, coupling how, aggregation of) {
  for (const model_row& row : model_rows)
    if (row.name == name && row.coupling == how && row.aggregation == of) return &row;
  return nullptr;
}
inline const model_row* find_row(const training_options& o) {
  return find_row(o.model, o.coupling, o.aggregation);
}

/// "gcn, sage and gin": the titles of the rows that are so, each once. Local.
template <class Is>
std::string models_that(Is is, std::string_view last = " and ") {
  std::vector<std::string> found;
  for (const model_row& row : model_rows)
    if (std::invoke(is, row) && std::ranges::find(found, row.title()) == found.end())
      found.push_back(row.title());
  std::string list;
  for (std::size_t k = 0; k < found.size(); ++k)
    list += (k == 0 ? "" : k + 1 < found.size() ? ", " : std::string(last)) + found[k];
  return list;
}

}  // namespace partita::nn
