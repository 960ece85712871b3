// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The products of layers that run on chunks of vertices: neighbours in chunks that have not run yet are
/// historical.

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/train/chunk_graph.hpp"

namespace partita::nn {

/// What one layer multiplies with A: the rows of chunks that have run in this epoch, and of the others those
/// of an earlier one. Memory is taken in the first use.
template <class T, class Device>
class chunk_table {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// `window`: as pipeline_options, or 0 for zeros instead of earlier rows.
  explicit chunk_table(int window) : window_(window) {}

  matrix& rows(const chunk_graph<T, Device>& g, global_index width) {
    if (!rows_) {
      rows_.emplace(g.table(width));                   // (table rows, width)
      if (window_ > 1) kept_.emplace(g.table(width));  // (table rows, width)
    }
    return *rows_;
  }
  /// From now on rows of chunks that have not run are these.
  void keep() {
    if (kept_) copy(*rows_, *kept_);
  }
  /// As above, for good.
  void keep_always() {
    keep();
    fixed_ = true;
  }
  /// Before the first chunk of an epoch, and after the last one of epoch e = 1, 2, ...
  void begin_epoch() {
    if (kept_) copy(*kept_, *rows_);
    if (rows_ && window_ == 0) fill(*rows_, T(0));
  }
  void end_epoch(std::uint64_t e) {
    if (!fixed_ && window_ > 1 && e % static_cast<std::uint64_t>(window_) == 0) keep();
  }
  global_index bytes() const {
    const auto of = [](const std::optional<matrix>& m) {
      return m ? static_cast<global_index>(m->values().size_bytes()) : 0;
    };
    return of(rows_) + of(kept_);
  }

 private:
  int window_;
  bool fixed_ = false;
  std::optional<matrix> rows_, kept_;
};

/// Of one layer, the sums of A_c^T dY_c over the chunks that have run backward in this epoch.
template <class T, class Device>
struct chunk_sums {
  using matrix = dense<T, vertex_rows, Device>;

  std::optional<matrix> rows;

  matrix& of(const chunk_graph<T, Device>& g, global_index width) {
    if (!rows) rows.emplace(g.table(width));  // (table rows, width)
    return *rows;
  }
  void begin_epoch() {
    if (rows) fill(*rows, T(0));
  }
};

/// The tables and sums of all layers of a stage, in order of construction.
template <class T, class Device>
struct chunk_state {
  std::vector<std::pair<std::shared_ptr<chunk_table<T, Device>>, bool>>
      tables;  ///< whether of the model's input
  std::vector<std::shared_ptr<chunk_sums<T, Device>>> sums;
};

namespace detail {

/// Y = A_c X, X the table, in which x are the rows of chunk c.
template <class T, class Device>
class chunk_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;

  chunk_product(std::shared_ptr<chunk_graph<T, Device>> g, std::size_t c, global_index width,
                std::shared_ptr<chunk_table<T, Device>> table)
      : graph_(std::move(g)), chunk_(c), width_(width), table_(std::move(table)) {}

  void operator()(const matrix& x, matrix& y) override {
    matrix& rows = table_->rows(*graph_, width_);
    graph_->write(chunk_, x, rows);
    graph_->multiply(chunk_, rows, y);
  }
  traffic predicted() const override { return graph_->predicted(chunk_, width_); }

 private:
  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::size_t chunk_;
  global_index width_;
  std::shared_ptr<chunk_table<T, Device>> table_;
};

/// dX_c = the rows of chunk c of sum_d A_d^T dY_d over the chunks d that have run backward, c the last; those
/// before c times `factor`.
template <class T, class Device>
class transposed_chunk_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;

  transposed_chunk_product(std::shared_ptr<chunk_graph<T, Device>> g, std::size_t c, global_index width,
                           std::shared_ptr<chunk_sums<T, Device>> sums, T factor)
      : graph_(std::move(g)), chunk_(c), width_(width), sums_(std::move(sums)), factor_(factor) {}

  void operator()(const matrix& dy, matrix& dx) override {
    matrix& sums = sums_->of(*graph_, width_);
    if (factor_ != 1) graph_->scale(chunk_, factor_, sums);
    graph_->multiply_transposed(chunk_, dy, sums);
    graph_->read_sums(chunk_, sums, dx);
  }
  traffic predicted() const override { return graph_->predicted_transposed(chunk_, width_); }

 private:
  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::size_t chunk_;
  global_index width_;
  std::shared_ptr<chunk_sums<T, Device>> sums_;
  T factor_;
};

/// Y = A X and Y = A^T X for all rows, chunk by chunk.
template <class T, class Device>
class whole_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;

  /// `copied_to`, unless null, becomes X in each call while `refreshes`.
  whole_product(std::shared_ptr<chunk_graph<T, Device>> g, global_index width, bool transpose,
                std::shared_ptr<std::optional<matrix>> scratch,
                std::shared_ptr<chunk_table<T, Device>> copied_to, std::shared_ptr<const bool> refreshes)
      : graph_(std::move(g)),
        width_(width),
        transpose_(transpose),
        scratch_(std::move(scratch)),
        copied_to_(std::move(copied_to)),
        refreshes_(std::move(refreshes)) {}

  void operator()(const matrix& x, matrix& y) override {
    if (!*scratch_) scratch_->emplace(graph_->table(width_));  // (table rows, width)
    transpose_ ? backward(x, y, **scratch_) : forward(x, y, **scratch_);
  }
  traffic predicted() const override {
    traffic all;
    for (std::size_t c = 0; c < graph_->chunks().count(); ++c)
      all += transpose_ ? graph_->predicted_transposed(c, width_) : graph_->predicted(c, width_);
    return all;
  }

 private:
  void forward(const matrix& x, matrix& y, matrix& table) {
    const std::size_t chunks = graph_->chunks().count();
    for (std::size_t c = 0; c < chunks; ++c) graph_->write(c, graph_->part(c, x), table);
    for (std::size_t c = 0; c < chunks; ++c) {
      matrix part = graph_->part(c, y);
      graph_->multiply(c, table, part);
    }
    if (copied_to_ != nullptr && *refreshes_) {
      copy(table, copied_to_->rows(*graph_, width_));
      copied_to_->keep();
    }
  }
  void backward(const matrix& dy, matrix& dx, matrix& sums) {
    const std::size_t chunks = graph_->chunks().count();
    fill(sums, T(0));
    for (std::size_t c = 0; c < chunks; ++c) graph_->multiply_transposed(c, graph_->part(c, dy), sums);
    for (std::size_t c = 0; c < chunks; ++c) {
      matrix part = graph_->part(c, dx);
      graph_->read_sums(c, sums, part);
    }
  }

  std::shared_ptr<chunk_graph<T, Device>> graph_;
  global_index width_;
  bool transpose_;
  std::shared_ptr<std::optional<matrix>> scratch_;
  std::shared_ptr<chunk_table<T, Device>> copied_to_;
  std::shared_ptr<const bool> refreshes_;
};

}  // namespace detail

/// The products of the layers of chunk c.
template <class T, class Device>
class chunk_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;

  chunk_products(std::shared_ptr<chunk_graph<T, Device>> g, std::size_t c,
                 std::shared_ptr<chunk_state<T, Device>> state, int window, T factor)
      : graph_(std::move(g)), chunk_(c), state_(std::move(state)), window_(window), factor_(factor) {}

  product of_matrix(const blocking& columns, bool of_input) override {
    if (tables_ == state_->tables.size())
      state_->tables.emplace_back(std::make_shared<chunk_table<T, Device>>(window_), of_input);
    return std::make_shared<detail::chunk_product<T, Device>>(graph_, chunk_, columns.size(),
                                                              state_->tables[tables_++].first);
  }
  product of_transpose(const blocking& columns) override {
    if (sums_ == state_->sums.size()) state_->sums.push_back(std::make_shared<chunk_sums<T, Device>>());
    return std::make_shared<detail::transposed_chunk_product<T, Device>>(graph_, chunk_, columns.size(),
                                                                         state_->sums[sums_++], factor_);
  }

 private:
  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::size_t chunk_;
  std::shared_ptr<chunk_state<T, Device>> state_;
  int window_;
  T factor_;
  std::size_t tables_ = 0, sums_ = 0;
};

/// The products of layers that run on all chunks at once, without history. While `refreshes`, what they
/// multiply becomes the history of the layers of `state`.
template <class T, class Device>
class whole_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;
  using matrix = dense<T, vertex_rows, Device>;

  whole_products(std::shared_ptr<chunk_graph<T, Device>> g, std::shared_ptr<chunk_state<T, Device>> state,
                 std::shared_ptr<const bool> refreshes)
      : graph_(std::move(g)), state_(std::move(state)), refreshes_(std::move(refreshes)) {}

  product of_matrix(const blocking& columns, bool) override {
    const std::size_t l = layers_++;
    return made(columns.size(), false, l < state_->tables.size() ? state_->tables[l].first : nullptr);
  }
  product of_transpose(const blocking& columns) override { return made(columns.size(), true, nullptr); }

 private:
  product made(global_index width, bool transpose, std::shared_ptr<chunk_table<T, Device>> copied_to) {
    auto& scratch = scratch_[width];
    if (!scratch) scratch = std::make_shared<std::optional<matrix>>();
    return std::make_shared<detail::whole_product<T, Device>>(graph_, width, transpose, scratch,
                                                              std::move(copied_to), refreshes_);
  }

  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::shared_ptr<chunk_state<T, Device>> state_;
  std::shared_ptr<const bool> refreshes_;
  std::map<global_index, std::shared_ptr<std::optional<matrix>>> scratch_;
  std::size_t layers_ = 0;
};

}  // namespace partita::nn
