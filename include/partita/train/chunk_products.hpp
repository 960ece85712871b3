// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The products of layers that run on chunks of vertices: neighbours in chunks that have not run yet are
/// historical.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/train/chunk_halo.hpp"

namespace partita::nn {

/// A row of numbers of N for each vertex in one layer. Of what it multiplies with A: of the chunks that have
/// run in this epoch, and of the others from an earlier one. Or sums of A_c^T dY_c over the chunks that have
/// run backward in this epoch, or scratch, with window 0. Memory is taken in the first use.
template <class N, class Device>
class chunk_table {
 public:
  using matrix = dense<N, vertex_rows, Device>;

  /// `window`: as pipeline_options, or 0 for zeros instead of earlier rows. `of_input`: the layer multiplies
  /// the model's input.
  explicit chunk_table(int window, bool of_input = false) : window_(window), of_input_(of_input) {}

  bool of_input() const { return of_input_; }

  /// `g`: a chunk_graph.
  template <class Graph>
  matrix& rows(const Graph& g, global_index width) {
    if (!rows_) {
      rows_.emplace(g.template table<N>(width));                   // (table rows, width)
      if (window_ > 1) kept_.emplace(g.template table<N>(width));  // (table rows, width)
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
    if (rows_ && window_ == 0) fill(*rows_, N(0));
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
template <class T, class Device, class S>
struct chunk_state {
  std::deque<chunk_table<S, Device>> tables;
  std::deque<chunk_table<T, Device>> sums;
};

/// A product in closures: what a call does with X, which is an operand or a matrix of T, and what this rank
/// receives in it.
template <class T, class Device, class X>
class called_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;
  using rounded = typename graph_product<T, Device>::operand::rounded;

  called_product(std::function<void(const X&, matrix&)> run, std::function<traffic()> received)
      : run_(std::move(run)), received_(std::move(received)) {}

  void operator()(const matrix& x, matrix& y) override { run_(x, y); }
  void of_stored(const rounded& x, matrix& y) override {
    if constexpr (std::is_convertible_v<const rounded&, X>)
      run_(x, y);
    else
      graph_product<T, Device>::of_stored(x, y);
  }
  traffic predicted() const override { return received_(); }

 private:
  std::function<void(const X&, matrix&)> run_;
  std::function<traffic()> received_;
};

/// The products of the layers of chunk c, or of the extended chunk where there are `halos`. Of A: y = A_c X,
/// X the layer's table, in which x are the rows of the chunk; an extended chunk multiplies x itself, see
/// halo_graph, and only the chunk's rows are written into the table. Of A^T: the rows of chunk c of the sum
/// of A_d^T dY_d over the chunks d that have run backward, c the last, those before c times `factor`; of an
/// extended chunk those of the chunk, as rows of the halo are constants.
template <class T, class Device, class S>
class chunk_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;
  using matrix = dense<T, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;

  /// `halos`: or null.
  chunk_products(std::shared_ptr<chunk_graph<T, Device, S>> g,
                 std::shared_ptr<halo_graph<T, Device, S>> halos, std::size_t c,
                 std::shared_ptr<chunk_state<T, Device, S>> state, int window, T factor)
      : graph_(std::move(g)),
        halos_(std::move(halos)),
        chunk_(c),
        state_(std::move(state)),
        window_(window),
        factor_(factor) {}

  product of_matrix(const blocking& columns, bool of_input) override {
    if (tables_ == state_->tables.size()) state_->tables.emplace_back(window_, of_input);
    const auto run = [g = graph_, halos = halos_, c = chunk_, state = state_, l = tables_++](const operand& x,
                                                                                             matrix& y) {
      auto& rows = state->tables[l].rows(*g, x.shape().cols);
      if (halos) return halos->multiply(c, x, rows, y);
      g->write(c, x, rows);
      g->multiply(c, rows, y);
    };
    return std::make_shared<called_product<T, Device, operand>>(
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
    if (halos_) return std::make_shared<called_product<T, Device, matrix>>(of_extended, received);
    return std::make_shared<called_product<T, Device, matrix>>(run, received);
  }

 private:
  std::shared_ptr<chunk_graph<T, Device, S>> graph_;
  std::shared_ptr<halo_graph<T, Device, S>> halos_;
  std::size_t chunk_;
  std::shared_ptr<chunk_state<T, Device, S>> state_;
  int window_;
  T factor_;
  std::size_t tables_ = 0, sums_ = 0;
};

/// The products of layers that run on all vertices, chunk by chunk, without history. While `refreshes`, what
/// they multiply becomes the history of the layers of `state`.
template <class T, class Device, class S>
class whole_products final : public graph_products<T, Device> {
 public:
  using typename graph_products<T, Device>::product;
  using matrix = dense<T, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;

  whole_products(std::shared_ptr<chunk_graph<T, Device, S>> g,
                 std::shared_ptr<chunk_state<T, Device, S>> state, std::shared_ptr<const bool> refreshes)
      : graph_(std::move(g)), state_(std::move(state)), refreshes_(std::move(refreshes)) {}

  product of_matrix(const blocking& columns, bool) override {
    const auto run = [g = graph_, scratch = scratch_of(tables_, columns), state = state_,
                      refreshes = refreshes_, l = layers_++](const operand& x, matrix& y) {
      const std::size_t chunks = g->chunks().count();
      auto& rows = scratch->rows(*g, x.shape().cols);
      x.visit_dense([&](const auto& all) {
        for (std::size_t c = 0; c < chunks; ++c) g->write(c, g->part(c, all), rows);
      });
      for (std::size_t c = 0; c < chunks; ++c) {
        matrix part = g->part(c, y);
        g->multiply(c, rows, part);
      }
      if (!*refreshes || l >= state->tables.size()) return;
      copy(rows, state->tables[l].rows(*g, x.shape().cols));
      state->tables[l].keep();
    };
    return made<operand>(run, columns.size(), &chunk_graph<T, Device, S>::predicted);
  }
  product of_transpose(const blocking& columns) override {
    const auto run = [g = graph_, scratch = scratch_of(sums(), columns)](const matrix& dy, matrix& dx) {
      const std::size_t chunks = g->chunks().count();
      matrix& sums = scratch->rows(*g, dy.shape().cols);
      fill(sums, T(0));
      for (std::size_t c = 0; c < chunks; ++c) g->multiply_transposed(c, g->part(c, dy), sums);
      for (std::size_t c = 0; c < chunks; ++c) {
        matrix part = g->part(c, dx);
        g->read_sums(c, sums, part);
      }
    };
    return made<matrix>(run, columns.size(), &chunk_graph<T, Device, S>::predicted_transposed);
  }

 private:
  template <class N>
  using scratch_tables = std::map<global_index, std::shared_ptr<chunk_table<N, Device>>>;

  template <class N>
  static std::shared_ptr<chunk_table<N, Device>> scratch_of(scratch_tables<N>& all, const blocking& columns) {
    auto& scratch = all[columns.size()];
    if (!scratch) scratch = std::make_shared<chunk_table<N, Device>>(0);
    return scratch;
  }
  scratch_tables<T>& sums() {
    if constexpr (std::is_same_v<S, T>)
      return tables_;
    else
      return sums_;
  }
  template <class X>
  product made(std::function<void(const X&, matrix&)> run, global_index width,
               traffic (chunk_graph<T, Device, S>::*received)(std::size_t, global_index)) const {
    return std::make_shared<called_product<T, Device, X>>(std::move(run), [g = graph_, width, received] {
      traffic all;
      for (std::size_t c = 0; c < g->chunks().count(); ++c) all += ((*g).*received)(c, width);
      return all;
    });
  }

  std::shared_ptr<chunk_graph<T, Device, S>> graph_;
  std::shared_ptr<chunk_state<T, Device, S>> state_;
  std::shared_ptr<const bool> refreshes_;
  scratch_tables<S> tables_;
  scratch_tables<T> sums_;  ///< where S is not T
  std::size_t layers_ = 0;
};

/// The products of a stage, for its chunks and for all vertices, with the tables that they share, in which
/// numbers have the type of operands. Collective over the mesh of the stage: constructors and calls of
/// products.
template <class T, class Device>
class stage_products {
 public:
  using for_layers = std::shared_ptr<graph_products<T, Device>>;
  using input_of_chunk = std::function<const algebra::operand<T, Device>&(std::size_t)>;

  stage_products() = default;
  stage_products(const stage_products&) = delete;
  virtual ~stage_products() = default;

  /// See chunk_products and whole_products.
  virtual for_layers of_chunk(std::size_t c, int window, T factor) = 0;
  virtual for_layers of_whole(std::shared_ptr<const bool> refreshes) = 0;
  /// Chunk c with its halo; null where halos are not refreshed.
  virtual const chunk_halo* halo(std::size_t c) const = 0;
  /// Before the first chunk of an epoch, and after the last one.
  virtual void begin_epoch() = 0;
  virtual void end_epoch(std::uint64_t e) = 0;
  /// Where layers multiply the input of the model with A before any parameter, their tables have, from now on
  /// and for good, the rows of the chunks' inputs.
  virtual void keep_input(std::size_t chunks, const input_of_chunk& input) = 0;
  /// Bytes of neighbours that are kept for chunks, here.
  virtual global_index history_bytes() const = 0;
};

/// The same with operands and tables of S.
template <class T, class Device, class S>
class stored_stage_products final : public stage_products<T, Device> {
 public:
  using typename stage_products<T, Device>::for_layers;
  using typename stage_products<T, Device>::input_of_chunk;

  stored_stage_products(const mesh<Device>& m, std::shared_ptr<const chunked_vertices> chunks,
                        const sampling::graph<T>& a, const policy& p, bool halos)
      : graph_(std::make_shared<chunk_graph<T, Device, S>>(m, std::move(chunks), a, p)) {
    if (halos) halos_ = std::make_shared<halo_graph<T, Device, S>>(graph_, a, p);
  }

  for_layers of_chunk(std::size_t c, int window, T factor) override {
    return std::make_shared<chunk_products<T, Device, S>>(graph_, halos_, c, state_, window, factor);
  }
  for_layers of_whole(std::shared_ptr<const bool> refreshes) override {
    return std::make_shared<whole_products<T, Device, S>>(graph_, state_, std::move(refreshes));
  }
  const chunk_halo* halo(std::size_t c) const override { return halos_ ? &halos_->halo(c) : nullptr; }
  void begin_epoch() override {
    for (auto& table : state_->tables) table.begin_epoch();
    for (auto& sums : state_->sums) sums.begin_epoch();
  }
  void end_epoch(std::uint64_t e) override {
    for (auto& table : state_->tables) table.end_epoch(e);
  }
  void keep_input(std::size_t chunks, const input_of_chunk& input) override {
    for (auto& table : state_->tables) {
      if (!table.of_input()) continue;
      for (std::size_t c = 0; c < chunks; ++c) write(c, input(c), table);
      table.keep_always();
    }
  }
  global_index history_bytes() const override {
    global_index bytes = 0;
    for (const auto& table : state_->tables) bytes += table.bytes();
    return bytes;
  }

 private:
  void write(std::size_t c, const algebra::operand<T, Device>& x, chunk_table<S, Device>& table) {
    algebra::dense_operand<T, Device> written_out;
    const algebra::operand<T, Device> dense = x.stored() != nullptr ? x : written_out(x);
    auto& rows = table.rows(*graph_, x.shape().cols);
    dense.visit_dense([&](const auto& all) {
      if (halos_)
        graph_->write(c, halos_->own(c, all), rows);
      else
        graph_->write(c, all, rows);
    });
  }

  std::shared_ptr<chunk_graph<T, Device, S>> graph_;
  std::shared_ptr<halo_graph<T, Device, S>> halos_;  ///< where these are refreshed
  std::shared_ptr<chunk_state<T, Device, S>> state_ = std::make_shared<chunk_state<T, Device, S>>();
};

/// Products whose operands have this precision. Throws error for operands that cannot be rounded.
template <class T, class Device, class... From>
std::unique_ptr<stage_products<T, Device>> make_stage_products(operand_precision operands,
                                                               const From&... from) {
  if (operands == operand_precision::unrounded)
    return std::make_unique<stored_stage_products<T, Device, T>>(from...);
  if constexpr (algebra::multiplies_bfloat16<T, Device>)
    return std::make_unique<stored_stage_products<T, Device, base::bfloat16>>(from...);
  base::throw_error<error>({"products with operands of bfloat16 are for float"});
}

}  // namespace partita::nn
