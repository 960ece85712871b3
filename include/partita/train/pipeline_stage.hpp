// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The layers of one stage of a pipeline, on chunks of vertices and on all of them.

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "partita/train/chunk_products.hpp"
#include "partita/train/stage_layers.hpp"

namespace partita::nn {

/// A stage: its layers for each chunk and for all vertices, which share parameters. Collective over the mesh
/// of the stage: all members.
template <class T, class Device>
class pipeline_stage {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using rounded = typename algebra::operand<T, Device>::rounded;
  using layers = stage_layers<T, Device>;

  pipeline_stage(const mesh<Device>& m, std::shared_ptr<const chunked_vertices> chunks,
                 const sampling::graph<T>& a, const training_options& options, const policy& p,
                 stage_place place);

  std::size_t chunks() const { return vertices().count(); }
  const stage_place& place() const { return place_; }
  /// The vertex of each row of the whole.
  const std::vector<global_index>& vertex_of_rows() const { return vertices().vertices(); }
  /// Must not be called if the history is exact.
  layers& chunk(std::size_t c) { return *chunks_[c]; }
  layers& whole() { return *whole_; }
  nn::parameters<T, Device>& parameters() { return *parameters_; }

  /// Before the first chunk of an epoch, and after the last one.
  void begin_epoch() {
    products_->begin_epoch();
    fill(*total_, T(0));
  }
  void end_epoch(std::uint64_t e) { products_->end_epoch(e); }
  /// Forward and backward of chunk c. Backward adds to the gradients since begin_epoch. The logits of a chunk
  /// are copied to those of the whole.
  void forward(std::size_t c, const pass& p) {
    chunks_[c]->forward(p);
    if (!has_halos() || !place_.is_last()) return;
    matrix logits = part_of(c, whole_->logits());
    copy(chunks_[c]->logits(), logits);
  }
  void backward(std::size_t c) {
    if (has_halos() && place_.is_last())
      copy(part_of(c, whole_->logits_gradient()), chunks_[c]->logits_gradient());
    backward(*chunks_[c]);
  }
  /// Backward of the whole, instead of chunks.
  void backward_whole() { backward(*whole_); }
  /// Sums these gradients over the ranks into those of the parameters. What travels: see parameters.
  void sum_gradients() {
    copy(*total_, parameters_->gradients());
    parameters_->sum_gradients();
  }
  /// Forward on all vertices. If `refreshes`, the history of the chunks is replaced by its neighbour rows.
  void forward_whole(const pass& p, bool refreshes) {
    *refreshes_ = refreshes;
    whole_->forward(p);
    *refreshes_ = false;
  }
  /// The rows of chunk c in matrices that pass between stages for all vertices; valid until the next call.
  template <class Passing>
  std::vector<Passing> part(std::size_t c, const std::vector<Passing>& whole) {
    passing_.clear();
    std::vector<Passing> parts;
    for (const Passing& m : whole)
      std::visit(
          [&](auto* rows) {
            parts.push_back(std::get_if<std::remove_const_t<std::remove_pointer_t<decltype(rows)>>>(
                &passing_.emplace_back(part_of(c, *rows))));
          },
          m);
    return parts;
  }
  /// What this rank receives in the forward and backward passes of all chunks, or of the whole, and in
  /// sum_gradients.
  traffic predicted(bool exact) const {
    traffic all = parameters_->predicted();
    if (exact) return all + whole_->predicted();
    for (const auto& c : chunks_) all += c->predicted();
    return all;
  }
  /// What it receives from the previous and next stage in an epoch: rows, skip connections and their
  /// gradients.
  traffic boundary() const {
    traffic all;
    const auto add = [&](global_index rows, std::size_t layer, std::size_t skips) {
      if (rows > 0)
        all += {rows * place_.outline.boundary_width(layer), static_cast<global_index>(1 + skips)};
    };
    for (std::size_t c = 0; c < chunks(); ++c) {
      const interval own = vertices().rows(c).block(vertex_rows.rows, mesh_.at()),
                     passing = rows_of(c).block(vertex_rows.rows, mesh_.at());
      if (!place_.is_first()) add(passing.size(), place_.first, place_.skips_in().size());
      if (!place_.is_last()) add(own.size(), place_.last, place_.skips_out().size());
    }
    return all;
  }
  /// Bytes of neighbours that are kept for chunks, here.
  global_index history_bytes() const { return products_->history_bytes(); }

 private:
  using skip_list = std::vector<std::shared_ptr<skip_connection<T, Device>>>;

  const chunked_vertices& vertices() const { return *vertices_; }
  bool has_halos() const { return options_.pipeline.history == chunk_history::halo; }
  /// The rows that pass with chunk c.
  const blocking& rows_of(std::size_t c) const {
    return has_halos() ? products_->halo(c)->extended_rows() : vertices().rows(c);
  }
  /// The rows of chunk c in a matrix with all rows.
  template <class Matrix>
  auto part_of(std::size_t c, Matrix& x) const {
    return part_of_rows(mesh_, vertices().rows(c), vertices().local_part(mesh_.rank(), c), x);
  }
  void backward(layers& of) {
    fill(parameters_->gradients(), T(0));
    of.backward();
    zip(*total_, parameters_->gradients(), *total_, std::plus<>{});
  }
  void make_chunk(std::size_t c);
  void make_whole();
  std::pair<sequential<T, Device>, skip_list> built(const blocking& rows,
                                                    std::shared_ptr<graph_products<T, Device>> products);
  typename layers::matrices made(const blocking& rows) const;
  template <class View>
  typename layers::matrices views(View view);
  /// The features, in the first stage, as an input that changes: dropout makes it differ from epoch to epoch.
  std::optional<algebra::operand<T, Device>> input() {
    if (!features_) return {};
    return features_->input().visit([](auto& x) { return algebra::operand<T, Device>(x); });
  }
  std::optional<algebra::operand<T, Device>> input_of(std::size_t c);
  void keep_input();

  mesh<Device> mesh_;
  training_options options_;
  policy policy_;
  const named_model<T, Device>& named_;
  stage_place place_;
  std::shared_ptr<const chunked_vertices> vertices_;
  std::unique_ptr<stage_products<T, Device>> products_;
  std::shared_ptr<bool> refreshes_ = std::make_shared<bool>(false);
  std::shared_ptr<nn::parameters<T, Device>> parameters_, outside_;
  std::optional<feature_matrix<T, Device>> features_;  ///< of the first stage
  std::tuple<std::deque<matrix>, std::deque<rounded>, std::deque<sparse_rows<T, Device>>> input_parts_;
  typename layers::matrices all_;
  std::deque<std::variant<matrix, rounded>> passing_;
  std::deque<std::unique_ptr<layers>> chunks_;
  std::unique_ptr<layers> whole_;
  std::optional<dense<T, replicated, Device>> total_;
};

template <class T, class Device>
pipeline_stage<T, Device>::pipeline_stage(const mesh<Device>& m,
                                          std::shared_ptr<const chunked_vertices> chunks,
                                          const sampling::graph<T>& a, const training_options& options,
                                          const policy& p, stage_place place)
    : mesh_(m),
      options_(options),
      policy_(p),
      named_(find_model<T, Device>(options)),
      place_(std::move(place)),
      vertices_(std::move(chunks)),
      products_(make_stage_products<T, Device>(std::max(options.operands, options.storage), m, vertices_, a,
                                               p, options.pipeline.history == chunk_history::halo)),
      parameters_(std::make_shared<nn::parameters<T, Device>>(m)),
      outside_(std::make_shared<nn::parameters<T, Device>>(m)) {
  const chunk_history history = options.pipeline.history;
  if (place_.is_first()) features_.emplace(m, vertices().data(), options, vertices().rows());
  all_ = made(vertices().rows());
  if (history != chunk_history::exact)
    for (std::size_t c = 0; c < vertices().count(); ++c) make_chunk(c);
  make_whole();
  outside_ = nullptr;
  total_.emplace(m, parameters_->values().shape());  // (1, parameters)
  if (place_.is_first() && history != chunk_history::zero) keep_input();
}

template <class T, class Device>
void pipeline_stage<T, Device>::make_chunk(std::size_t c) {
  const pipeline_options& how = options_.pipeline;
  const int window = how.history == chunk_history::zero ? 0 : how.window;
  auto [net, skips] = built(rows_of(c), products_->of_chunk(c, window, T(how.compensate ? 2 : 1)));
  auto matrices = has_halos() ? made(rows_of(c)) : views([&](auto& x) { return part_of(c, x); });
  chunks_.push_back(std::make_unique<layers>(
      mesh_, place_, std::move(net), std::move(skips), std::move(matrices), vertices().rows(c), input_of(c),
      has_halos() ? products_->halo(c)->vertices() : vertices().vertices(c)));
}

template <class T, class Device>
void pipeline_stage<T, Device>::make_whole() {
  const blocking& rows = vertices().rows();
  auto [net, skips] = built(rows, products_->of_whole(refreshes_));
  const interval local{0, rows.block(vertex_rows.rows, mesh_.at()).size()};
  auto matrices = views([&](auto& x) { return part_of_rows(mesh_, rows, local, x); });
  whole_ = std::make_unique<layers>(mesh_, place_, std::move(net), std::move(skips), std::move(matrices),
                                    rows, input(), vertices().vertices());
}

/// The layers of the stage, for rows that multiply with `products`.
template <class T, class Device>
auto pipeline_stage<T, Device>::built(const blocking& rows,
                                      std::shared_ptr<graph_products<T, Device>> products)
    -> std::pair<sequential<T, Device>, skip_list> {
  const builder<T, Device> b(mesh_, rows, options_of_model(options_, vertices().data()), parameters_);
  b.vary_input();
  b.slice_parameters(place_.parameters(), outside_);
  const auto shape_only = distribute(mesh_, policy_.sparse, rows, rows, std::vector<triplet<T>>{},
                                     symmetry::one_way, policy_.dense);  // (rows, rows)
  b.multiply_with(std::move(products), shape_only);
  model<T, Device> net = named_.make({shape_only, vertices().data(), options_, b});
  const interval kept = place_.parameters();
  return {net.layers().slice(static_cast<std::size_t>(kept.begin), static_cast<std::size_t>(kept.end)),
          b.skips()};
}

/// What passes, for these rows. Gradients are 0.
template <class T, class Device>
auto pipeline_stage<T, Device>::made(const blocking& rows) const -> typename layers::matrices {
  const auto matrix_of = [&](global_index width) {
    return matrix(mesh_, rows, blocking::even(width, mesh_.shape(), nesting::cols));  // (rows, width)
  };
  typename layers::matrices all;
  const auto make = [&](std::optional<matrix>& own, std::optional<rounded>& stored, global_index width,
                        bool rounds) {
    if (!rounds)
      own.emplace(matrix_of(width));
    else if constexpr (algebra::stored_as<base::bfloat16, T, Device>)
      stored.emplace(mesh_, rows, blocking::even(width, mesh_.shape(), nesting::cols));  // (rows, width)
  };
  const bool stores = options_.storage == operand_precision::bfloat16;
  if (!place_.is_first()) {
    make(all.h, all.stored_h, place_.input_width(), stores);
    all.dh.emplace(matrix_of(place_.input_width()));
  }
  make(all.z, all.stored_z, place_.output_width(), stores && !place_.is_last());
  all.dz.emplace(matrix_of(place_.output_width()));
  fill(*all.dz, T(0));
  for (const std::size_t k : place_.skips_in())
    all.skips_in.push_back(matrix_of(place_.outline.skips[k].width));
  for (const std::size_t k : place_.skips_out())
    fill(all.skips_out_gradients.emplace_back(matrix_of(place_.outline.skips[k].width)), T(0));
  return all;
}

/// `view` of each matrix that passes between stages for all vertices.
template <class T, class Device>
template <class View>
auto pipeline_stage<T, Device>::views(View view) -> typename layers::matrices {
  typename layers::matrices of;
  const auto add = [&](auto& to, auto& whole) {
    if (whole) to.emplace(view(*whole));
  };
  add(of.h, all_.h), add(of.dh, all_.dh), add(of.z, all_.z), add(of.dz, all_.dz);
  add(of.stored_h, all_.stored_h), add(of.stored_z, all_.stored_z);
  for (matrix& m : all_.skips_in) of.skips_in.push_back(view(m));
  for (matrix& m : all_.skips_out_gradients) of.skips_out_gradients.push_back(view(m));
  return of;
}

/// The features of the rows that pass with chunk c, in the first stage.
template <class T, class Device>
std::optional<algebra::operand<T, Device>> pipeline_stage<T, Device>::input_of(std::size_t c) {
  if (!features_) return {};
  const io::dataset& data = vertices().data();
  const std::vector<global_index> of_data =
      has_halos() ? products_->halo(c)->extended_of(mesh_.rank()) : vertices().part_rows(mesh_.rank(), c);
  const auto keep = [&](auto x) -> algebra::operand<T, Device> {
    return std::get<std::deque<decltype(x)>>(input_parts_).emplace_back(std::move(x));
  };
  if (features_->is_sparse())
    return keep(graph::sparse_features_of<T>(mesh_, data, options_.raw_features, rows_of(c), of_data));
  std::optional<algebra::operand<T, Device>> input;
  features_->input().visit_dense([&](const auto& x) {
    using stored = typename std::remove_cvref_t<decltype(x)>::value_type;
    input = has_halos()
                ? keep(graph::features_of<T, stored>(mesh_, data, options_.raw_features, rows_of(c), of_data))
                : keep(part_of(c, x));
  });
  return input;
}

/// Features that layers multiply with A before any parameter: no chunk reads old ones.
template <class T, class Device>
void pipeline_stage<T, Device>::keep_input() {
  products_->keep_input(
      chunks_.size(), [&](std::size_t c) -> const auto& { return chunks_[c]->input(); });
}

}  // namespace partita::nn
