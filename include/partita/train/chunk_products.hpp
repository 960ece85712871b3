// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The products of layers that run on chunks of vertices: neighbours in chunks that have not run yet are
/// historical.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/train/chunk_halo.hpp"

namespace partita::nn {

/// A row for each vertex in one layer. Of what it multiplies with A: of the chunks that have run in this
/// epoch, and of the others from an earlier one. Or sums of A_c^T dY_c over the chunks that have run backward
/// in this epoch, or scratch, with window 0. Memory is taken in the first use.
template <class T, class Device>
class chunk_table {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// `window`: as pipeline_options, or 0 for zeros instead of earlier rows. `of_input`: the layer multiplies
  /// the model's input.
  explicit chunk_table(int window, bool of_input = false) : window_(window), of_input_(of_input) {}

  bool of_input() const { return of_input_; }

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
  bool of_input_, fixed_ = false;
  std::optional<matrix> rows_, kept_;
};

/// The tables and sums of all layers of a stage, in order of construction.
template <class T, class Device>
struct chunk_state {
  std::deque<chunk_table<T, Device>> tables, sums;
};

/// A product in closures: what a call does, and what this rank receives in it.
template <class T, class Device>
class called_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;

  called_product(std::function<void(const matrix&, matrix&)> run, std::function<traffic()> received)
      : run_(std::move(run)), received_(std::move(received)) {}

  void operator()(const matrix& x, matrix& y) override { run_(x, y); }
  traffic predicted() const override { return received_(); }

 private:
  std::function<void(const matrix&, matrix&)> run_;
  std::function<traffic()> received_;
};

/// The products of the layers of chunk c, or of the extended chunk where there are `halos`. Of A: y = A_c X,
/// X the layer's table, in which x are the rows of the chunk; an extended chunk multiplies x itself, see
/// halo_graph, and only the chunk's rows are written into the table. Of A^T: the rows of chunk c of the sum
/// of A_d^T dY_d over the chunks d that have run backward, c the last, those before c times `factor`; of an
/// extended chunk those of the chunk, as rows of the halo are constants.
template <class T, class Device>
class chunk_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;
  using matrix = dense<T, vertex_rows, Device>;

  /// `halos`: or null.
  chunk_products(std::shared_ptr<chunk_graph<T, Device>> g, std::shared_ptr<halo_graph<T, Device>> halos,
                 std::size_t c, std::shared_ptr<chunk_state<T, Device>> state, int window, T factor)
      : graph_(std::move(g)),
        halos_(std::move(halos)),
        chunk_(c),
        state_(std::move(state)),
        window_(window),
        factor_(factor) {}

  product of_matrix(const blocking& columns, bool of_input) override {
    if (tables_ == state_->tables.size()) state_->tables.emplace_back(window_, of_input);
    const auto run = [g = graph_, halos = halos_, c = chunk_, state = state_, l = tables_++](const matrix& x,
                                                                                             matrix& y) {
      matrix& rows = state->tables[l].rows(*g, x.shape().cols);
      if (halos) {
        g->write(c, halos->own(c, x), rows);
        halos->multiply(c, x, rows, y);
      } else {
        g->write(c, x, rows);
        g->multiply(c, rows, y);
      }
    };
    return std::make_shared<called_product<T, Device>>(
        run, [g = graph_, halos = halos_, c = chunk_, width = columns.size()] {
          return halos ? g->predicted_write(c, width) + halos->predicted(c, width) : g->predicted(c, width);
        });
  }
  product of_transpose(const blocking& columns) override {
    if (sums_ == state_->sums.size()) state_->sums.emplace_back(0);
    const auto run = [g = graph_, c = chunk_, state = state_, l = sums_++, factor = factor_](const matrix& dy,
                                                                                             matrix& dx) {
      matrix& sums = state->sums[l].rows(*g, dy.shape().cols);
      if (factor != 1) g->scale(c, factor, sums);
      g->multiply_transposed(c, dy, sums);
      g->read_sums(c, sums, dx);
    };
    const auto of_extended = [run, halos = halos_, c = chunk_](const matrix& dy, matrix& dx) {
      matrix own = halos->own(c, dx), fringe = halos->fringe(c, dx);
      run(halos->own(c, dy), own);
      fill(fringe, T(0));
    };
    const auto received = [g = graph_, c = chunk_, width = columns.size()] {
      return g->predicted_transposed(c, width);
    };
    if (halos_) return std::make_shared<called_product<T, Device>>(of_extended, received);
    return std::make_shared<called_product<T, Device>>(run, received);
  }

 private:
  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::shared_ptr<halo_graph<T, Device>> halos_;
  std::size_t chunk_;
  std::shared_ptr<chunk_state<T, Device>> state_;
  int window_;
  T factor_;
  std::size_t tables_ = 0, sums_ = 0;
};

/// The products of layers that run on all vertices, chunk by chunk, without history. While `refreshes`, what
/// they multiply becomes the history of the layers of `state`.
template <class T, class Device>
class whole_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;
  using matrix = dense<T, vertex_rows, Device>;
  using table = chunk_table<T, Device>;

  whole_products(std::shared_ptr<chunk_graph<T, Device>> g, std::shared_ptr<chunk_state<T, Device>> state,
                 std::shared_ptr<const bool> refreshes)
      : graph_(std::move(g)), state_(std::move(state)), refreshes_(std::move(refreshes)) {}

  product of_matrix(const blocking& columns, bool) override {
    const auto run = [g = graph_, scratch = scratch_of(columns), state = state_, refreshes = refreshes_,
                      l = layers_++](const matrix& x, matrix& y) {
      const std::size_t chunks = g->chunks().count();
      matrix& rows = scratch->rows(*g, x.shape().cols);
      for (std::size_t c = 0; c < chunks; ++c) g->write(c, g->part(c, x), rows);
      for (std::size_t c = 0; c < chunks; ++c) {
        matrix part = g->part(c, y);
        g->multiply(c, rows, part);
      }
      if (!*refreshes || l >= state->tables.size()) return;
      copy(rows, state->tables[l].rows(*g, x.shape().cols));
      state->tables[l].keep();
    };
    return made(run, columns.size(), &chunk_graph<T, Device>::predicted);
  }
  product of_transpose(const blocking& columns) override {
    const auto run = [g = graph_, scratch = scratch_of(columns)](const matrix& dy, matrix& dx) {
      const std::size_t chunks = g->chunks().count();
      matrix& sums = scratch->rows(*g, dy.shape().cols);
      fill(sums, T(0));
      for (std::size_t c = 0; c < chunks; ++c) g->multiply_transposed(c, g->part(c, dy), sums);
      for (std::size_t c = 0; c < chunks; ++c) {
        matrix part = g->part(c, dx);
        g->read_sums(c, sums, part);
      }
    };
    return made(run, columns.size(), &chunk_graph<T, Device>::predicted_transposed);
  }

 private:
  std::shared_ptr<table> scratch_of(const blocking& columns) {
    auto& scratch = scratch_[columns.size()];
    if (!scratch) scratch = std::make_shared<table>(0);
    return scratch;
  }
  product made(std::function<void(const matrix&, matrix&)> run, global_index width,
               traffic (chunk_graph<T, Device>::*received)(std::size_t, global_index)) const {
    return std::make_shared<called_product<T, Device>>(std::move(run), [g = graph_, width, received] {
      traffic all;
      for (std::size_t c = 0; c < g->chunks().count(); ++c) all += ((*g).*received)(c, width);
      return all;
    });
  }

  std::shared_ptr<chunk_graph<T, Device>> graph_;
  std::shared_ptr<chunk_state<T, Device>> state_;
  std::shared_ptr<const bool> refreshes_;
  std::map<global_index, std::shared_ptr<table>> scratch_;
  std::size_t layers_ = 0;
};

}  // namespace partita::nn
