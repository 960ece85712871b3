// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of rows on their way to the owners of the rows: the adjoint of gathering them.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "partita/local/chunked_products.hpp"
#include "partita/local/move.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/transfer/row_requests.hpp"

namespace partita::transfer {

/// X(ids(i), :) += G(i, :) for the lists of ids of row_requests, and for all ranks. G is summed per distinct
/// row on the rank that has it and sent to the row's owner, who adds the ranks' sums in rank order. Where X
/// is replicated, the copies then exchange their sums and add them in the order of their coordinates, so that
/// they stay equal. Results are bit-reproducible.
///
/// Collective over the mesh: scatter, touched, take and predicted. What travels: see predicted, for scatter
/// and take; also, for the first of all these after forget, along the axes of `copies`: the number and the
/// indices of the rows for which each copy has sums. Memory is kept from one set of ids to the next.
template <class T, class Device>
class row_sums {
 public:
  /// `group`: the axes of row_owners. `copies`: those with several ranks along which X is replicated.
  row_sums(const mesh<Device>& m, axis_set group, axis_set copies)
      : mesh_(m), group_(group), copies_(copies) {
    const auto ranks = static_cast<std::size_t>(m.shape().size(copies));
    ones_per_copy_.assign(ranks, 1);
    summed_rows_.assign(ranks, 0);
    summed_.assign(ranks, 0);
  }

  /// To be called when the ids have changed; sums that were not scattered are lost.
  void forget() { listed_ = begun_ = exchanged_ = numbered_ = false; }

  /// The sums for the rows of list c += g (size of the list x wanted columns). Local.
  void add(const row_requests& ids, std::size_t c, matrix_view<const T> g) {
    begin(ids);
    const row_owners& owners = ids.owners();
    for (int r = 0; r < owners.size(); ++r) {
      if (!owners.owns(r)) continue;
      const matrix_view<T> sums = sums_for(ids, r);
      const std::size_t first = c * (ids.rows().size() + 1) + ids.first(owners.band(r));
      const local_index entries =
          offsets_here_[first + static_cast<std::size_t>(sums.rows)] - offsets_here_[first];
      if (entries == 0) continue;
      const auto col = static_cast<local_index>(owners.block(r).cols.begin - owners.wanted().begin);
      const local::csr_view<T> selection{sums.rows,         g.rows,       offsets_.data() + first,
                                         positions_.data(), ones_.data(), entries};
      spmm(mesh_.queue(), selection, g.block(0, col, g.rows, sums.cols), T(1), sums);
    }
  }

  /// This rank's block x of X += the sums of all ranks, which are 0 afterwards.
  void scatter(const row_requests& ids, matrix_view<T> x) {
    send(ids);
    if (copies_.empty()) return add_by_rank(ids, targets_, x);
    sum_copies(ids, x.cols);
    add_copies(all_rows_, x);
  }
  /// The rows of this rank's block that any rank has asked for, as indices within the block, each once.
  const std::vector<global_index>& touched(const row_requests& ids) {
    if (!numbered_) number_rows(ids);
    return touched_.ids();
  }
  /// y = the sums of all ranks for these rows (touched x columns of the block); they are 0 afterwards.
  void take(const row_requests& ids, matrix_view<T> y) {
    if (!numbered_) number_rows(ids);
    send(ids);
    fill(mesh_.queue(), T(0), y);
    if (copies_.empty()) return add_by_rank(ids, places_, y);
    sum_copies(ids, y.cols);
    add_copies(places_, y);
  }

  /// What this rank receives in one scatter or take: from each rank that needs rows of this one, their sums;
  /// and from each copy of this rank's block, the sums of the rows that any rank of its group needs of that
  /// copy.
  traffic predicted(const row_requests& ids) {
    traffic v = received_rows(ids.sent());
    if (copies_.empty()) return v;
    begin(ids);
    exchange_rows(ids);
    const int me = partition::rank_in_group(mesh_.shape(), copies_, mesh_.at());
    for (std::size_t d = 0; d < summed_.size(); ++d)
      if (static_cast<int>(d) != me && summed_[d] > 0) v += {summed_[d], 1};
    return v;
  }

 private:
  /// The sums for the rows of rank r: those of other ranks in rank order, then those of this one.
  matrix_view<T> sums_for(const row_requests& ids, int r) {
    const row_owners& owners = ids.owners();
    const auto rows = static_cast<local_index>(ids.rows_of(owners.band(r)).size()),
               cols = static_cast<local_index>(owners.block(r).cols.size());
    return {sums_.data() + comm::offset_of(ids.received(), r == owners.me() ? owners.size() : r), rows, cols,
            cols};
  }
  void begin(const row_requests& ids) {
    const row_owners& owners = ids.owners();
    if (!listed_) {
      list_positions(ids);
      list_targets(ids);
      sums_.grow(mesh_.queue(),
                 comm::total_of(ids.received()) +
                     ids.own_rows().size() * static_cast<std::size_t>(owners.block(owners.me()).cols.size()));
      listed_ = true;
    }
    for (int r = 0; r < owners.size() && !begun_; ++r)
      if (owners.owns(r)) fill(mesh_.queue(), T(0), sums_for(ids, r));
    begun_ = true;
  }
  /// For each list, which of its ids are which distinct row: a CSR pattern (distinct rows x ids), by a
  /// counting sort.
  void list_positions(const row_requests& ids) {
    const std::size_t rows = ids.rows().size();
    offsets_here_.assign(ids.lists() * (rows + 1), 0);
    positions_here_.resize(ids.numbers().size());
    for (std::size_t c = 0; c < ids.lists(); ++c) {
      const auto first = static_cast<local_index>(ids.begin(c));
      const std::span<local_index> offsets(offsets_here_.data() + c * (rows + 1), rows + 1);
      const auto numbers = ids.numbers().subspan(ids.begin(c), static_cast<std::size_t>(ids.size(c)));
      for (const local_index u : numbers) ++offsets[static_cast<std::size_t>(u) + 1];
      offsets[0] = first;
      std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
      for (std::size_t i = 0; i < numbers.size(); ++i)
        positions_here_[static_cast<std::size_t>(offsets[static_cast<std::size_t>(numbers[i])]++)] =
            static_cast<local_index>(i);
      for (std::size_t u = rows; u > 0; --u) offsets[u] = offsets[u - 1];
      offsets[0] = first;
    }
    upload(mesh_.queue(), offsets_here_, offsets_);
    upload(mesh_.queue(), positions_here_, positions_);
    if (ones_.size() >= positions_here_.size()) return;
    ones_.grow(mesh_.queue(), positions_here_.size());
    const auto count = static_cast<local_index>(ones_.size());
    fill(mesh_.queue(), T(1), matrix_view<T>{ones_.data(), 1, count, count});
  }
  /// The rows to which the sums of each rank are added, in rank order: rows of this rank's block, or where
  /// there are copies positions in rows_here_.
  void list_targets(const row_requests& ids) {
    const row_lists<>& others = ids.exchanged();
    counts_ = others.sent;
    counts_[static_cast<std::size_t>(ids.owners().me())] = static_cast<global_index>(ids.own_rows().size());
    const auto before = static_cast<std::ptrdiff_t>(comm::offset_of(others.sent, ids.owners().me()));
    targets_here_.assign(others.rows.begin(), others.rows.begin() + before);
    targets_here_.insert(targets_here_.end(), ids.own_rows().begin(), ids.own_rows().end());
    targets_here_.insert(targets_here_.end(), others.rows.begin() + before, others.rows.end());
    if (!copies_.empty()) {
      distinct_.clear();
      for (local_index& row : targets_here_) row = distinct_.number_of(row);
      rows_here_.assign(distinct_.ids().begin(), distinct_.ids().end());
    }
    upload(mesh_.queue(), targets_here_, targets_);
  }
  /// The rows for which each copy has sums.
  void exchange_rows(const row_requests& ids) {
    if (exchanged_) return;
    const communicator& copies = mesh_.control(copies_);
    const auto mine = static_cast<global_index>(rows_here_.size());
    copies.all_gather(std::span<const global_index>(&mine, 1), ones_per_copy_, summed_rows_);
    all_rows_here_.resize(comm::total_of(summed_rows_));
    copies.all_gather(rows_here_, summed_rows_, all_rows_here_);
    upload(mesh_.queue(), all_rows_here_, all_rows_);
    const global_index width = ids.owners().block(ids.owners().me()).cols.size();
    for (std::size_t d = 0; d < summed_.size(); ++d) summed_[d] = summed_rows_[d] * width;
    exchanged_ = true;
  }
  /// For each sum that is added to this rank's block, which of the touched rows it is for.
  void number_rows(const row_requests& ids) {
    begin(ids);
    if (!copies_.empty()) exchange_rows(ids);
    places_here_ = copies_.empty() ? targets_here_ : all_rows_here_;
    touched_.clear();
    for (local_index& row : places_here_) row = touched_.number_of(row);
    upload(mesh_.queue(), places_here_, places_);
    numbered_ = true;
  }
  /// Sends the sums for rows of other ranks; they are 0 afterwards.
  void send(const row_requests& ids) {
    begin(ids);
    arrived_.grow(mesh_.queue(), comm::total_of(ids.sent()));
    mesh_.along(group_).all_to_all(std::span<const T>(sums_.data(), comm::total_of(ids.received())),
                                   ids.received(), arrived_.span(), ids.sent());
    begun_ = false;
  }
  /// Gathers the sums of all copies, one copy after the other, of the rows in all_rows_.
  void sum_copies(const row_requests& ids, local_index cols) {
    const auto& q = mesh_.queue();
    exchange_rows(ids);
    own_sums_.grow(q, rows_here_.size() * static_cast<std::size_t>(cols));
    const matrix_view<T> own{own_sums_.data(), static_cast<local_index>(rows_here_.size()), cols, cols};
    fill(q, T(0), own);
    add_by_rank(ids, targets_, own);
    all_sums_.grow(q, comm::total_of(summed_));
    mesh_.along(copies_).all_gather(std::as_const(own_sums_).span(), summed_, all_sums_.span());
  }
  /// Rows `targets` of `to` += the sums that have arrived and those of this rank, in rank order.
  void add_by_rank(const row_requests& ids, const buffer<local_index, Device>& targets, matrix_view<T> to) {
    const row_owners& owners = ids.owners();
    const T* from = arrived_.data();
    std::size_t first = 0;
    for (int r = 0; r < owners.size(); ++r) {
      const auto count = static_cast<std::size_t>(counts_[static_cast<std::size_t>(r)]);
      const bool mine = r == owners.me();
      if (count > 0)
        scatter_add_distinct_rows(mesh_.queue(), mine ? sums_for(ids, r).data : from,
                                  targets.span().subspan(first, count), to);
      from += ids.sent()[static_cast<std::size_t>(r)];
      first += count;
    }
  }
  /// Rows `targets` of `to` += the sums of each copy, one copy after the other; a copy has no row twice.
  void add_copies(const buffer<local_index, Device>& targets, matrix_view<T> to) {
    const T* from = all_sums_.data();
    std::span<const local_index> rows = targets.span();
    for (const global_index n : summed_rows_) {
      const auto count = static_cast<std::size_t>(n);
      scatter_add_distinct_rows(mesh_.queue(), from, rows.first(count), to);
      from += n * to.cols;
      rows = rows.subspan(count);
    }
  }

  mesh<Device> mesh_;
  axis_set group_, copies_;
  bool listed_ = false, begun_ = false, exchanged_ = false, numbered_ = false;
  id_numbers distinct_, touched_;
  std::vector<local_index> offsets_here_, positions_here_, targets_here_, rows_here_, all_rows_here_,
      places_here_;
  std::vector<global_index> counts_, ones_per_copy_, summed_rows_, summed_;
  buffer<local_index, Device> offsets_, positions_, targets_, all_rows_, places_;
  buffer<T, Device> ones_, sums_, arrived_, own_sums_, all_sums_;
};

}  // namespace partita::transfer
