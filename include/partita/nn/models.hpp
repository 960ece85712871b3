// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Models that are more than a stack of convolutions and activations.

#include "partita/nn/conv/gat.hpp"
#include "partita/nn/conv/gatv2.hpp"
#include "partita/nn/conv/gcnii.hpp"
#include "partita/nn/conv/gine.hpp"
#include "partita/nn/conv/mesh_graph.hpp"
#include "partita/nn/conv/rgat.hpp"
#include "partita/nn/conv/rgcn.hpp"
#include "partita/nn/conv/sage.hpp"
#include "partita/nn/conv/sgc.hpp"
#include "partita/nn/conv/transformer.hpp"
#include "partita/nn/layer_norm.hpp"
#include "partita/nn/linear.hpp"
#include "partita/nn/model.hpp"
#include "partita/nn/residual.hpp"
#include "partita/nn/skip_source.hpp"

namespace partita::nn {

/// Dense layers with relu in between, then K hops: APPNP (Klicpera et al., ICLR 2019), and for alpha = 0 the
/// decoupled form of gcn and sage (NeutronTP, VLDB 2025, section 4.1). widths: f, hidden widths, classes.
///
/// What travels per epoch: four redistributions of n x classes, independent of K and the input width, the
/// traffic of 2 K products (none under feature_column), and the sums of the gradients.
template <class T, class Device>
model<T, Device> appnp(const sparse<T, dynamic_layout, Device>& a, const std::vector<global_index>& widths,
                       int hops, double alpha, const model_options& options) {
  const builder<T, Device> b(a, options);
  auto net = chain<relu>(b, widths, [](std::size_t, auto in, auto out, const auto& with) {
    return linear<T, Device>(in, out, with);
  });
  net.add(propagation<T, Device>(a, widths.back(), hops, alpha, b));
  return {b, std::move(net)};
}

/// A^K X W + b (n x classes).
template <class T, class Device>
model<T, Device> sgc(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index classes,
                     int hops, const model_options& options) {
  const builder<T, Device> b(a, options);
  return {b, sgc_conv<T, Device>(a, in, classes, hops, b.named("").decaying(options.weight_decay))};
}

/// Chen et al. (ICML 2020): a dense layer, `layers` convolutions with initial residual and identity mapping,
/// a dense layer; relu after all but the last, dropout before each.
template <class T, class Device>
model<T, Device> gcnii(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index hidden,
                       global_index classes, int layers, double alpha, double lambda,
                       const builder<T, Device>& b) {
  const model_options& options = b.options();
  const builder<T, Device> outer = b.decaying(options.weight_decay);
  sequential<T, Device> net(b);
  net.add(dropout(options.dropout, b));
  net.add(linear<T, Device>(in, hidden, outer.named("in"))).add(relu{}).add(dropout(options.dropout, b));
  skip_source<T, Device> first(hidden, b);
  const auto h_0 = first.skip();  // (n, hidden)
  net.add(std::move(first));
  for (int l = 1; l <= layers; ++l)
    net.add(gcnii_conv<T, Device>(a, h_0, l, alpha, lambda, b.decaying(options.convolution_decay)))
        .add(relu{})
        .add(dropout(options.dropout, b));
  net.add(linear<T, Device>(hidden, classes, outer.named("out")));
  return {b, std::move(net)};
}

/// ResGCN+: a dense layer; `layers` blocks H + M(dropout(relu(norm(H)))), M a convolution with mean
/// aggregation and norm a layer normalisation; a last normalisation, relu, dropout and a dense layer.
/// `mean`: see mean_normalized. Source: Li, Xiong, Thabet, Ghanem (arXiv:2006.07739), section 3.4.
template <class T, class Device>
model<T, Device> resgcn(const sparse<T, dynamic_layout, Device>& mean, global_index in, global_index hidden,
                        global_index classes, int layers, const builder<T, Device>& b) {
  const model_options& options = b.options();
  const builder<T, Device> outer = b.decaying(options.weight_decay);
  const auto dropped = [&] { return dropout(options.dropout, b); };
  sequential<T, Device> net(b);
  net.add(dropped()).add(linear<T, Device>(in, hidden, outer.named("in")));
  for (int l = 0; l < layers; ++l) {
    sequential<T, Device> block(b);
    block.add(layer_norm<T, Device>(hidden, b)).add(relu{}).add(dropped());
    block.add(sage_conv<T, Device>(mean, hidden, hidden, b));
    net.add(residual(std::move(block)));
  }
  net.add(layer_norm<T, Device>(hidden, b)).add(relu{}).add(dropped());
  net.add(linear<T, Device>(hidden, classes, outer.named("out")));
  return {b, std::move(net)};
}

namespace detail {

/// Layers of heads that are side by side, averaged in the last layer; widths: f, hidden widths per head,
/// classes. make(l, in, out, builder, attention_heads).
template <class Activation, class T, class Device, class Make>
model<T, Device> layers_of_heads(std::vector<global_index> widths, int heads, int last_heads,
                                 const builder<T, Device>& b, Make make) {
  const std::size_t last = widths.size() - 2;
  for (std::size_t l = 1; l <= last; ++l) widths[l] *= heads;
  return {b, chain<Activation>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
            const attention_heads how{.count = l == last ? last_heads : heads, .averaged = l == last};
            return make(l, in, out, with.decaying(b.options().weight_decay), how);
          })};
}

}  // namespace detail

/// Attention layers with elu in between; widths: f, hidden widths per head, classes. Heads are side by side,
/// averaged in the last layer.
template <class T, class Device>
model<T, Device> gat(const layer_matrices<T, Device>& graph, const std::vector<global_index>& widths,
                     int heads, int last_heads, const builder<T, Device>& b) {
  return detail::layers_of_heads<elu>(
      widths, heads, last_heads, b,
      [&](std::size_t l, auto in, auto out, const auto& with, const attention_heads& how) {
        return gat_conv<T, Device>(graph[l], in, out, with, how);
      });
}
/// What the edges of a layer have: vectors, and, on sampled neighbours, how often each counts; null for none.
template <class T, class Device>
struct layer_edges {
  edge_vectors<T, Device> vectors, factors;
};

/// The edges of each layer: the same for all layers on a whole graph, or those of each block.
template <class T, class Device>
class edges_of_layers {
 public:
  edges_of_layers() = default;
  edges_of_layers(edge_vectors<T, Device> of_all) : layers_{{std::move(of_all), nullptr}} {}
  explicit edges_of_layers(std::vector<layer_edges<T, Device>> of_blocks) : layers_(std::move(of_blocks)) {}

  layer_edges<T, Device> operator[](std::size_t l) const {
    return layers_.empty() ? layer_edges<T, Device>() : layers_[std::min(l, layers_.size() - 1)];
  }

 private:
  std::vector<layer_edges<T, Device>> layers_;
};

/// The same with gatv2_conv, and with transformer_conv and relu in between.
template <class T, class Device>
model<T, Device> gatv2(const layer_matrices<T, Device>& graph, const edges_of_layers<T, Device>& edges,
                       const std::vector<global_index>& widths, int heads, int last_heads,
                       const builder<T, Device>& b) {
  return detail::layers_of_heads<elu>(
      widths, heads, last_heads, b,
      [&](std::size_t l, auto in, auto out, const auto& with, const attention_heads& how) {
        return gatv2_conv<T, Device>(graph[l], edges[l].vectors, in, out, with, how);
      });
}
template <class T, class Device>
model<T, Device> transformer(const layer_matrices<T, Device>& graph, const edges_of_layers<T, Device>& edges,
                             const std::vector<global_index>& widths, int heads, int last_heads,
                             const builder<T, Device>& b) {
  return detail::layers_of_heads<relu>(
      widths, heads, last_heads, b,
      [&](std::size_t l, auto in, auto out, const auto& with, const attention_heads& how) {
        return transformer_conv<T, Device>(graph[l], edges[l].vectors, in, out, with, how);
      });
}

/// Layers of gine_conv with relu in between; widths: f, hidden widths, classes.
template <class T, class Device>
model<T, Device> gine(const layer_matrices<T, Device>& graph, const edges_of_layers<T, Device>& edges,
                      const std::vector<global_index>& widths, double epsilon, const builder<T, Device>& b) {
  return {b, chain<relu>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
            const auto [vectors, factors] = edges[l];
            return gine_conv<T, Device>(graph[l], vectors, in, out, epsilon, with, factors);
          })};
}

/// A mesh network, see mesh_graph_net; vectors of edges may be null. On sampled neighbours each block has the
/// first rows of the one before it.
template <class T, class Device>
model<T, Device> meshgraphnet(const layer_matrices<T, Device>& graph, const edges_of_layers<T, Device>& edges,
                              global_index in, global_index hidden, global_index out, int blocks,
                              const builder<T, Device>& b) {
  sequential<T, Device> net(b);
  const auto blocks_of = [&](const auto& make, mesh_state<T, Device> at) {
    for (std::size_t l = 0; l < static_cast<std::size_t>(blocks); ++l)
      at = mesh_graph_block(make, graph[l], at, hidden, edges[l].factors);
    return at;
  };
  net.add(recorded(
      b.decaying(b.options().weight_decay), graph[0].col_blocking(), in, [&](const auto& make, auto h) {
        return detail::mesh_graph(make, h, make.constant_if_any(edges[0].vectors), hidden, out, blocks_of);
      }));
  return {b, std::move(net)};
}

/// Relational convolutions with relu in between; widths: f, hidden widths, classes.
template <class T, class Device>
model<T, Device> rgcn(const graph::relation_matrices<T, Device>& relations,
                      const std::vector<global_index>& widths, const relation_weights& how,
                      const builder<T, Device>& b) {
  return {b, chain<relu>(b, widths, [&](std::size_t, auto in, auto out, const auto& with) {
            return rgcn_conv<T, Device>(relations, in, out, with, how);
          })};
}
/// The same on blocks of sampled neighbours, each with the blocks of all relations stacked.
template <class T, class Device>
model<T, Device> rgcn(const layer_matrices<T, Device>& blocks, global_index relations,
                      const std::vector<global_index>& widths, const relation_weights& how,
                      const builder<T, Device>& b) {
  return {b, chain<relu>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
            return rgcn_conv<T, Device>(blocks[l], relations, in, out, with, how);
          })};
}

/// Relational attention with elu in between; widths: f, hidden widths per head, classes. Heads are side by
/// side, averaged in the last layer.
template <class T, class Device>
model<T, Device> rgat(const graph::relation_matrices<T, Device>& relations,
                      const std::vector<global_index>& widths, int heads, int last_heads,
                      const builder<T, Device>& b) {
  return detail::layers_of_heads<elu>(
      widths, heads, last_heads, b,
      [&](std::size_t, auto in, auto out, const auto& with, const attention_heads& how) {
        return rgat_conv<T, Device>(relations, in, out, with, how);
      });
}
/// The same on blocks of sampled neighbours, each of so many relations apart.
template <class T, class Device>
model<T, Device> rgat(const layer_matrices<T, Device>& blocks, global_index relations,
                      const std::vector<global_index>& widths, int heads, int last_heads,
                      const builder<T, Device>& b) {
  return detail::layers_of_heads<elu>(
      widths, heads, last_heads, b,
      [&](std::size_t l, auto in, auto out, const auto& with, const attention_heads& how) {
        return rgat_conv<T, Device>(blocks[l], relations, in, out, with, how);
      });
}

/// Dense layers with elu in between, then K hops of attention with shared coefficients: the decoupled form of
/// gat (NeutronTP, VLDB 2025, section 4.1). widths: f, hidden widths, classes.
///
/// What travels per epoch: four redistributions of n x classes, independent of K, the heads and the input
/// width; scalars per vertex and head; the traffic of 2 K products and K sampled products (none under
/// feature_column); contributions to one gradient value per edge; and the sums of the parameters'
/// gradients.
template <class T, class Device>
model<T, Device> decoupled_gat(const sparse<T, dynamic_layout, Device>& a,
                               const std::vector<global_index>& widths, int heads, int hops,
                               const model_options& options) {
  const builder<T, Device> b(a, options);
  auto net = chain<elu>(b, widths, [&](std::size_t, auto in, auto out, const auto& with) {
    return linear<T, Device>(in, out, with.decaying(options.weight_decay));
  });
  net.add(
      gat_propagation<T, Device>(a, widths.back(), heads, hops, b.named("").decaying(options.weight_decay)));
  return {b, std::move(net)};
}

}  // namespace partita::nn
