#pragma once
/// Values of edges, from the tiles of the policy to the ranks that own their targets.

#include "partita/algebra/edge_schedule.hpp"
#include "partita/nn/destination_rows.hpp"

namespace partita {

/// own(e, h) = the sum of the ranks' parts of value h of edge e, for the in-edges of own vertices in the
/// order of complete_rows::own_rows (entries x heads), from the values on tiles, of the heads that the rank
/// has columns of (entries x those).
///
/// The tiles of the ranks that share a row of A have different edges of it; where the columns of dot products
/// are cut too, several ranks have parts of one value. Every rank of the mesh must construct and run it. What
/// travels: each part once, to the owner of the target, and of heads without columns on a rank nothing.
template <class T, class Place>
class edge_transfer {
 public:
  /// `features` are the columns of the dot products, cut by `slices`, heads side by side.
  edge_transfer(const graph_operator<T, Place>& a, const complete_rows<T, Place>& rows,
                const blocking& features, local_index heads, axis_set slices)
      : mesh_(a.mesh()), group_(a.sparse_cut().cols | slices), heads_(heads), entries_(count(a)) {
    find_sources(a, rows, features, slices);
    list_entries(a);
    const auto size = [](const std::vector<global_index>& counts) {
      return static_cast<std::size_t>(offset_of(counts, static_cast<int>(counts.size())));
    };
    if (sources_.size() == 1) return;
    outgoing_ = buffer<T, Place>(mesh_.queue(), size(give_counts_));
    incoming_ = buffer<T, Place>(mesh_.queue(), size(take_counts_));
  }

  /// own from the values of this rank's tiles.
  void operator()(const T* values, T* own) {
    const auto& q = mesh_.queue();
    const auto mine = static_cast<local_index>(sources_[static_cast<std::size_t>(me())].heads.size());
    const matrix_view<const T> tiles{values, entries_, mine, mine};
    const std::span<const local_index> give = std::as_const(give_).span();
    if (sources_.size() == 1) return kernels<Place>::gather_rows(q, tiles, give, own);
    kernels<Place>::gather_rows(q, tiles, give, outgoing_.data());
    mesh_.along(group_).all_to_all(std::span<const T>(outgoing_.span()),
                                   std::span<const global_index>(give_counts_), incoming_.span(),
                                   std::span<const global_index>(take_counts_));
    const matrix_view<T> sums{own, own_entries_, heads_, heads_};
    kernels<Place>::fill(q, T(0), sums);
    const T* from = incoming_.data();
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const interval heads = sources_[s].heads;
      const auto to = sums.block(0, static_cast<local_index>(heads.begin), own_entries_,
                                 static_cast<local_index>(heads.size()));
      kernels<Place>::scatter_add_rows(q, from, std::as_const(positions_[sources_[s].list]).span(), to);
      from += take_counts_[s];
    }
  }

  /// What this rank receives in one run, in closed form.
  volume predicted() const {
    volume v;
    for (std::size_t s = 0; s < sources_.size(); ++s)
      if (static_cast<int>(s) != me() && take_counts_[s] > 0) v += {take_counts_[s], 1};
    return v;
  }

 private:
  /// A rank of the group: the heads that it has columns of, and which of my edges.
  struct source {
    interval heads;
    std::size_t list;
  };

  static local_index count(const graph_operator<T, Place>& a) {
    return narrow(static_cast<global_index>(a.local()->nonzeros), "the number of nonzeros of a block");
  }
  int me() const { return position(mesh_.shape(), group_, mesh_.at()); }
  coordinates at(int q) const { return member(mesh_.shape(), group_, mesh_.at(), q); }
  buffer<local_index, Place> upload(const std::vector<local_index>& values) const {
    buffer<local_index, Place> b(mesh_.queue(), values.size());
    copy(mesh_.queue(), std::span<const local_index>(values), b.span());
    return b;
  }

  /// The in-edges of own vertices by the tiles they lie in.
  void find_sources(const graph_operator<T, Place>& a, const complete_rows<T, Place>& rows,
                    const blocking& features, axis_set slices) {
    const mesh_shape shape = mesh_.shape();
    const cut sparse = a.sparse_cut();
    const std::vector<local_index> columns = rows.own_structure().second;
    own_entries_ =
        narrow(static_cast<global_index>(columns.size()), "the number of in-edges of own vertices");
    std::vector<std::vector<local_index>> lists(static_cast<std::size_t>(shape.size(sparse.cols)));
    for (local_index e = 0; e < own_entries_; ++e) {
      const auto owner = a.col_blocking().owner(column_cut(sparse), columns[static_cast<std::size_t>(e)]);
      const coordinates tile = member(shape, column_cut(sparse), {}, static_cast<int>(owner));
      lists[static_cast<std::size_t>(position(shape, sparse.cols, tile))].push_back(e);
    }
    for (int q = 0; q < shape.size(group_); ++q) {
      const interval heads = detail::heads_of(features.block(slices, at(q)), features.size() / heads_);
      sources_.push_back({heads, static_cast<std::size_t>(position(shape, sparse.cols, at(q)))});
      take_counts_.push_back(static_cast<global_index>(lists[sources_.back().list].size()) * heads.size());
    }
    for (const auto& list : lists) positions_.push_back(upload(list));
  }

  /// The entries of my tiles by the owners of their targets; of one target those of the first tile first.
  void list_entries(const graph_operator<T, Place>& a) {
    const auto& block = *a.local();
    std::vector<local_index> structure(block.structure.size()), entries;
    copy(mesh_.queue(), block.structure.span(), std::span<local_index>(structure));
    const std::vector<std::size_t> begins = entry_begins(block, structure.data());
    const std::size_t stride = static_cast<std::size_t>(block.rows) + 1;
    const global_index first = a.row_blocking().block(a.sparse_cut().rows, mesh_.at()).begin;
    for (int q = 0; q < mesh_.shape().size(group_); ++q) {
      const std::size_t before = entries.size();
      const interval targets = a.row_blocking().block(vertex_rows::value.rows, at(q));
      for (global_index v = targets.begin - first; v < targets.end - first; ++v)
        for (std::size_t t = 0; t < block.count(); ++t) {
          const std::size_t* const row = begins.data() + t * stride + v;
          for (std::size_t e = row[0]; e < row[1]; ++e) entries.push_back(static_cast<local_index>(e));
        }
      give_counts_.push_back(static_cast<global_index>(entries.size() - before) *
                             sources_[static_cast<std::size_t>(me())].heads.size());
    }
    give_ = upload(entries);
  }

  mesh<Place> mesh_;
  axis_set group_;
  local_index heads_, entries_;  ///< of my tiles
  local_index own_entries_ = 0;
  std::vector<source> sources_;
  std::vector<global_index> give_counts_, take_counts_;
  std::vector<buffer<local_index, Place>> positions_;  ///< among my in-edges, for each tile of my row of A
  buffer<local_index, Place> give_;
  buffer<T, Place> outgoing_, incoming_;
};

}  // namespace partita
