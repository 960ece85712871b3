// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The models by name.

#include <string>
#include <string_view>
#include <vector>

#include "partita/io/quote.hpp"
#include "partita/nn/conv/gin.hpp"
#include "partita/nn/conv/sage.hpp"
#include "partita/nn/conv/sage_max.hpp"
#include "partita/nn/models.hpp"
#include "partita/train/trainer.hpp"

namespace partita::nn {

/// f, the hidden widths, classes; a single hidden width is repeated as often as `layers` requires. f is the
/// width of the embedding where there is one. Throws shape_error when `layers` and several hidden widths
/// disagree, and input_error for data without features where there is none.
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

/// The inputs from which a named model is constructed: the matrix, or blocks, that it multiplies with, and
/// the builder of its layers.
template <class T, class Device>
struct model_request {
  graph_of_layers<T, Device> graph;
  const io::dataset& data;
  const training_options& options;
  builder<T, Device> with;

  std::vector<global_index> widths() const { return layer_widths(data, options); }
  int layers() const { return static_cast<int>(widths().size()) - 1; }
  const sparse<T, dynamic_layout, Device>& whole_graph() const { return graph[0]; }
};

/// How the first layer of a model on sampled blocks uses its input: with how many weights it is multiplied (0
/// for a model that cannot be trained on blocks), and whether after the block.
struct first_layer {
  int products = 0;
  bool aggregates = false;
};

/// A variant of a model, the matrix that it multiplies with, and its factory.
template <class T, class Device>
struct named_model {
  using matrix = sparse<T, dynamic_layout, Device>;

  std::string_view name;
  partita::nn::coupling coupling;
  partita::nn::aggregation aggregation;
  propagation_matrix multiplies_with;
  first_layer on_blocks;
  bool on_stages;  ///< whether its layers can be cut into stages; see pipeline_trainer
  nn::model<T, Device> (*make)(const model_request<T, Device>&);
};

/// The models known to train_model; add a line for a new one.
template <class T, class Device>
const std::vector<named_model<T, Device>>& named_models() {
  static const std::vector<named_model<T, Device>> models{
      {"gcn",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::gcn_normalized,
       {1, true},
       true,
       [](const auto& r) { return nn::convolutions<nn::gcn_conv>(r.graph, r.widths(), r.with); }},
      {"sage",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::mean_normalized,
       {2, true},
       true,
       [](const auto& r) { return nn::convolutions<nn::sage_conv>(r.graph, r.widths(), r.with); }},
      {"sage",
       coupling::coupled,
       aggregation::max,
       propagation_matrix::whole_rows,
       {},
       false,
       [](const auto& r) { return nn::convolutions<nn::sage_max_conv>(r.graph, r.widths(), r.with); }},
      {"gin",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::weighted_self,
       {1, true},
       true,
       [](const auto& r) { return nn::convolutions<nn::gin_conv>(r.graph, r.widths(), r.with); }},
      {"gat",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::self_loops,
       {1, false},
       false,
       [](const auto& r) {
         return nn::gat(r.graph, r.widths(), r.options.heads, r.options.last_heads, r.with);
       }},
      {"sgc",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::gcn_normalized,
       {},
       false,
       [](const auto& r) {
         return nn::sgc(r.whole_graph(), input_width(r.data, r.options), r.data.classes, r.options.hops,
                        options_of_model(r.options));
       }},
      {"appnp",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::gcn_normalized,
       {},
       false,
       [](const auto& r) {
         return nn::appnp(r.whole_graph(), r.widths(), r.options.hops, r.options.alpha,
                          options_of_model(r.options));
       }},
      {"gcnii",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::gcn_normalized,
       {},
       true,
       [](const auto& r) {
         return nn::gcnii(r.whole_graph(), input_width(r.data, r.options), r.options.hidden[0],
                          r.data.classes, r.options.layers > 0 ? r.options.layers : 8, r.options.alpha,
                          r.options.lambda, r.with);
       }},
      {"resgcn",
       coupling::coupled,
       aggregation::mean,
       propagation_matrix::mean_normalized,
       {},
       true,
       [](const auto& r) {
         return nn::resgcn(r.whole_graph(), input_width(r.data, r.options), r.options.hidden[0],
                           r.data.classes, r.options.layers > 0 ? r.options.layers : 8, r.with);
       }},
      {"gcn",
       coupling::decoupled,
       aggregation::mean,
       propagation_matrix::gcn_normalized,
       {},
       false,
       [](const auto& r) {
         return nn::appnp(r.whole_graph(), r.widths(), r.layers(), 0, options_of_model(r.options));
       }},
      {"sage",
       coupling::decoupled,
       aggregation::mean,
       propagation_matrix::mean_normalized,
       {},
       false,
       [](const auto& r) {
         return nn::appnp(r.whole_graph(), r.widths(), r.layers(), 0, options_of_model(r.options));
       }},
      {"gat",
       coupling::decoupled,
       aggregation::mean,
       propagation_matrix::self_loops,
       {},
       false,
       [](const auto& r) {
         return nn::decoupled_gat(r.whole_graph(), r.widths(), r.options.heads, r.layers(),
                                  options_of_model(r.options));
       }},
  };
  return models;
}

/// Throws error where operands of products are to be rounded, and a product of this model has others.
template <class T, class Device>
void require_operands(const named_model<T, Device>& model, const training_options& options) {
  if (options.operands == operand_format::own) return;
  if (!std::is_same_v<T, float> || !local::multiplies_bfloat16<Device>)
    base::throw_error<error>({"products with operands of bfloat16 are for float on the host"});
  if (!model.on_stages)  // every product is one of builder::product
    base::throw_error<error>({"model ", model.name,
                              " has products whose operands are not rounded to bfloat16: gcn, sage with mean "
                              "aggregation, gin, gcnii and resgcn have none, coupled"});
  if (options.mini_batch.batch > 0 || options.pipeline.stages > 0)
    base::throw_error<error>(
        {"operands of products are rounded to bfloat16 on whole graphs, without stages"});
}

/// The model named by `options`. Throws error for an unknown model, or a variant that it does not have, also
/// of operands.
template <class T, class Device>
const named_model<T, Device>& find_model(const training_options& options) {
  bool known = false;
  for (const named_model<T, Device>& entry : named_models<T, Device>()) {
    if (entry.name != options.model) continue;
    if (entry.coupling == options.coupling && entry.aggregation == options.aggregation) {
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
/// the same data on every rank. What travels: see distribute. Throws error for an unknown model, or a variant
/// that it does not have.
template <class T, class Device>
nn::model<T, Device> make_model(const mesh<Device>& m, const io::dataset& data,
                                const training_options& options, const policy& p) {
  const named_model<T, Device>& named = find_model<T, Device>(options);
  const auto a = graph_operators<T, Device>(m, data, options, p).matrix_for(named.multiplies_with);
  return named.make({a, data, options, builder<T, Device>(a, options_of_model(options, data))});
}

/// Trains the model named by `options` under a policy. Collective over the mesh, with the same data on every
/// rank. What travels and exceptions: see trainer; also mesh_error when the mesh does not suit the policy,
/// and error for options of mini-batches.
template <class T, class Device>
training_result train_model(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                            const policy& p, const epoch_observer& observe = {},
                            const continuation<T>& how = {}) {
  require_mesh(p, m.shape(), m.size());
  return train_model(m, data, options, make_model<T>(m, data, options, p), observe, how);
}

}  // namespace partita::nn
