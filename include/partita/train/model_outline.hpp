// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A model without a graph: where it can be cut into stages, and what its layers cost.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "partita/comm/self.hpp"
#include "partita/sampling/block_matrix.hpp"
#include "partita/train/models.hpp"

namespace partita::nn {

/// The parameters of a model, the places between its layers, and the matrices that pass over several layers.
/// Layers are counted without those that have no parameters.
struct model_outline {
  /// A layer: its parameters are [first, end) of the model.
  struct layer {
    std::size_t first, end;
    global_index input_width = 0;  ///< 0 for the first layer
    global_index weights = 0;      ///< elements of its parameters
    global_index products = 0;     ///< columns of all products with A and A^T, forward and backward
  };
  /// A matrix that is written after `written` parameters and last read by the layer with parameter
  /// `last_read`.
  struct skip {
    std::size_t written, last_read;
    global_index width;

    /// Whether it passes the place with so many parameters before it.
    bool passes(std::size_t parameters) const { return parameters >= written && parameters <= last_read; }
  };

  /// A parameter of the model.
  struct parameter {
    std::string name;
    matrix_shape shape;
  };

  std::vector<layer> layers;
  std::vector<parameter> parameters;  ///< in their order
  std::vector<skip> skips;
  global_index output_width = 0;

  /// Words per vertex that pass before layer l in one direction: its input, and what skips it.
  global_index boundary_width(std::size_t l) const {
    global_index width = layers[l].input_width;
    for (const skip& s : skips) width += s.passes(layers[l].first) ? s.width : 0;
    return width;
  }
};

namespace detail {

/// Counts the columns of products for the layer that asks for them.
template <class T, class Device>
class counted_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;

  counted_products(const builder<T, Device>& b, std::vector<global_index>& of_parameter)
      : builder_(b), of_parameter_(of_parameter) {}
  product of_matrix(const blocking& columns, bool) override { return counted(columns); }
  product of_transpose(const blocking& columns) override { return counted(columns); }

 private:
  product counted(const blocking& columns) {
    of_parameter_.resize(std::max(of_parameter_.size(), builder_.parameters_made()));
    of_parameter_.back() += columns.size();
    return nullptr;
  }

  const builder<T, Device>& builder_;
  std::vector<global_index>& of_parameter_;
};

}  // namespace detail

/// The outline of the model that the options name. Local. Throws error for an unknown model, and one that
/// cannot be cut into stages.
template <class T, class Device>
model_outline outline_of(const device_queue<Device>& q, const io::dataset& data,
                         const training_options& options) {
  const named_model<T, Device>& named = find_model<T, Device>(options);
  if (!named.on_stages)
    base::throw_error<error>({"model ", named.title(), " cannot be cut into stages; ",
                              models_that(&model_row::on_stages), " can, coupled and with mean aggregation"});
  const mesh<Device> alone(self::world(), mesh_shape{}, q);
  const auto a = block_matrix(alone, sampling::block<T>{0, 0, {0}, {}, {}}, true);
  const builder<T, Device> b(a, options_of_model(options, data));
  std::vector<global_index> columns;
  b.vary_input();
  b.multiply_with(std::make_shared<detail::counted_products<T, Device>>(b, columns), a);
  model<T, Device> net = named.make({a, data, options, b});

  model_outline found;
  found.output_width = net.width();
  std::size_t first = 0;
  global_index width = 0;
  const auto close = [&](std::size_t end) { found.layers.push_back({first, end, width}); };
  for (const auto& start : net.layers().slice_starts()) {
    close(start.parameters);
    first = start.parameters;
    width = start.width;
  }
  close(b.parameters_made());
  columns.resize(b.parameters_made());
  for (auto& l : found.layers)
    for (std::size_t p = l.first; p < l.end; ++p) {
      const matrix_shape shape = net.parameters().list()[p].shape();
      l.weights += shape.rows * shape.cols;
      l.products += columns[p];
    }
  for (const auto& p : net.parameters().list()) found.parameters.push_back({p.name(), p.shape()});
  for (const auto& s : b.skips()) found.skips.push_back({s->written, s->last_read, s->gradient.shape().cols});
  return found;
}

/// Seconds, or any unit, per multiplication: with a weight, and with an entry of A.
struct layer_rates {
  double weight = 1, entry = 8;
};

/// What a model multiplies with.
struct data_size {
  global_index vertices = 0, entries = 0;  ///< of A
  double features = 0;                     ///< of a vertex, in the mean, that are stored
  global_index feature_width = 0;
  bool sparse_features = false;

  static data_size of(const io::dataset& data) {
    data_size size{data.vertices, static_cast<global_index>(data.edges.size()) + data.vertices, 0,
                   data.features, data.vertex_features.is_sparse()};
    std::size_t stored = 0;
    for (global_index v = 0; v < data.vertex_features.rows; ++v)
      data.vertex_features.for_row(v, [&](global_index, auto) { ++stored; });
    size.features =
        static_cast<double>(stored) / static_cast<double>(std::max<global_index>(1, data.vertices));
    return size;
  }
};

/// What each layer costs in an epoch, forward and backward. The first layer needs no gradient of its input,
/// and multiplies with the features that are stored.
inline std::vector<double> layer_costs(const model_outline& outline, const data_size& size,
                                       const layer_rates& rates = {}) {
  std::vector<double> costs;
  for (const auto& l : outline.layers) {
    double per_vertex = 3 * rates.weight * static_cast<double>(l.weights);
    if (l.first == 0 && size.feature_width > 0)
      per_vertex = 2 * (size.sparse_features ? rates.entry : rates.weight) * size.features *
                   static_cast<double>(l.weights) / static_cast<double>(size.feature_width);
    costs.push_back(per_vertex * static_cast<double>(size.vertices) +
                    rates.entry * static_cast<double>(l.products) * static_cast<double>(size.entries));
  }
  return costs;
}

/// The first layer of each of `stages` consecutive runs of layers, and the number of layers: the cut whose
/// costliest run costs least, the first of equals. Throws shape_error for fewer layers than stages.
inline std::vector<std::size_t> balanced_stages(const std::vector<double>& costs, int stages) {
  const std::size_t layers = costs.size();
  const auto count = static_cast<std::size_t>(stages);
  if (stages < 1 || layers < count)
    base::throw_error<shape_error>(
        {"a model of ", layers, " layers with parameters cannot be cut into ", stages, " stages"});
  constexpr double unreachable = std::numeric_limits<double>::infinity();
  // least[s][l]: of the costliest of s runs of the first l layers
  std::vector<std::vector<double>> least(count + 1, std::vector<double>(layers + 1, unreachable));
  std::vector<std::vector<std::size_t>> begin(count + 1, std::vector<std::size_t>(layers + 1, 0));
  least[0][0] = 0;
  for (std::size_t s = 1; s <= count; ++s)
    for (std::size_t l = s; l <= layers; ++l) {
      double run = 0;
      for (std::size_t b = l; b-- > s - 1;) {
        run += costs[b];
        if (const double worst = std::max(run, least[s - 1][b]); worst < least[s][l]) {
          least[s][l] = worst;
          begin[s][l] = b;
        }
      }
    }
  std::vector<std::size_t> cuts{layers};
  for (std::size_t s = count; s > 0; --s) cuts.push_back(begin[s][cuts.back()]);
  std::ranges::reverse(cuts);
  return cuts;
}

/// As above, for given numbers of layers. Throws shape_error unless there is one for each stage, at least 1,
/// and they sum to the number of layers.
inline std::vector<std::size_t> given_stages(const std::vector<int>& numbers, std::size_t layers,
                                             int stages) {
  std::vector<std::size_t> cuts{0};
  for (const int n : numbers) {
    if (n < 1) base::throw_error<shape_error>({"a stage has at least one layer, not ", n});
    cuts.push_back(cuts.back() + static_cast<std::size_t>(n));
  }
  if (static_cast<int>(numbers.size()) != stages || cuts.back() != layers)
    base::throw_error<shape_error>({numbers.size(), " stages with ", cuts.back(),
                                    " layers in total were given; ", stages, " stages and ", layers,
                                    " layers were expected (dense layers and norms count)"});
  return cuts;
}

}  // namespace partita::nn
