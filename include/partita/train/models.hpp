// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The models by name.

#include <string>
#include <string_view>
#include <vector>

#include "partita/graph/edge_features.hpp"
#include "partita/graph/propagation_matrices.hpp"
#include "partita/io/quote.hpp"
#include "partita/nn/conv/gin.hpp"
#include "partita/nn/conv/rgat.hpp"
#include "partita/nn/conv/rgcn.hpp"
#include "partita/nn/conv/sage.hpp"
#include "partita/nn/conv/sage_max.hpp"
#include "partita/nn/models.hpp"
#include "partita/train/model_table.hpp"
#include "partita/train/trainer.hpp"

namespace partita::nn {

/// f, the hidden widths, classes; a single hidden width is repeated as often as `layers` requires. f is the
/// width of the embedding where there is one. Throws shape_error when `layers` and several hidden widths
/// disagree, and input_error for data without features if there is no embedding.
inline std::vector<global_index> layer_widths(const io::dataset& data, const training_options& options) {
  std::vector<global_index> hidden = options.hidden;
  if (options.layers > 0 && hidden.size() == 1)
    hidden.assign(static_cast<std::size_t>(options.layers) - 1, options.hidden[0]);
  if (options.layers > 0 && static_cast<int>(hidden.size()) != options.layers - 1)
    base::throw_error<shape_error>(
        {options.layers, " layers have ", options.layers - 1, " hidden widths, not ", hidden.size()});
  hidden.insert(hidden.begin(), input_width(data, options));
  hidden.push_back(data.classes);
  return hidden;
}

/// R, of which the half may be inverse ones.
inline global_index relation_count(const io::dataset& data, const training_options& options) {
  return data.relations * (options.inverse_relations ? 2 : 1);
}

/// Blocks of sampled neighbours that a model multiplies with, one after the other.
inline std::size_t block_count(const model_row& model, const io::dataset& data,
                               const training_options& options) {
  return model.convolutions > 0 ? static_cast<std::size_t>(model.convolutions_of(options))
                                : layer_widths(data, options).size() - 1;
}

/// The inputs from which a named model is constructed: the matrix, or blocks, that it multiplies with, and
/// the builder of its layers; of blocks what their edges have.
template <class T, class Device>
struct model_request {
  layer_matrices<T, Device> graph;
  const io::dataset& data;
  const training_options& options;
  builder<T, Device> with;
  edges_of_layers<T, Device> of_blocks = {};

  std::vector<global_index> widths() const { return layer_widths(data, options); }
  int layers() const { return static_cast<int>(widths().size()) - 1; }
  /// Of models that have so many unless the options say otherwise.
  int convolutions() const {
    const model_row* const row = find_row(options);  // null for a model that was added
    return row == nullptr ? options.layers : row->convolutions_of(options);
  }
  const sparse<T, dynamic_layout, Device>& propagation_matrix() const { return graph[0]; }
  /// Those of the data, cut as the whole graph is, and how many they are. Collective over the mesh.
  graph::relation_matrices<T, Device> relations() const {
    using enum graph::relation_edges;
    return {propagation_matrix(), data, options.inverse_relations ? both_ways : as_stored};
  }
  /// The vectors of edges, none where the data have none. Collective over the mesh.
  edges_of_layers<T, Device> edges() const {
    if (with.options().sampled || data.edge_features.cols == 0) return of_blocks;
    return std::make_shared<const edge_matrix<T, Device>>(
        graph::edge_features(propagation_matrix(), data, graph::repeated_edges::summed));
  }
  global_index relation_count() const { return nn::relation_count(data, options); }
};

/// A variant of a model and its factory.
template <class T, class Device>
struct named_model : model_row {
  nn::model<T, Device> (*make)(const model_request<T, Device>&);
};

namespace detail {

/// Those of model_rows, with factories, and what add_model has added.
template <class T, class Device>
std::vector<named_model<T, Device>>& known_models() {
  constexpr auto row = [](std::string_view name, coupling how = coupling::coupled,
                          aggregation of = aggregation::mean) { return *find_row(name, how, of); };
  static std::vector<named_model<T, Device>> models{
      {row("gcn"), [](const auto& r) { return nn::convolutions<nn::gcn_conv>(r.graph, r.widths(), r.with); }},
      {row("sage"),
       [](const auto& r) { return nn::convolutions<nn::sage_conv>(r.graph, r.widths(), r.with); }},
      {row("sage", coupling::coupled, aggregation::max),
       [](const auto& r) { return nn::convolutions<nn::sage_max_conv>(r.graph, r.widths(), r.with); }},
      {row("gin"), [](const auto& r) { return nn::convolutions<nn::gin_conv>(r.graph, r.widths(), r.with); }},
      {row("gat"),
       [](const auto& r) {
         return nn::gat(r.graph, r.widths(), r.options.heads, r.options.last_heads, r.with);
       }},
      {row("gine"),
       [](const auto& r) { return nn::gine(r.graph, r.edges(), r.widths(), r.options.epsilon, r.with); }},
      {row("gatv2"),
       [](const auto& r) {
         return nn::gatv2(r.graph, r.edges(), r.widths(), r.options.heads, r.options.last_heads, r.with);
       }},
      {row("transformer"),
       [](const auto& r) {
         return nn::transformer(r.graph, r.edges(), r.widths(), r.options.heads, r.options.last_heads,
                                r.with);
       }},
      {row("meshgraphnet"),
       [](const auto& r) {
         return nn::meshgraphnet(r.graph, r.edges(), input_width(r.data, r.options), r.options.hidden[0],
                                 r.data.classes, r.convolutions(), r.with);
       }},
      {row("sgc"),
       [](const auto& r) {
         return nn::sgc(r.propagation_matrix(), input_width(r.data, r.options), r.data.classes,
                        r.options.hops, options_of_model(r.options));
       }},
      {row("appnp"),
       [](const auto& r) {
         return nn::appnp(r.propagation_matrix(), r.widths(), r.options.hops, r.options.alpha,
                          options_of_model(r.options));
       }},
      {row("gcnii"),
       [](const auto& r) {
         return nn::gcnii(r.propagation_matrix(), input_width(r.data, r.options), r.options.hidden[0],
                          r.data.classes, r.convolutions(), r.options.alpha, r.options.lambda, r.with);
       }},
      {row("resgcn"),
       [](const auto& r) {
         return nn::resgcn(r.propagation_matrix(), input_width(r.data, r.options), r.options.hidden[0],
                           r.data.classes, r.convolutions(), r.with);
       }},
      {row("rgcn"),
       [](const auto& r) {
         const relation_weights how{r.options.bases, r.options.relation_blocks};
         if (r.with.options().sampled) return nn::rgcn(r.graph, r.relation_count(), r.widths(), how, r.with);
         return nn::rgcn(r.relations(), r.widths(), how, r.with);
       }},
      {row("rgat"),
       [](const auto& r) {
         const auto& o = r.options;
         if (r.with.options().sampled)
           return nn::rgat(r.graph, r.relation_count(), r.widths(), o.heads, o.last_heads, r.with);
         return nn::rgat(r.relations(), r.widths(), o.heads, o.last_heads, r.with);
       }},
      {row("gcn", coupling::decoupled),
       [](const auto& r) {
         return nn::appnp(r.propagation_matrix(), r.widths(), r.layers(), 0, options_of_model(r.options));
       }},
      {row("sage", coupling::decoupled),
       [](const auto& r) {
         return nn::appnp(r.propagation_matrix(), r.widths(), r.layers(), 0, options_of_model(r.options));
       }},
      {row("gat", coupling::decoupled),
       [](const auto& r) {
         return nn::decoupled_gat(r.propagation_matrix(), r.widths(), r.options.heads, r.layers(),
                                  options_of_model(r.options));
       }},
  };
  return models;
}

}  // namespace detail

/// The models known to train_model: those of model_rows, and your own.
template <class T, class Device>
const std::vector<named_model<T, Device>>& named_models() {
  return detail::known_models<T, Device>();
}

/// Makes a model of your own known, by its row and factory. Before ranks start; not collective. Throws error
/// where there is one of this name and variant.
template <class T, class Device>
void add_model(const named_model<T, Device>& model) {
  for (const model_row& known : named_models<T, Device>())
    if (known.title() == model.title())
      base::throw_error<error>({"there is a model ", model.title(), " already"});
  detail::known_models<T, Device>().push_back(model);
}

/// Throws error where operands of products are to be rounded, stored rounded or sent in fewer bytes, and a
/// product of this model has others.
template <class T, class Device>
void require_operands(const named_model<T, Device>& model, const training_options& options) {
  const bool stores = options.storage != operand_precision::unrounded,
             rounds = stores || options.operands != operand_precision::unrounded;
  if (stores && !algebra::stored_as<base::bfloat16, T, Device>)
    base::throw_error<error>({"features and activations are stored as bfloat16 for float, on the host"});
  if (!rounds && options.encoding == algebra::row_encoding::exact) return;
  if (rounds && !algebra::multiplies_bfloat16<T, Device>)
    base::throw_error<error>({"products with operands of bfloat16 are for float"});
  if (!model.rounds_operands())
    base::throw_error<error>({"model ", model.title(),
                              " supports neither bf16 operands nor encoded rows in its products; ",
                              models_that(&model_row::rounds_operands), " do"});
  if (options.encoding != algebra::row_encoding::exact && options.pipeline.stages > 0)
    throw error("encoded rows are not for stages, whose tables keep exact ones");
  if (options.encoding != algebra::row_encoding::exact && options.mini_batch.batch > 0)
    throw error("encoded rows are for whole graphs, not for mini-batches, whose products send none");
}

/// The model named by `options`. Throws error for an unknown model, or a variant that it does not have, also
/// of operands.
template <class T, class Device>
const named_model<T, Device>& find_model(const training_options& options) {
  bool known = false;
  for (const named_model<T, Device>& entry : named_models<T, Device>()) {
    if (entry.name != options.model) continue;
    if (entry.is_of(options)) {
      require_operands(entry, options);
      return entry;
    }
    known = true;
  }
  if (!known) base::throw_error<error>({"unknown model '", io::printable(options.model), "'"});
  const bool max = options.aggregation == aggregation::max;
  base::throw_error<error>({"model ", options.model, " has no ",
                            (options.coupling == coupling::coupled ? "max aggregation"
                             : max                                 ? "decoupled form with max aggregation"
                                                                   : "decoupled form")});
}

/// The model named by `options` over the graph of `data`, under the policy. Collective over the mesh, with
/// the same data on every rank. One that is not `trained` has a matrix without a transpose, unless its plans
/// read that. What travels: see distribute. Throws error for an unknown model, or a variant that it does not
/// have.
template <class T, class Device>
nn::model<T, Device> make_model(const mesh<Device>& m, const io::dataset& data,
                                const training_options& options, const policy& p, bool trained = true) {
  const named_model<T, Device>& named = find_model<T, Device>(options);
  const bool one_way = !trained && !is_pattern(named.multiplies_with);  // attention and messages read A^T
  const auto a =
      graph::propagation_matrices<T, Device>(m, data, options, p).matrix_for(named.multiplies_with, one_way);
  return named.make({a, data, options, builder<T, Device>(a, options_of_model(options, data))});
}

/// Trains the model named by `options` under a policy. Collective over the mesh, with the same data on every
/// rank. What travels and exceptions: see trainer; also mesh_error when the mesh does not suit the policy,
/// and error for options of mini-batches and stages.
template <class T, class Device>
training_result train_model(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                            const policy& p, const epoch_observer& observe = {},
                            const run_hooks<T>& how = {}) {
  require_mesh(p, m.shape(), m.size());
  return train_model(m, data, options, make_model<T>(m, data, options, p), observe, how);
}

}  // namespace partita::nn
