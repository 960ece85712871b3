// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The layers of one stage of a pipeline, on chunks of vertices and on all of them.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/train/chunk_products.hpp"
#include "partita/train/model_outline.hpp"

namespace partita::nn {

/// Where a stage is in its model: the layers [first, last) of an outline.
struct stage_place {
  model_outline outline;
  std::size_t first = 0, last = 0;

  bool is_first() const { return first == 0; }
  bool is_last() const { return last == outline.layers.size(); }
  /// Parameters before the stage, and before what follows it.
  interval parameters() const {
    return {static_cast<global_index>(outline.layers[first].first),
            static_cast<global_index>(outline.layers[last - 1].end)};
  }
  global_index input_width() const { return outline.layers[first].input_width; }
  global_index output_width() const {
    return is_last() ? outline.output_width : outline.layers[last].input_width;
  }
  /// Elements of the parameters of all layers before layer l.
  global_index weights_before(std::size_t l) const {
    global_index all = 0;
    for (std::size_t k = 0; k < l; ++k) all += outline.layers[k].weights;
    return all;
  }
  /// The matrices that pass over layers into the stage, or out of it, by number.
  std::vector<std::size_t> skips_in() const { return is_first() ? std::vector<std::size_t>{} : skips(first); }
  std::vector<std::size_t> skips_out() const { return is_last() ? std::vector<std::size_t>{} : skips(last); }

 private:
  std::vector<std::size_t> skips(std::size_t l) const {
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < outline.skips.size(); ++k)
      if (outline.skips[k].passes(outline.layers[l].first)) found.push_back(k);
    return found;
  }
};

/// A stage's layers for one set of rows, with its inputs, outputs and their gradients.
template <class T, class Device>
class stage_layers {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  /// What passes between two stages: a matrix, or its gradient, and those that pass over layers.
  using boundary = std::vector<matrix*>;

  /// The matrices of the stage: h in and z out with their gradients, the first two of dh null in the first
  /// stage; for each skip connection its value and its gradient from the stages behind.
  struct matrices {
    std::optional<matrix> h, dh, z, dz;
    std::deque<matrix> skips_in, skips_out_gradients;
  };

  stage_layers(const stage_place& place, sequential<T, Device> layers,
               std::vector<std::shared_ptr<skip_connection<T, Device>>> skips, matrices own,
               std::optional<operand<T, Device>> input, const device_queue<Device>& q,
               const std::vector<global_index>& vertices)
      : in_(place.skips_in()),
        out_(place.skips_out()),
        layers_(std::move(layers)),
        skips_(std::move(skips)),
        own_(std::move(own)),
        input_(std::move(input)),
        vertices_(q, vertices.size()) {
    copy(q, std::span<const global_index>(vertices), vertices_.span());
  }

  void forward(pass p) {
    p.vertices = vertices_.data();
    for (std::size_t k = 0; k < in_.size(); ++k) {
      skips_[in_[k]]->value = &own_.skips_in[k];
      fill(skips_[in_[k]]->gradient, T(0));
    }
    layers_.forward(input(), *own_.z, p);
  }
  /// Parameter gradients are written or accumulated; they are zeroed before.
  void backward() {
    for (std::size_t k = 0; k < out_.size(); ++k) {
      matrix& sum = skips_[out_[k]]->gradient;
      zip(sum, own_.skips_out_gradients[k], sum, std::plus<>{});
    }
    layers_.backward(input(), *own_.dz, own_.dh ? &*own_.dh : nullptr);
  }

  matrix& logits() { return *own_.z; }
  matrix& logits_gradient() { return *own_.dz; }
  /// What arrives before forward and leaves after it; what arrives before backward and leaves after it.
  boundary forward_input() {
    boundary all;
    if (own_.h) all.push_back(&*own_.h);
    for (matrix& m : own_.skips_in) all.push_back(&m);
    return all;
  }
  boundary forward_output() {
    boundary all{&*own_.z};
    for (const std::size_t k : out_) all.push_back(const_cast<matrix*>(skips_[k]->value));  // only to be sent
    return all;
  }
  boundary backward_input() {
    boundary all{&*own_.dz};
    for (matrix& m : own_.skips_out_gradients) all.push_back(&m);
    return all;
  }
  boundary backward_output() {
    boundary all;
    if (own_.dh) all.push_back(&*own_.dh);
    for (const std::size_t k : in_) all.push_back(&skips_[k]->gradient);
    return all;
  }
  traffic predicted() const { return layers_.predicted(); }
  const operand<T, Device>& input() {
    if (!input_) input_.emplace(*own_.h);
    return *input_;
  }

 private:
  std::vector<std::size_t> in_, out_;
  sequential<T, Device> layers_;
  std::vector<std::shared_ptr<skip_connection<T, Device>>> skips_;
  matrices own_;
  std::optional<operand<T, Device>> input_;
  buffer<global_index, Device> vertices_;
};

/// A stage: its layers for each chunk and for all vertices, which share parameters. Collective over the mesh
/// of the stage: all members.
template <class T, class Device>
class pipeline_stage {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using layers = stage_layers<T, Device>;

  pipeline_stage(const mesh<Device>& m, std::shared_ptr<const chunked_vertices> chunks,
                 const sampling::graph<T>& a, const training_options& options, const policy& p,
                 stage_place place);

  std::size_t chunks() const { return vertices().count(); }
  const stage_place& place() const { return place_; }
  /// Rows of chunk c on this rank.
  global_index chunk_rows(std::size_t c) const { return vertices().part(mesh_.rank(), c).size(); }
  /// Not where the history is exact.
  layers& chunk(std::size_t c) { return *chunks_[c]; }
  layers& whole() { return *whole_; }
  nn::parameters<T, Device>& parameters() { return *parameters_; }

  /// Before the first chunk of an epoch, and after the last one.
  void begin_epoch() {
    for (auto& [table, of_input] : state_->tables) table->begin_epoch();
    for (auto& sums : state_->sums) sums->begin_epoch();
    fill(*total_, T(0));
  }
  void end_epoch(std::uint64_t e) {
    for (auto& [table, of_input] : state_->tables) table->end_epoch(e);
  }
  /// Backward of these layers, and the gradients of all calls since begin_epoch.
  void backward(layers& of) {
    fill(parameters_->gradients(), T(0));
    of.backward();
    zip(*total_, parameters_->gradients(), *total_, std::plus<>{});
  }
  /// Those become the gradients of the parameters, summed over the ranks. What travels: one all-reduce.
  void sum_gradients() {
    copy(*total_, parameters_->gradients());
    parameters_->sum_gradients();
  }
  /// Forward on all vertices, whose neighbours become the history of the chunks if `refreshes`.
  void forward_whole(const pass& p, bool refreshes) {
    *refreshes_ = refreshes;
    whole_->forward(p);
    *refreshes_ = false;
  }
  /// The rows of chunk c of what passes between stages for all vertices; valid until the next call.
  typename layers::boundary part(std::size_t c, const typename layers::boundary& whole) {
    passing_.clear();
    typename layers::boundary parts;
    for (matrix* const m : whole) parts.push_back(&passing_.emplace_back(graph_->part(c, *m)));
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
  /// What it receives from the stages before and behind in an epoch: rows and what skips layers, and their
  /// gradients.
  traffic boundary() const {
    traffic all;
    const auto add = [&](std::size_t layer, std::size_t skips) {
      for (std::size_t c = 0; c < chunks(); ++c)
        if (const global_index rows = chunk_rows(c); rows > 0)
          all += {rows * place_.outline.boundary_width(layer), static_cast<global_index>(1 + skips)};
    };
    if (!place_.is_first()) add(place_.first, place_.skips_in().size());
    if (!place_.is_last()) add(place_.last, place_.skips_out().size());
    return all;
  }
  /// Bytes of neighbours that are kept for chunks, here.
  global_index history_bytes() const {
    global_index bytes = 0;
    for (const auto& [table, of_input] : state_->tables) bytes += table->bytes();
    return bytes;
  }

 private:
  using skip_list = std::vector<std::shared_ptr<skip_connection<T, Device>>>;

  const chunked_vertices& vertices() const { return graph_->chunks(); }
  std::pair<sequential<T, Device>, skip_list> built(const blocking& rows,
                                                    std::shared_ptr<graph_products<T, Device>> products);
  void make_matrices();
  template <class View>
  typename layers::matrices views(View view);
  typename layers::matrices part_of_matrices(std::size_t c) {
    return views([&](matrix& m) { return graph_->part(c, m); });
  }
  typename layers::matrices whole_matrices() {
    const interval local{0, vertices().rows().block(vertex_rows.rows, mesh_.at()).size()};
    return views([&](matrix& m) { return part_of_rows(mesh_, vertices().rows(), local, m); });
  }
  /// The features, in the first stage, as an input that changes: dropout makes it differ from epoch to epoch.
  std::optional<operand<T, Device>> input() {
    if (!features_) return {};
    return features_->input().visit([](const auto& x) { return operand<T, Device>(x); });
  }
  std::optional<operand<T, Device>> input_of(std::size_t c);
  void keep_input();

  mesh<Device> mesh_;
  training_options options_;
  policy policy_;
  const named_model<T, Device>& named_;
  stage_place place_;
  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::shared_ptr<chunk_state<T, Device>> state_ = std::make_shared<chunk_state<T, Device>>();
  std::shared_ptr<bool> refreshes_ = std::make_shared<bool>(false);
  std::shared_ptr<nn::parameters<T, Device>> parameters_, others_;
  std::optional<feature_matrix<T, Device>> features_;  ///< of the first stage
  std::deque<sparse_rows<T, Device>> sparse_parts_;
  std::deque<matrix> dense_parts_;
  typename layers::matrices all_;
  std::deque<matrix> passing_;
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
      graph_(std::make_shared<chunk_graph<T, Device>>(m, std::move(chunks), a, p)),
      parameters_(std::make_shared<nn::parameters<T, Device>>(m)),
      others_(std::make_shared<nn::parameters<T, Device>>(m)) {
  make_matrices();
  const pipeline_options& how = options.pipeline;
  const int window = how.history == chunk_history::zero ? 0 : how.window;
  const std::size_t count = how.history == chunk_history::exact ? 0 : vertices().count();
  for (std::size_t c = 0; c < count; ++c) {
    auto [net, skips] = built(vertices().rows(c), std::make_shared<chunk_products<T, Device>>(
                                                      graph_, c, state_, window, how.correct ? T(2) : T(1)));
    chunks_.push_back(std::make_unique<layers>(place_, std::move(net), std::move(skips), part_of_matrices(c),
                                               input_of(c), m.queue(), vertices().vertices(c)));
  }
  auto [net, skips] =
      built(vertices().rows(), std::make_shared<whole_products<T, Device>>(graph_, state_, refreshes_));
  whole_ = std::make_unique<layers>(place_, std::move(net), std::move(skips), whole_matrices(), input(),
                                    m.queue(), vertices().vertices());
  others_ = nullptr;
  total_.emplace(m, parameters_->values().shape());  // (1, parameters)
  if (place_.is_first() && window > 0) keep_input();
}

/// The layers of the stage, for rows that multiply with `products`.
template <class T, class Device>
auto pipeline_stage<T, Device>::built(const blocking& rows,
                                      std::shared_ptr<graph_products<T, Device>> products)
    -> std::pair<sequential<T, Device>, skip_list> {
  const builder<T, Device> b(mesh_, rows, options_of_model(options_), parameters_);
  b.vary_input();
  b.keep_parameters(place_.parameters(), others_);
  b.multiply_with(std::move(products));
  const auto shape_only = distribute(mesh_, policy_.sparse, rows, rows, std::vector<triplet<T>>{},
                                     symmetry::one_way, policy_.dense);  // (rows, rows)
  model<T, Device> net = named_.make({shape_only, vertices().data(), options_, b});
  const interval kept = place_.parameters();
  return {net.layers().taken(static_cast<std::size_t>(kept.begin), static_cast<std::size_t>(kept.end)),
          b.skips()};
}

template <class T, class Device>
void pipeline_stage<T, Device>::make_matrices() {
  const auto made = [&](global_index width) {
    return matrix(mesh_, vertices().rows(),
                  blocking::even(width, mesh_.shape(), nesting::cols));  // (n, width)
  };
  if (place_.is_first()) {
    features_.emplace(mesh_, vertices().data(), options_, vertices().rows());
  } else {
    all_.h.emplace(made(place_.input_width()));
    all_.dh.emplace(made(place_.input_width()));
  }
  all_.z.emplace(made(place_.output_width()));
  all_.dz.emplace(made(place_.output_width()));
  for (const std::size_t k : place_.skips_in()) all_.skips_in.push_back(made(place_.outline.skips[k].width));
  for (const std::size_t k : place_.skips_out())
    all_.skips_out_gradients.push_back(made(place_.outline.skips[k].width));
}

/// Views of them: `view` of each.
template <class T, class Device>
template <class View>
auto pipeline_stage<T, Device>::views(View view) -> typename layers::matrices {
  typename layers::matrices of;
  if (all_.h) of.h.emplace(view(*all_.h));
  if (all_.dh) of.dh.emplace(view(*all_.dh));
  of.z.emplace(view(*all_.z));
  of.dz.emplace(view(*all_.dz));
  for (matrix& m : all_.skips_in) of.skips_in.push_back(view(m));
  for (matrix& m : all_.skips_out_gradients) of.skips_out_gradients.push_back(view(m));
  return of;
}

/// The features of chunk c, in the first stage.
template <class T, class Device>
std::optional<operand<T, Device>> pipeline_stage<T, Device>::input_of(std::size_t c) {
  if (!features_) return {};
  if (auto* const x = features_->dense_rows())
    return operand<T, Device>(dense_parts_.emplace_back(graph_->part(c, *x)));
  const io::dataset& data = vertices().data();
  const interval of_data = vertices().part(mesh_.rank(), c);
  const global_index first = vertices().rows(c).block(vertex_rows.rows, mesh_.at()).begin;
  std::vector<triplet<T>> entries;
  for (global_index v = of_data.begin; v < of_data.end; ++v) {
    const T scale = feature_scale<T>(data, v, options_.raw_features);
    data.vertex_features.for_row(v, [&](global_index feature, auto value) {
      entries.push_back({first + v - of_data.begin, feature, static_cast<T>(value) * scale});
    });
  }
  return operand<T, Device>(
      sparse_parts_.emplace_back(mesh_, vertices().rows(c), data.features, std::move(entries)));
}

/// Features that layers multiply with A before any parameter: no chunk reads old ones.
template <class T, class Device>
void pipeline_stage<T, Device>::keep_input() {
  for (auto& [table, of_input] : state_->tables) {
    if (!of_input) continue;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      dense_operand<T, Device> written_out;
      const matrix& x = written_out(chunks_[c]->input());
      graph_->write(c, x, table->rows(*graph_, x.shape().cols));
    }
    table->keep_always();
  }
}

}  // namespace partita::nn
