// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph that samplers read: rows of A in host memory.

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/matrix/sparse.hpp"

namespace partita::sampling {

/// Row v of A, the in-edges of vertex v: entries [begin, begin + count) of those that a graph stores.
struct graph_row {
  std::size_t begin = 0;
  local_index count = 0;
  local_index diagonal = -1;  ///< the place of (v, v) among them, or -1
};

/// The operator A (n x n) whose entry (v, u) is the value of edge u -> v, in whole rows: global columns,
/// ascending in each row. A *replicated* graph has all rows on every rank: A in a layout that cuts no rows,
/// as feature_column's. A *cut* one has the rows row_range() on this rank: A in row_1d. Value handle: copies
/// share the arrays, which never change, so that several threads may read one graph.
///
/// Of R relations: A is R n x n, with row v R + r of vertex v and relation r, and neighbours are drawn from
/// each of a vertex's rows.
template <class T>
class graph {
 public:
  using value_type = T;

  /// The entries of A, copied. Collective over the mesh; nothing travels, but the first use of a layout's
  /// axes splits the world. Throws shape_error when A is not square, or so many squares above each other, has
  /// more vertices than a local index can count, or is in a layout that cuts columns on this mesh.
  template <class Device>
  explicit graph(const sparse<T, dynamic_layout, Device>& a) : graph(a, std::span<const T>(), 0) {}
  /// The same with a vector of `width` numbers for each entry that this rank stores, in the order in which it
  /// stores them (nonzeros x width, row-major). Throws shape_error for another number of them.
  template <class Device>
  graph(const sparse<T, dynamic_layout, Device>& a, std::span<const T> vectors, local_index width)
      : state_(read(a, vectors, width)) {}
  /// As above, with the weights in proportion to which neighbours are drawn: the entries of `weights`, which
  /// has A's pattern and layout. Throws shape_error naming the first row that differs, and error naming a
  /// weight that is not positive.
  template <class Device>
  graph(const sparse<T, dynamic_layout, Device>& a, const sparse<T, dynamic_layout, Device>& weights)
      : state_(read(a, {}, 0)) {
    const std::shared_ptr<state> other = read(weights, {}, 0);
    require_pattern(*other);
    state_->weights = std::move(other->values);
  }

  /// The same entries, each of value 1.
  graph of_ones() const {
    graph made(*this);
    made.state_ = std::make_shared<state>(*state_);
    std::ranges::fill(made.state_->values, T(1));
    return made;
  }

  /// n, and R.
  global_index vertices() const { return state_->vertices; }
  local_index relations() const { return state_->relations; }
  /// The vertices whose rows this rank has.
  interval row_range() const { return state_->rows; }
  bool is_replicated() const { return !state_->ranks; }
  bool is_weighted() const { return !state_->weights.empty() || state_->columns.empty(); }

  /// Row r of vertex v, one of row_range().
  graph_row row(global_index v, local_index r = 0) const {
    const start* const at = state_->starts.data() + ((v - state_->rows.begin) * relations() + r);
    return {at->begin, static_cast<local_index>(at[1].begin - at->begin), at->diagonal};
  }
  /// Announces that the rows of v will be read.
  void prefetch(global_index v) const {
    __builtin_prefetch(state_->starts.data() + (v - state_->rows.begin) * relations());
  }
  /// Of all stored entries, row by row. (nonzeros)
  const std::vector<local_index>& columns() const { return state_->columns; }
  const std::vector<T>& values() const { return state_->values; }
  const std::vector<T>& weights() const { return state_->weights; }  ///< empty unless is_weighted()
  local_index width() const { return state_->width; }                ///< of the vectors of entries
  const std::vector<T>& vectors() const { return state_->vectors; }  ///< (nonzeros x width)

  /// The ranks among which the rows are cut, and the one of them that has row v. Not of a replicated graph.
  const communicator& ranks() const { return *state_->ranks; }
  std::size_t owner(global_index v) const { return state_->cuts.owner(state_->axes, v * relations()); }

 private:
  struct start {
    std::size_t begin;
    local_index diagonal;
  };
  struct state {
    blocking cuts;
    axis_set axes;
    global_index vertices;
    local_index relations;
    interval rows;
    std::vector<start> starts;  ///< (rows R + 1)
    std::vector<local_index> columns;
    std::vector<T> values, weights;
    local_index width;
    std::vector<T> vectors;
    std::optional<communicator> ranks;
  };

  template <class Device>
  static std::shared_ptr<state> read(const sparse<T, dynamic_layout, Device>& a, std::span<const T> vectors,
                                     local_index width) {
    const auto& m = a.stored_for("sampling").mesh();
    const layout l = a.layout();
    const auto [all_rows, n] = a.shape();
    const global_index relations = n == 0 ? 1 : all_rows / n;
    const interval here = a.row_range();
    if (relations < 1 || all_rows != relations * n || here.begin % relations != 0 ||
        here.end % relations != 0)
      base::throw_error<shape_error>(
          {"sampling: A is square, or squares above each other with the rows of a vertex on one rank, not ",
           a.shape()});
    if (m.shape().size(l.cols) > 1)
      base::throw_error<shape_error>(
          {"sampling: the rows of A must be whole on each rank; the layout is ", l, " on mesh ", m.shape()});
    base::to_local(n, "the number of vertices");
    auto made = std::make_shared<state>(state{a.row_blocking(),
                                              l.rows,
                                              n,
                                              base::to_local(relations, "the number of relations"),
                                              {here.begin / relations, here.end / relations},
                                              {},
                                              {},
                                              {},
                                              {},
                                              width,
                                              {},
                                              {}});
    if (m.shape().size(l.rows) > 1) made->ranks = m.control(l.rows);

    const auto& block = *a.local();
    const local::entry_lists entries = block.entries(m.queue());
    const std::vector<T> values = block.values_of_entries(m.queue());
    const auto k = static_cast<std::size_t>(width);
    if (vectors.size() != values.size() * k)
      base::throw_error<shape_error>({"sampling: vectors of ", width, " numbers of ", values.size(),
                                      " entries cannot be made of ", vectors.size(), " values"});
    made->starts.reserve(static_cast<std::size_t>(block.rows) + 1);
    made->columns.reserve(values.size());
    made->values.reserve(values.size());
    made->vectors.reserve(vectors.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.rows); ++i) {
      start& row = made->starts.emplace_back(start{made->columns.size(), -1});
      for (std::size_t t = 0; t < block.count(); ++t) {
        const auto first = static_cast<local_index>(a.tile_columns(t).begin);
        for (std::size_t e = entries.begin(t, i); e < entries.end(t, i); ++e) {
          if (first + entries.column(e) == (here.begin + static_cast<global_index>(i)) / relations)
            row.diagonal = static_cast<local_index>(made->columns.size() - row.begin);
          made->columns.push_back(first + entries.column(e));
          made->values.push_back(values[e]);
          made->vectors.insert(made->vectors.end(), vectors.data() + e * k, vectors.data() + (e + 1) * k);
        }
      }
    }
    made->starts.push_back({made->columns.size(), -1});
    return made;
  }

  void require_pattern(const state& other) const {
    if (other.vertices != state_->vertices || !(other.rows == state_->rows))
      base::throw_error<shape_error>({"sampling: the weights have rows ", other.rows.begin, " to ",
                                      other.rows.end, " of ", other.vertices, " on this rank, A has ",
                                      state_->rows.begin, " to ", state_->rows.end, " of ",
                                      state_->vertices});
    for (std::size_t i = 0; i + 1 < state_->starts.size(); ++i) {
      const std::size_t begin = state_->starts[i].begin, end = state_->starts[i + 1].begin;
      const global_index v = state_->rows.begin * relations() + static_cast<global_index>(i);
      if (end != other.starts[i + 1].begin)
        base::throw_error<shape_error>(
            {"sampling: row ", v, " of the weights has not A's number of entries"});
      for (std::size_t e = begin; e < end; ++e) {
        if (other.columns[e] != state_->columns[e])
          base::throw_error<shape_error>({"sampling: row ", v, " of the weights has column ",
                                          other.columns[e], " where A has ", state_->columns[e]});
        if (!(other.values[e] > 0))
          base::throw_error<error>(
              {"sampling: the weight of entry (", v, ", ", other.columns[e], ") is not positive"});
      }
    }
  }

  std::shared_ptr<state> state_;
};

}  // namespace partita::sampling
