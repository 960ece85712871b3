#pragma once
/// The in-edges of this rank's own vertices, whole rows, whatever the policy cuts.

#include <algorithm>
#include <vector>

#include "partita/algebra/spmm.hpp"
#include "partita/transfer/halo.hpp"

namespace partita {

/// The rows of A's pattern that the policy gives this rank, columns whole, as host arrays with global
/// columns.
///
/// Every rank of the mesh must construct it. What travels: where A's columns are cut, the entries of the
/// other ranks that share these rows, once.
template <class T, class Place>
class complete_rows {
 public:
  explicit complete_rows(const sparse<T, dynamic_layout, Place>& a)
      : mesh_(a.mesh()),
        vertices_(a.row_blocking()),
        range_(a.row_blocking().block(a.layout().rows, mesh_.at())),
        global_cols_(narrow(a.col_blocking().size(), "the number of vertices")) {
    std::vector<global_index> counts;
    list_entries(a, counts);
    if (const communicator& others = mesh_.control(a.layout().cols); others.size() > 1)
      gather(others, counts);
    offsets_.push_back(0);
    for (const global_index n : counts) offsets_.push_back(offsets_.back() + static_cast<std::size_t>(n));
  }

  /// The rows that the policy gives this rank, with global columns.
  interval range() const { return range_; }
  tiles<T, Place> all() const { return make(range_, offsets_, columns_, global_cols_); }

  /// This rank's own vertices, with global columns.
  interval own() const { return vertices_.block(vertex_rows.rows, mesh_.at()); }
  tiles<T, Place> own_rows() const {
    const auto [offsets, columns] = own_structure();
    return make(own(), offsets, columns, global_cols_);
  }
  /// The same as host arrays: offsets from 0 and global columns, ascending in each row.
  std::pair<std::vector<std::size_t>, std::vector<local_index>> own_structure() const {
    const auto begin = static_cast<std::size_t>(own().begin - range_.begin),
               end = static_cast<std::size_t>(own().end - range_.begin);
    std::vector<std::size_t> offsets(offsets_.begin() + static_cast<std::ptrdiff_t>(begin),
                                     offsets_.begin() + static_cast<std::ptrdiff_t>(end) + 1);
    const std::size_t first = offsets.front();
    std::vector<local_index> columns(columns_.begin() + static_cast<std::ptrdiff_t>(first),
                                     columns_.begin() + static_cast<std::ptrdiff_t>(offsets.back()));
    for (std::size_t& o : offsets) o -= first;
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
  tiles<T, Place> own_rows(const halo<T, Place>& h) const {
    auto [offsets, columns] = own_structure();
    for (local_index& c : columns) c = h.position(c);
    return make(own(), offsets, columns, narrow(h.table_rows(), "the rows of a halo"));
  }

 private:
  /// This rank's entries, row by row, with ascending global columns, and how many there are in each row.
  void list_entries(const sparse<T, dynamic_layout, Place>& a, std::vector<global_index>& counts) {
    const auto& block = *a.local();
    std::vector<local_index> structure(block.structure.size());
    copy(mesh_.queue(), block.structure.span(), std::span<local_index>(structure));
    const std::vector<std::size_t> begins = entry_begins(block, structure.data());
    const std::size_t stride = static_cast<std::size_t>(block.rows) + 1;
    for (std::size_t i = 0; i + 1 < stride; ++i) {
      const auto before = static_cast<std::ptrdiff_t>(columns_.size());
      coordinates at = mesh_.at();
      for (std::size_t t = 0; t < block.count(); ++t) {
        at.row = static_cast<int>(t);
        const auto first = static_cast<local_index>(a.col_blocking().block(column_cut(a.layout()), at).begin);
        for (std::size_t e = begins[t * stride + i]; e < begins[t * stride + i + 1]; ++e)
          columns_.push_back(first + structure[block.offsets_size() + e]);
      }
      counts.push_back(static_cast<global_index>(columns_.size()) - before);
    }
  }
  /// The same of all ranks that share the rows.
  void gather(const communicator& others, std::vector<global_index>& counts) {
    const auto ranks = static_cast<std::size_t>(others.size()), rows = counts.size();
    const std::vector<global_index> each(ranks, static_cast<global_index>(rows));
    std::vector<global_index> all_counts(ranks * rows), lengths(ranks, 0);
    others.all_gather(counts, each, all_counts);
    for (std::size_t q = 0; q < ranks; ++q)
      for (std::size_t i = 0; i < rows; ++i) lengths[q] += all_counts[q * rows + i];
    std::vector<local_index> all(static_cast<std::size_t>(offset_of(lengths, others.size())));
    others.all_gather(columns_, lengths, all);
    std::vector<std::size_t> next;
    for (int q = 0; q < others.size(); ++q) next.push_back(static_cast<std::size_t>(offset_of(lengths, q)));
    columns_.clear();
    for (std::size_t i = 0; i < rows; ++i) {
      const auto before = static_cast<std::ptrdiff_t>(columns_.size());
      for (std::size_t q = 0; q < ranks; ++q)
        for (global_index n = all_counts[q * rows + i]; n > 0; --n) columns_.push_back(all[next[q]++]);
      std::sort(columns_.begin() + before, columns_.end());
      counts[i] = static_cast<global_index>(columns_.size()) - before;
    }
  }
  /// One tile without values.
  tiles<T, Place> make(interval rows, const std::vector<std::size_t>& offsets,
                       const std::vector<local_index>& columns, local_index cols) const {
    tiles<T, Place> pattern;
    pattern.rows = narrow(rows.size(), "the number of rows of a pattern");
    pattern.widths = {cols};
    std::vector<local_index> structure = count_offsets(pattern, offsets, mesh_.tile_entries(), rows.begin);
    structure.insert(structure.end(), columns.begin(), columns.end());
    pattern.structure = buffer<local_index, Place>(mesh_.queue(), structure.size());
    copy(mesh_.queue(), std::span<const local_index>(structure), pattern.structure.span());
    return pattern;
  }

  mesh<Place> mesh_;
  blocking vertices_;
  interval range_;
  local_index global_cols_;
  std::vector<std::size_t> offsets_;
  std::vector<local_index> columns_;
};

}  // namespace partita
