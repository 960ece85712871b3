// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse matrices built on a device from entries in device memory.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "partita/local/coo_arrays.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::transfer::detail {

/// Sends entries of device memory to the ranks that hold them, as entry_routing does those of host memory,
/// and makes the tiles of this rank.
template <class T, class Device>
class device_routing {
 public:
  device_routing(const mesh<Device>& m, layout l, const blocking& rows, const blocking& cols)
      : mesh_(m),
        q_(m.queue()),
        rows_(rows.block(l.rows, m.at())),
        widths_(partition::tile_columns(l, cols, m.at())) {
    const entry_holders holders(m.shape(), l, rows, cols);
    const partition::block_finder row_blocks(rows, l.rows), col_blocks(cols, partition::column_cut(l));
    tiles_ = static_cast<std::int64_t>(holders.tiles());
    copies_ = m.shape().size(partition::every_axis - l.used());
    std::vector<global_index> row_ends, col_ends, tiles;
    for (std::size_t r = 0; r < row_blocks.count(); ++r) row_ends.push_back(row_blocks.block(r).end);
    for (std::size_t k = 0; k < col_blocks.count(); ++k) col_ends.push_back(col_blocks.block(k).end);
    for (std::size_t r = 0; r < row_blocks.count(); ++r)
      for (std::size_t k = 0; k < col_blocks.count(); ++k) {
        const interval i = row_blocks.block(r), j = col_blocks.block(k);
        if (!i.empty() && !j.empty())
          holders.for_tiles(i.begin, j.begin, [&](std::size_t tile, global_index) {
            tiles.push_back(static_cast<global_index>(tile));
          });
        tiles.resize((r * col_blocks.count() + k + 1) * static_cast<std::size_t>(copies_), 0);
      }
    row_ends_ = copied(row_ends);
    col_ends_ = copied(col_ends);
    holders_ = copied(tiles);
    find_keys();
  }

  /// In slices of so many entries of each rank. Collective.
  void send(const local::coo_arrays<T>& entries, global_index slice) {
    const auto count = std::ssize(entries.rows);
    global_index slices[] = {(count + slice - 1) / slice};
    mesh_.world().all_reduce(slices, reduction::max);
    for (global_index s = 0; s < slices[0]; ++s) {
      const auto sent = static_cast<std::size_t>(std::min(count, s * slice)),
                 size = static_cast<std::size_t>(std::min(count, (s + 1) * slice)) - sent;
      send_slice({entries.rows.subspan(sent, size), entries.cols.subspan(sent, size),
                  entries.values.subspan(sent, size)});
    }
  }

  /// The tiles of what has come.
  shared_tiles<T, Device> take() {
    std::size_t size = 0, at = 0;
    for (const arrival& a : arrived_) size += a.keys.size();
    buffer<std::uint64_t, Device> keys(q_, size);
    buffer<T, Device> values(q_, size);
    for (const arrival& a : std::exchange(arrived_, {})) {
      copy(q_, a.keys.span(), keys.span().subspan(at, a.keys.size()));
      copy(q_, a.values.span(), values.span().subspan(at, a.values.size()));
      at += a.keys.size();
    }
    auto placed = sum_by_places(q_, keys_, tiles_, keys, values);
    auto tiles = std::make_shared<local::csr_tiles<T, Device>>();
    tiles->rows = base::to_local(rows_.size(), "the number of rows of a sparse block");
    for (const interval c : widths_)
      tiles->widths.push_back(base::to_local(c.size(), "the number of columns of a sparse tile"));
    const std::vector<local_index> offsets = local::count_offsets(
        *tiles, {placed.begins.begin(), placed.begins.end()}, mesh_.tile_entries(), rows_.begin);
    tiles->structure = buffer<local_index, Device>(q_, tiles->structure_size());
    copy(q_, std::span<const local_index>(offsets), tiles->structure.span().first(offsets.size()));
    copy(q_, std::as_const(placed.columns).span(), tiles->structure.span().subspan(offsets.size()));
    tiles->values = std::move(placed.values);
    return tiles;
  }

 private:
  /// What has come of one slice.
  struct arrival {
    buffer<std::uint64_t, Device> keys;
    buffer<T, Device> values;
  };

  buffer<global_index, Device> copied(const std::vector<global_index>& list) const {
    buffer<global_index, Device> there(q_, list.size());
    copy(q_, std::span<const global_index>(list), there.span());
    return there;
  }

  void find_keys() {
    global_index width = 2;
    for (const interval c : widths_) width = std::max(width, c.size());
    keys_ = {rows_.size(), static_cast<int>(std::bit_width(static_cast<std::uint64_t>(width - 1)))};
    if (keys_.bits(tiles_) > 63)
      base::throw_error<shape_error>({"a row of ", tiles_, " tiles of ", rows_.size(), " x ", width,
                                      " has more places than 63 bits can count"});
  }

  void send_slice(const local::coo_arrays<T>& slice) {
    const std::size_t copies = static_cast<std::size_t>(copies_) * slice.rows.size();
    buffer<global_index, Device> places(q_, copies);
    buffer<T, Device> values(q_, copies);
    const std::vector<global_index> begins = pack_by_tiles(
        q_,
        local::held_entries{slice.rows.data(), slice.cols.data(), ends(row_ends_), ends(col_ends_),
                            holders_.data(), copies_},
        std::ssize(slice.rows), mesh_.size() * tiles_, slice.values.data(), places.data(), values.data());
    std::vector<global_index> to_tiles;
    for (std::size_t t = 0; t + 1 < begins.size(); ++t) to_tiles.push_back(begins[t + 1] - begins[t]);
    exchange(to_tiles, places, values);
  }

  static local::block_ends ends(const buffer<global_index, Device>& list) {
    return {list.data(), static_cast<std::int64_t>(list.size())};
  }

  void exchange(const std::vector<global_index>& to_tiles, const buffer<global_index, Device>& places,
                const buffer<T, Device>& values) {
    const std::vector<global_index> from_ranks = mesh_.world().all_to_all(to_tiles);
    std::vector<global_index> send(static_cast<std::size_t>(mesh_.size()), 0), recv(send), part_ends;
    global_index count = 0;
    for (std::size_t k = 0; k < to_tiles.size(); ++k) {
      send[k / static_cast<std::size_t>(tiles_)] += to_tiles[k];
      recv[k / static_cast<std::size_t>(tiles_)] += from_ranks[k];
      part_ends.push_back(count += from_ranks[k]);
    }
    const auto size = static_cast<std::size_t>(count);
    buffer<global_index, Device> come(q_, size);
    arrival& a =
        arrived_.emplace_back(arrival{buffer<std::uint64_t, Device>(q_, size), buffer<T, Device>(q_, size)});
    const communicator& all = mesh_.along(partition::every_axis);
    all.all_to_all(places.span(), send, come.span(), recv);
    all.all_to_all(values.span(), send, a.values.span(), recv);
    key_places(q_, keys_, come, part_ends, tiles_, a.keys.data());
  }

  const mesh<Device>& mesh_;
  const device_queue<Device>& q_;
  interval rows_;
  std::vector<interval> widths_;  ///< the columns of this rank's tiles
  std::int64_t tiles_ = 1, copies_ = 1;
  buffer<global_index, Device> row_ends_, col_ends_, holders_;
  local::place_keys keys_{};
  std::vector<arrival> arrived_;
};

/// Throws as distribute does for invalid entries.
template <class T, class Device>
void require_entries(const device_queue<Device>& q, matrix_shape shape, const local::coo_arrays<T>& entries) {
  if (entries.cols.size() != entries.rows.size() || entries.values.size() != entries.rows.size())
    base::throw_error<shape_error>({"entries of a sparse matrix have ", entries.rows.size(), " rows, ",
                                    entries.cols.size(), " columns and ", entries.values.size(), " values"});
  if (const auto wrong = first_wrong(q, shape, entries))
    transfer::require_entries(shape, std::span(&*wrong, 1));
}

/// This rank's tiles, from slices of so many entries.
template <class T, class Device>
shared_tiles<T, Device> tiles_of_arrays(const mesh<Device>& m, layout l, const blocking& rows,
                                        const blocking& cols, const local::coo_arrays<T>& entries,
                                        global_index slice = routing_options{}.slice) {
  return base::with_memory_for("a sparse matrix", {rows.size(), cols.size()}, [&] {
    device_routing<T, Device> routing(m, l, rows, cols);
    routing.send(entries, slice);
    return routing.take();
  });
}

}  // namespace partita::transfer::detail

namespace partita {

/// A (rows.size() x cols.size()) in the layout of a policy from entries in device memory, any of them on any
/// rank; duplicates are summed in the order in which distribute sums those of a vector: both make the same
/// blocks, bit for bit. The arrays are not needed any longer on return. Entries do not pass through host
/// memory, but through the host pass what the ranks count and where rows begin.
///
/// Collective over the mesh. What travels: for each slice of a rank's entries, the number of entries for each
/// tile, and each entry, as one index and its value, to all ranks that hold it; and again for A^T unless A is
/// symmetric, which is not checked, or one_way. Needs partita/local/cuda/coo_entries.hpp. Throws as
/// distribute of a vector does, with sharing::overlapping, and shape_error for arrays of different lengths,
/// and where a rank's tiles have more than 2^63 places.
template <class T, class Device>
sparse<T, dynamic_layout, Device> distribute(const mesh<Device>& m, const policy& p, const blocking& rows,
                                             const blocking& cols, const local::coo_arrays<T>& entries,
                                             symmetry kind = symmetry::general,
                                             std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  require_mesh(p, m.shape(), m.size());
  const matrix_shape shape{rows.size(), cols.size()};
  if (kind == symmetry::symmetric && !(rows == cols))
    base::throw_error<shape_error>({"a matrix of ", shape, " was declared symmetric but is not"});
  partition::require_sparse(m.shape(), p.sparse, rows, cols);
  transfer::detail::require_entries(m.queue(), shape, entries);
  const auto forward = transfer::detail::tiles_of_arrays(m, p.sparse, rows, cols, entries);
  const auto backward = kind == symmetry::general
                            ? transfer::detail::tiles_of_arrays(m, p.sparse, cols, rows, entries.transposed())
                        : kind == symmetry::symmetric ? forward
                                                      : nullptr;
  return {m, p.sparse, p.dense, rows, cols, forward, backward};
}
/// As above, with even blocks.
template <class T, class Device>
sparse<T, dynamic_layout, Device> distribute(const mesh<Device>& m, const policy& p, matrix_shape shape,
                                             const local::coo_arrays<T>& entries,
                                             symmetry kind = symmetry::general,
                                             std::source_location where = std::source_location::current()) {
  return distribute(m, p, blocking::even(shape.rows, m.shape(), nesting::rows),
                    blocking::even(shape.cols, m.shape(), nesting::rows), entries, kind, where);
}

}  // namespace partita
