// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Gathering rows of a vertex_rows matrix from their owners, and scatter-adding them back.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "partita/local/chunked.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita::transfer {

/// The communication plan of a row exchange over all ranks: which rows to receive, and which to send. The
/// index lists are exchanged once, by the constructor.
///
/// A table holds the owned rows, followed by the needed rows in ascending order. Collective over the mesh:
/// constructor and members. What travels in gather and in scatter_add: each needed row, once.
template <class T, class Device>
class halo {
 public:
  /// needed: global rows owned by other ranks, ascending, without duplicates.
  halo(const mesh<Device>& m, const blocking& rows, const std::vector<global_index>& needed)
      : mesh_(m), own_(rows.block(vertex_rows.rows, m.at())), needed_(needed) {
    lists_.received.assign(static_cast<std::size_t>(m.size()), 0);
    for (global_index v : needed) ++lists_.received[rows.owner(vertex_rows.rows, v)];
    lists_.exchange(m.world(), needed, -own_.begin);
    transfer::upload(m.queue(), std::vector<local_index>(lists_.rows.begin(), lists_.rows.end()), send_);
    senders_ = senders_of_rows();
    ones_ = buffer<T, Device>(m.queue(), send_.size());
    const auto count = static_cast<local_index>(send_.size());
    fill(m.queue(), T(1), matrix_view<T>{ones_.data(), 1, count, count});
  }

  /// Rows of a table.
  global_index table_rows() const { return own_.size() + static_cast<global_index>(needed_.size()); }
  /// The position of global row v, owned or needed, in a table.
  local_index row_of(global_index v) const {
    if (own_.contains(v)) return static_cast<local_index>(v - own_.begin);
    return static_cast<local_index>(own_.size() +
                                    (std::lower_bound(needed_.begin(), needed_.end(), v) - needed_.begin()));
  }

  /// table = the owned rows of x (own x f), then the needed rows (needed x f).
  void gather(matrix_view<const T> x, matrix_view<T> table) {
    set_width(x.cols);
    const auto mine = static_cast<local_index>(own_.size());
    local::chunked::copy(mesh_.queue(), x, table.block(0, 0, mine, x.cols));
    local::pack_rows(mesh_.queue(), x, std::span<const local_index>(send_.span()), packed_.data());
    mesh_.along(partition::every_axis)
        .all_to_all(packed_.span(), sent_, std::span<T>(table.row_data(mine), comm::total_of(received_)),
                    received_);
  }

  /// x = the owned rows of the table, plus the other ranks' table rows for the same vertices, in rank order.
  void scatter_add(matrix_view<const T> table, matrix_view<T> x) {
    set_width(x.cols);
    const auto mine = static_cast<local_index>(own_.size());
    local::chunked::copy(mesh_.queue(), table.block(0, 0, mine, x.cols), x);
    mesh_.along(partition::every_axis)
        .all_to_all(std::span<const T>(table.row_data(mine), comm::total_of(received_)), received_,
                    packed_.span(), sent_);
    local::csr_view<T> senders = senders_.template transposed<T>();
    senders.values = ones_.data();
    const matrix_view<const T> packed{packed_.data(), static_cast<local_index>(send_.size()), x.cols, x.cols};
    local::chunked::spmm(mesh_.queue(), passes_, 0, senders, packed, T(1), x);
  }

  /// What this rank receives in one gather of f columns, and in one scatter_add.
  traffic predicted_gather(global_index f) const { return transfer::received_rows(lists_.received, f); }
  traffic predicted_scatter(global_index f) const { return transfer::received_rows(lists_.sent, f); }

 private:
  /// Transpose of the 0/1 matrix that selects the rows to send; multiplying it with the received rows sums
  /// them per owned row.
  local::csr_inverse<Device> senders_of_rows() const {
    std::vector<local_index> one_a_row(send_.size() + 1);
    std::iota(one_a_row.begin(), one_a_row.end(), local_index{0});
    buffer<local_index, Device> offsets(mesh_.queue(), one_a_row.size());
    copy(mesh_.queue(), std::span<const local_index>(one_a_row), offsets.span());
    const auto count = static_cast<local_index>(send_.size());
    return inverse_of(mesh_.queue(), local::csr_view<T>{count, static_cast<local_index>(own_.size()),
                                                        offsets.data(), send_.data(), nullptr, count});
  }
  void set_width(local_index f) {
    if (f == width_) return;
    width_ = f;
    received_ = transfer::elements_of(lists_.received, f);
    sent_ = transfer::elements_of(lists_.sent, f);
    packed_.reset(mesh_.queue(), comm::total_of(sent_));
  }

  mesh<Device> mesh_;
  interval own_;
  std::vector<global_index> needed_;
  transfer::row_lists<global_index> lists_;
  std::vector<global_index> received_, sent_;  ///< elements
  buffer<local_index, Device> send_;
  local::csr_inverse<Device> senders_;
  buffer<T, Device> ones_;  ///< values of senders_
  buffer<T, Device> packed_;
  local::entry_passes<Device> passes_;
  local_index width_ = -1;
};

}  // namespace partita::transfer
