// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whole in-neighbourhoods of a few vertices, as the blocks of layers.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/numbering.hpp"
#include "partita/matrix/sparse.hpp"
#include "partita/partition/policies.hpp"

namespace partita::sampling {

/// What layers need of A for some vertices: H_(l + 1) = blocks[l] H_l for l = 0, ..., L - 1. Vertices are
/// numbered by their places in `vertices`; those that H_l is about are the first ones, as many as blocks[l]
/// has columns, and the roots come first, in the order given.
template <class T, class Device>
struct neighbourhood {
  std::vector<sparse<T, dynamic_layout, Device>> blocks;  ///< (L); blocks[0] is that of the first layer
  std::vector<global_index> vertices;  ///< (columns of blocks[0]): the rows of X that H_0 is made of
};

/// Memory that a thread uses for one neighbourhood after the other.
struct neighbourhood_memory {
  base::numbering<global_index> numbers;
  std::vector<std::size_t> begins;
  std::vector<local_index> columns;
};

/// The rows of A (n x n) in host memory, from which blocks are cut that have whole rows of A: their entries,
/// in the order and the form in which A stores them, so that a product with a block has the bits of these
/// rows of a product with A. They never change: several threads may read them at once.
template <class T>
class neighbourhoods {
 public:
  /// Copies A. Local. Throws shape_error unless A is square and whole on this rank.
  template <class Device>
  explicit neighbourhoods(const sparse<T, dynamic_layout, Device>& a)
      : form_(a.stored_for("neighbourhoods").local()->form),
        entries_(a.local()->entries(a.mesh().queue())),
        values_(a.local()->stored_in_host(a.mesh().queue())),
        vertices_(a.shape().rows) {
    if (a.mesh().size() != 1 || a.shape().rows != a.shape().cols)
      base::throw_error<shape_error>({"neighbourhoods are those of a square matrix on one rank, not of ",
                                      a.shape(), " on ", a.mesh().size()});
  }

  /// n.
  global_index vertices() const { return vertices_; }

  /// The entries of the blocks of a vertex, on average over all vertices: at most, since an entry counts
  /// once for each way to it.
  double mean_entries(std::size_t layers) const {
    const auto n = static_cast<std::size_t>(vertices_);
    std::vector<double> ways(n, 1), of_next(n);  // to the vertices of a layer, from all roots
    double entries = 0;
    for (std::size_t l = 0; l < layers; ++l) {
      std::ranges::fill(of_next, 0);
      for (std::size_t v = 0; v < n; ++v)
        for (std::size_t e = entries_.begin(0, v); e < entries_.end(0, v); ++e) {
          entries += ways[v];
          of_next[static_cast<std::size_t>(entries_.column(e))] += ways[v];
        }
      ways.swap(of_next);
    }
    return vertices_ == 0 ? 0 : entries / static_cast<double>(vertices_);
  }

  /// The neighbourhood of the roots for this number of layers, on a mesh of one rank. Local. Throws
  /// shape_error naming a root that is no vertex or is given twice.
  template <class Device>
  neighbourhood<T, Device> of(std::span<const global_index> roots, std::size_t layers,
                              const mesh<Device>& alone, neighbourhood_memory& memory) const {
    neighbourhood<T, Device> found;
    found.vertices.assign(roots.begin(), roots.end());
    memory.numbers.clear();
    for (const global_index v : roots) {
      if (v < 0 || v >= vertices_)
        base::throw_error<shape_error>(
            {"root ", v, " is not a vertex of a graph of ", vertices_, " vertices"});
      if (!memory.numbers(v).second)
        base::throw_error<shape_error>(
            {"root ", v, " is given twice; the roots of a neighbourhood are distinct"});
    }
    for (std::size_t l = 0; l < layers; ++l)
      found.blocks.insert(found.blocks.begin(), block_of(found.vertices, alone, memory));
    return found;
  }

 private:
  /// The rows of these vertices; those of the columns that are new are added to them.
  template <class Device>
  sparse<T, dynamic_layout, Device> block_of(std::vector<global_index>& vertices, const mesh<Device>& alone,
                                             neighbourhood_memory& memory) const {
    const std::size_t rows = vertices.size();
    memory.begins.clear();
    memory.columns.clear();
    for (std::size_t i = 0; i < rows; ++i) {
      memory.begins.push_back(memory.columns.size());
      const auto v = static_cast<std::size_t>(vertices[i]);
      for (std::size_t e = entries_.begin(0, v); e < entries_.end(0, v); ++e) {
        const auto [number, is_new] = memory.numbers(entries_.column(e));
        if (is_new) vertices.push_back(entries_.column(e));
        memory.columns.push_back(number);
      }
    }
    memory.begins.push_back(memory.columns.size());
    const std::vector<T> values = values_of(std::span(vertices).first(rows), vertices);
    const auto cut = [&](std::size_t size) {
      return blocking::even(static_cast<global_index>(size), alone.shape(), nesting::rows);
    };
    const blocking of_rows = cut(rows), of_columns = cut(vertices.size());
    auto tile = std::make_shared<local::csr_tiles<T, Device>>(
        local::make_tile<T>(alone.queue(), interval{0, of_rows.size()}, memory.begins,
                            std::span<const local_index>(memory.columns),
                            base::to_local(of_columns.size(), "the vertices of a neighbourhood"),
                            std::span<const T>(values), alone.tile_entries()));
    tile->form = form_;
    return {alone, row_1d.sparse, row_1d.dense, of_rows, of_columns, std::move(tile), nullptr};
  }
  /// What is stored for the values of a block with these rows and columns.
  std::vector<T> values_of(std::span<const global_index> rows, std::span<const global_index> columns) const {
    std::vector<T> values;
    const auto take = [&](std::span<const global_index> of, std::size_t first) {
      for (const global_index v : of) values.push_back(values_[first + static_cast<std::size_t>(v)]);
    };
    if (form_.factored) {
      if (form_.rows) take(rows, 0);
      if (form_.columns) take(columns, form_.rows ? static_cast<std::size_t>(vertices_) : 0);
      return values;
    }
    for (const global_index v : rows) {
      const auto i = static_cast<std::size_t>(v);
      if (!values_.empty())
        values.insert(values.end(), values_.begin() + static_cast<std::ptrdiff_t>(entries_.begin(0, i)),
                      values_.begin() + static_cast<std::ptrdiff_t>(entries_.end(0, i)));
    }
    return values;
  }

  local::value_form form_;
  local::entry_lists entries_;
  std::vector<T> values_;
  global_index vertices_;
};

}  // namespace partita::sampling
