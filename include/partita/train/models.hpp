#pragma once
/// The models by name.

#include <memory>

#include "partita/nn/appnp.hpp"
#include "partita/nn/decoupled_gat.hpp"
#include "partita/nn/gcn.hpp"
#include "partita/nn/gcnii.hpp"
#include "partita/nn/gin.hpp"
#include "partita/nn/sage.hpp"
#include "partita/nn/sage_max.hpp"
#include "partita/nn/sgc.hpp"
#include "partita/train/graph_data.hpp"
#include "partita/train/options.hpp"

namespace partita {

/// f, the hidden widths, classes: hidden[0] repeated when `layers` asks for more than `hidden` names.
/// Throws shape_error when both are given and disagree.
inline std::vector<global_index> layer_widths(const dataset& data, const training_options& options) {
  std::vector<global_index> hidden = options.hidden;
  if (options.layers > 0 && hidden.size() == 1)
    hidden.assign(static_cast<std::size_t>(options.layers) - 1, options.hidden[0]);
  if (options.layers > 0 && static_cast<int>(hidden.size()) != options.layers - 1)
    throw shape_error(std::to_string(options.layers) + " layers have " + std::to_string(options.layers - 1) +
                      " hidden widths, not " + std::to_string(hidden.size()));
  hidden.insert(hidden.begin(), data.features);
  hidden.push_back(data.classes);
  return hidden;
}

/// The model that `options` names over the graph of `data`, multiplied as the policy says.
/// Every rank of the mesh must call, with the same data. What travels: see distribute. Throws error for a
/// name nobody knows.
template <class T, class Place>
std::unique_ptr<model<T, Place>> make_model(const mesh<Place>& m, const dataset& data,
                                            const training_options& options, const policy& p) {
  const std::string& name = options.model;
  const bool decoupled = options.coupling == coupling::decoupled;
  const model_options how = options_of_model(options);
  const auto adjacency = edge_share(data, m.world());
  const global_index n = data.vertices;
  const auto normalized = [&] {
    return distribute_graph<T>(m, p, n, gcn_normalized(m.world(), n, adjacency));
  };
  const auto mean = [&] { return distribute_graph<T>(m, p, n, mean_normalized(m.world(), n, adjacency)); };
  const auto widths = [&] { return layer_widths(data, options); };
  const auto layers = [&] { return static_cast<int>(widths().size()) - 1; };

  const bool largest = options.aggregation == aggregation::max;
  if (largest && name != "sage") throw error("model " + name + " has no max aggregation");
  if (largest && decoupled) throw error("model sage has no decoupled form with max aggregation");
  if (decoupled && name == "gcn")
    return std::make_unique<appnp<T, Place>>(normalized(), widths(), layers(), 0, how);
  if (decoupled && name == "sage")
    return std::make_unique<appnp<T, Place>>(mean(), widths(), layers(), 0, how);
  const auto loops = [&](double weight = 1) { return with_self_loops(m.world(), n, adjacency, weight); };
  if (decoupled && name == "gat")
    return std::make_unique<decoupled_gat<T, Place>>(distribute_graph<T>(m, p, n, loops()), widths(),
                                                     options.heads, layers(), how);
  if (decoupled) throw error("model " + name + " has no decoupled form");
  if (name == "gcn") return std::make_unique<gcn<T, Place>>(normalized(), widths(), how);
  if (name == "sage" && largest)
    return std::make_unique<sage_max<T, Place>>(distribute_rows<T>(m, p, n, adjacency), widths(), how);
  if (name == "sage") return std::make_unique<sage<T, Place>>(mean(), widths(), how);
  if (name == "gin")
    return std::make_unique<gin<T, Place>>(distribute_graph<T>(m, p, n, loops(1 + options.epsilon)), widths(),
                                           how);
  if (name == "gat")
    return std::make_unique<gat<T, Place>>(distribute_graph<T>(m, p, n, loops()), widths(), options.heads,
                                           options.last_heads, how);
  if (name == "sgc")
    return std::make_unique<sgc<T, Place>>(normalized(), data.features, data.classes, options.hops, how);
  if (name == "appnp")
    return std::make_unique<appnp<T, Place>>(normalized(), widths(), options.hops, options.alpha, how);
  if (name == "gcnii")
    return std::make_unique<gcnii<T, Place>>(normalized(), data.features, options.hidden[0], data.classes,
                                             options.layers > 0 ? options.layers : 8, options.alpha,
                                             options.lambda, how);
  throw error("there is no model '" + name + "'");
}

}  // namespace partita
