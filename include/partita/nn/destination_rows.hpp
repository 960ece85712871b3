#pragma once
/// The in-edges of this rank's own vertices, whole rows, whatever the policy cuts.

#include <vector>

#include "partita/nn/graph_operator.hpp"
#include "partita/transfer/halo.hpp"

namespace partita {

/// A pattern in place: offsets from 0 and columns.
template <class T, class Place>
struct pattern {
  local_index rows = 0;
  local_index cols = 0;
  buffer<local_index, Place> offsets, columns;

  csr_view<T> view() const { return {rows, cols, offsets.data(), columns.data(), nullptr}; }
  std::size_t nonzeros() const { return columns.size(); }
};

/// The rows of `complete` (a graph operator whose sparse layout cuts no columns) as host arrays with global
/// columns.
template <class T, class Place>
class complete_rows {
 public:
  explicit complete_rows(const graph_operator<T, Place>& complete)
      : mesh_(complete.mesh()),
        vertices_(complete.row_blocking()),
        range_(complete.row_blocking().block(complete.sparse_cut().rows, mesh_.at())),
        global_cols_(narrow(complete.col_blocking().size(), "the number of vertices")) {
    const auto& block = *complete.local();
    std::vector<local_index> structure(block.structure.size());
    copy(mesh_.queue(), block.structure.span(), std::span<local_index>(structure));
    const std::size_t stride = static_cast<std::size_t>(block.rows) + 1;
    offsets_.push_back(0);
    for (std::size_t i = 0; i + 1 < stride; ++i) {
      coordinates at = mesh_.at();
      for (std::size_t t = 0; t < block.count(); ++t) {
        at.row = static_cast<int>(t);
        const auto first = static_cast<local_index>(
            complete.col_blocking().block(column_cut(complete.sparse_cut()), at).begin);
        for (auto e = structure[t * stride + i]; e < structure[t * stride + i + 1]; ++e)
          columns_.push_back(first + structure[block.offsets_size() + static_cast<std::size_t>(e)]);
      }
      offsets_.push_back(static_cast<local_index>(columns_.size()));
    }
  }

  /// The rows that the policy gives this rank, with global columns.
  interval range() const { return range_; }
  pattern<T, Place> all() const { return make(offsets_, columns_, global_cols_); }

  /// This rank's own vertices, with global columns.
  interval own() const { return vertices_.block(vertex_rows::value.rows, mesh_.at()); }
  pattern<T, Place> own_rows() const {
    const auto [offsets, columns] = own_structure();
    return make(offsets, columns, global_cols_);
  }
  /// The same as host arrays: offsets from 0 and global columns, ascending in each row.
  std::pair<std::vector<local_index>, std::vector<local_index>> own_structure() const {
    const auto begin = static_cast<std::size_t>(own().begin - range_.begin),
               end = static_cast<std::size_t>(own().end - range_.begin);
    std::vector<local_index> offsets(offsets_.begin() + static_cast<std::ptrdiff_t>(begin),
                                     offsets_.begin() + static_cast<std::ptrdiff_t>(end) + 1);
    const local_index first = offsets.front();
    std::vector<local_index> columns(columns_.begin() + first, columns_.begin() + offsets.back());
    for (local_index& o : offsets) o -= first;
    return {std::move(offsets), std::move(columns)};
  }
  /// The vertices of other ranks that have an edge to one of mine, ascending.
  std::vector<global_index> needed() const {
    std::vector<global_index> others;
    for (local_index c : own_structure().second)
      if (!own().contains(c)) others.push_back(c);
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
  }
  /// The exchange of their rows.
  halo<T, Place> make_halo() const { return {mesh_, vertices_, needed()}; }
  /// The own rows with columns that count rows of a table of `h`.
  pattern<T, Place> own_rows(const halo<T, Place>& h) const {
    auto [offsets, columns] = own_structure();
    for (local_index& c : columns) c = h.position(c);
    return make(offsets, columns, narrow(h.table_rows(), "the rows of a halo"));
  }

 private:
  pattern<T, Place> make(const std::vector<local_index>& offsets, const std::vector<local_index>& columns,
                         local_index cols) const {
    pattern<T, Place> p;
    p.rows = static_cast<local_index>(offsets.size()) - 1;
    p.cols = cols;
    p.offsets = buffer<local_index, Place>(mesh_.queue(), offsets.size());
    p.columns = buffer<local_index, Place>(mesh_.queue(), columns.size());
    copy(mesh_.queue(), std::span<const local_index>(offsets), p.offsets.span());
    copy(mesh_.queue(), std::span<const local_index>(columns), p.columns.span());
    return p;
  }

  mesh<Place> mesh_;
  blocking vertices_;
  interval range_;
  local_index global_cols_;
  std::vector<local_index> offsets_, columns_;
};

}  // namespace partita
