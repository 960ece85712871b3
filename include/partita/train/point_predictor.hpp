// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A saved model that answers for single vertices and pairs. Needs nlohmann-json and POSIX.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/nn/link_decoder.hpp"
#include "partita/sampling/block_matrix.hpp"
#include "partita/sampling/neighbourhoods.hpp"
#include "partita/train/link_scores.hpp"
#include "partita/train/model_file.hpp"
#include "partita/train/predictor.hpp"

namespace partita::nn {

/// Whether a point_predictor computes the rows that it is asked for, or keeps those of all vertices from one
/// pass over the whole graph when it is made.
enum class served_rows : std::uint8_t {
  automatic,  ///< computes where it can, and a vertex's neighbourhood has few entries on average
  kept,
  computed  ///< where it can, whatever the graph
};

/// Whether rows of the model that the options name can be computed from neighbourhoods, with the bits of the
/// whole graph: it is a gcn, a sage with mean aggregation or a gin, coupled, of at most three layers, since
/// more reach most of a graph. A sage reads the first rows of its input, which cannot be viewed in sparse
/// features: there it is not.
template <class T, class Device>
bool computes_rows(const io::dataset& data, const training_options& options) {
  constexpr std::size_t most_layers = 3;
  const named_model<T, Device>& named = find_model<T, Device>(options);
  const bool is_sparse = options.embedding == 0 && data.vertex_features.is_sparse();
  return named.is_on_blocks() && named.on_blocks.aggregates && !(is_sparse && named.on_blocks.products > 1) &&
         !named.reads_edge_types() && options.operands == operand_precision::unrounded &&
         options.storage == operand_precision::unrounded && block_count(named, data, options) <= most_layers;
}

namespace detail {

/// Whether the rows of a product H W (m x k times k x n) have the same bits for every m, as far as a few say.
/// A product that cuts sums by its shape does not, nor one of a library that has other kernels for few rows.
template <class T, class Device>
bool rows_are_alike(const dense<T, replicated, Device>& w) {
  constexpr global_index most = 512, long_sum = 8192;
  const mesh<Device>& m = w.mesh();
  const auto [k, n] = w.shape();
  if (k >= long_sum) return false;
  const auto product = [&](global_index rows) {
    dense<T, vertex_rows, Device> h(m, {rows, k}), y(m, {rows, n});
    transform_indexed(h, h, uniform_entry<T>{random_key{1, 0, 0}.word(), 1});
    gemm(h, w, y);
    return block_in_host_memory(y);
  };
  const std::vector<T> all = product(most);  // (most, n)
  for (const global_index rows : {1, 2, 3, 4, 5, 7, 12, 16, 25, 64, 129})
    if (const std::vector<T> some = product(rows); !std::equal(some.begin(), some.end(), all.begin()))
      return false;
  return true;
}

}  // namespace detail

/// The outputs of a model for the vertices that are asked for: the bits of predictor::evaluate and
/// scores_of_pairs on one rank. Several threads may ask at once. On meshes of one rank.
///
/// Where it computes rows, an answer takes the time of the vertices' neighbourhoods, one hop for each layer;
/// where it keeps them, that of a copy.
template <class T, class Device>
class point_predictor {
 public:
  /// `m`: what the graph is read on. `make_mesh`: a mesh of one rank with a queue of its own, for each thread
  /// that asks while others are being answered. The data are kept, and read, where rows are computed; where
  /// rows are kept, graph and features are released. Throws what predictor and load_parameters do.
  point_predictor(const mesh<Device>& m, std::function<mesh<Device>()> make_mesh, io::dataset data,
                  const training_options& options, const io::safetensors_file& file,
                  served_rows how = served_rows::automatic)
      : make_mesh_(std::move(make_mesh)), data_(std::move(data)), options_(options) {
    if (options_.embedding > 0)
      embedding_ = values_in<T>(file, std::string(embedding_name), {data_.vertices, options_.embedding});
    if (how == served_rows::kept || !computes_rows<T, Device>(data_, options_) || !prepares(m, file, how))
      keep_rows(m, file);
  }
  point_predictor(const point_predictor&) = delete;
  point_predictor& operator=(const point_predictor&) = delete;

  global_index vertices() const { return data_.vertices; }
  /// Columns of a row of outputs: classes, or what links are scored with.
  global_index width() const { return data_.classes; }
  bool keeps_rows() const { return !rows_of_a_; }
  bool scores_links() const { return data_.task == io::task::links; }

  /// The rows of these vertices (m x classes), in their order, of which some may be the same. Throws
  /// shape_error naming one that is no vertex.
  std::vector<T> rows(std::span<const global_index> of) const {
    return with_worker([&](worker& w) {
      const auto [distinct, places] = numbered(of);
      const std::vector<T> found = rows_of(w, distinct);
      std::vector<T> all;
      for (const global_index place : places)
        all.insert(all.end(), found.begin() + place * width(), found.begin() + (place + 1) * width());
      return all;
    });
  }
  /// The scores of these pairs, in their order. Throws error for a model of another task, and shape_error
  /// naming an end that is no vertex.
  std::vector<double> scores(std::span<const io::edge> pairs) const {
    if (!scores_links()) throw error("scores of pairs are those of a model of links, and this is not one");
    std::vector<global_index> ends;
    for (const io::edge& pair : pairs) ends.insert(ends.end(), {pair.source, pair.target});
    return with_worker([&](worker& w) {
      const auto [distinct, places] = numbered(ends);
      const std::vector<T> found = rows_of(w, distinct);
      dense<T, vertex_rows, Device> h(w.alone, {static_cast<global_index>(distinct.size()), width()});
      copy(w.alone.queue(), std::span<const T>(found), h.values());
      std::vector<io::edge> of_rows;
      for (std::size_t i = 0; i < places.size(); i += 2) of_rows.push_back({places[i], places[i + 1]});
      return scores_of_pairs(*w.decoder, h, std::span<const io::edge>(of_rows));
    });
  }

 private:
  /// What one thread answers with.
  struct worker {
    explicit worker(const point_predictor& of)
        : alone(of.make_mesh_()), set(std::make_shared<nn::parameters<T, Device>>(alone)) {
      if (!of.kept_) of.model_of({}, blocking::even(0, alone.shape(), nesting::rows), *this);
      if (of.scores_links()) decoder.emplace(of.options_.links.decoder, of.width(), *set, 0);
      if (!of.parameters_.empty()) assign_values(*set, of.parameters_, of.data_.name);
    }
    bool rows_are_alike() {
      for (auto& p : set->list())
        if (!detail::rows_are_alike(p.value())) return false;
      return true;
    }

    mesh<Device> alone;
    std::shared_ptr<nn::parameters<T, Device>> set;
    std::optional<link_decoder<T, Device>> decoder;
    sampling::neighbourhood_memory memory;
  };

  /// The vertices without repetition, and the place of each among these.
  std::pair<std::vector<global_index>, std::vector<local_index>> numbered(
      std::span<const global_index> vertices) const {
    std::pair<std::vector<global_index>, std::vector<local_index>> found;
    base::numbering<global_index> numbers;
    for (const global_index v : vertices) {
      if (v < 0 || v >= data_.vertices)
        base::throw_error<shape_error>(
            {"vertex ", v, " is not a vertex of a graph of ", data_.vertices, " vertices"});
      const auto [number, is_new] = numbers(v);
      if (is_new) found.first.push_back(v);
      found.second.push_back(number);
    }
    return found;
  }
  /// answer(worker), with one that no other thread has.
  template <class Answer>
  auto with_worker(const Answer& answer) const {
    std::unique_ptr<worker> mine;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        mine = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!mine) mine = std::make_unique<worker>(*this);
    auto found = answer(*mine);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(mine));
    return found;
  }

  std::size_t layers() const { return block_count(find_model<T, Device>(options_), data_, options_); }
  /// Gets ready to compute rows, unless products have other bits for few of them, or neighbourhoods are
  /// large.
  bool prepares(const mesh<Device>& m, const io::safetensors_file& file, served_rows how) {
    constexpr double most_entries = 1 << 14;
    auto first = std::make_unique<worker>(*this);
    load_parameters(file, *first->set);
    if (!first->rows_are_alike()) return false;
    rows_of_a_.emplace(graph::propagation_matrices<T, Device>(m, data_, options_, row_1d)
                           .matrix_for(find_model<T, Device>(options_).multiplies_with, true));
    if (how == served_rows::automatic && rows_of_a_->mean_entries(layers()) > most_entries) {
      rows_of_a_.reset();
      return false;
    }
    parameters_ = values_of(*first->set);
    idle_.push_back(std::move(first));
    return true;
  }
  /// Passes over the whole graph once.
  void keep_rows(const mesh<Device>& m, const io::safetensors_file& file) {
    predictor<T, Device> whole(m, data_, options_, row_1d);
    load_parameters(file, whole.parameters());
    if (auto* const x = whole.embedding()) load_embedding(file, *x);
    kept_ = values_on_first_rank(whole.evaluate());
    embedding_ = {};
    if (scores_links()) {
      worker first(*this);
      load_parameters(file, *first.set);
      parameters_ = values_of(*first.set);
    }
    data_.edges = {}, data_.edge_weights = {}, data_.edge_features = {}, data_.vertex_features = {};
  }
  /// The layers on these blocks, or on none, with the parameters of a worker.
  model<T, Device> model_of(std::vector<sparse<T, dynamic_layout, Device>> blocks, const blocking& inputs,
                            worker& w) const {
    const named_model<T, Device>& named = find_model<T, Device>(options_);
    if (blocks.empty())
      blocks.assign(layers(), sampling::block_matrix(w.alone, sampling::block<T>{0, 0, {0}, {}, {}}, false));
    const builder<T, Device> b(w.alone, inputs, options_of_model(options_, data_), w.set);
    return named.make({layer_matrices<T, Device>(std::move(blocks)), data_, options_, b});
  }
  /// The rows of vertices that are all different (m x classes).
  std::vector<T> rows_of(worker& w, const std::vector<global_index>& vertices) const {
    if (!kept_) return vertices.empty() ? std::vector<T>() : computed_rows(w, vertices);
    std::vector<T> found;
    for (const global_index v : vertices)
      found.insert(found.end(), kept_->begin() + v * width(), kept_->begin() + (v + 1) * width());
    return found;
  }
  std::vector<T> computed_rows(worker& w, const std::vector<global_index>& vertices) const {
    auto around = rows_of_a_->of(std::span(vertices), layers(), w.alone, w.memory);
    const blocking inputs = around.blocks.front().col_blocking();
    model<T, Device> net = model_of(std::move(around.blocks), inputs, w);
    const auto logits_for = [&](const algebra::operand<T, Device>& x) {
      return detail::block_in_host_memory(net.forward(x, {}));
    };
    if (options_.embedding > 0) return logits_for(embedding_of(w, inputs, around.vertices));
    if (data_.vertex_features.is_sparse())
      return logits_for(
          {graph::sparse_features_of<T>(w.alone, data_, options_.raw_features, inputs, around.vertices),
           true});
    return logits_for(
        {graph::features_of<T>(w.alone, data_, options_.raw_features, inputs, around.vertices), true});
  }
  dense<T, vertex_rows, Device> embedding_of(const worker& w, const blocking& rows,
                                             const std::vector<global_index>& vertices) const {
    const global_index columns = options_.embedding;
    std::vector<T> values;
    for (const global_index v : vertices)
      values.insert(values.end(), embedding_.begin() + v * columns, embedding_.begin() + (v + 1) * columns);
    dense<T, vertex_rows, Device> x(w.alone, rows, blocking::even(columns, w.alone.shape(), nesting::cols));
    copy(w.alone.queue(), std::span<const T>(values), x.values());
    return x;
  }

  std::function<mesh<Device>()> make_mesh_;
  io::dataset data_;
  training_options options_;
  std::vector<T> embedding_;  ///< (n, w)
  state_dict<T> parameters_;
  std::optional<std::vector<T>> kept_;                    ///< (n, classes)
  std::optional<sampling::neighbourhoods<T>> rows_of_a_;  ///< unless rows are kept
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<worker>> idle_;
};

}  // namespace partita::nn
