// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which rows of a matrix a rank needs by lists of ids, who owns them, and which of its own rows others need.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "partita/base/numbering.hpp"
#include "partita/partition/block_layout.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita::transfer {

/// Numbers distinct ids 0, 1, ... in the order in which they first appear, and lists them.
class id_numbers {
 public:
  void clear() {
    numbers_.clear();
    ids_.clear();
  }
  local_index number_of(global_index id) {
    const auto [number, is_new] = numbers_(id);
    if (is_new) ids_.push_back(id);
    return number;
  }
  /// Appends the numbers of a list of ids.
  void append_numbers(std::span<const global_index> ids, std::vector<local_index>& numbers) {
    constexpr std::size_t ahead = 16;  // the places of a large table are in no cache
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i + ahead < ids.size()) numbers_.prefetch(ids[i + ahead]);
      numbers.push_back(number_of(ids[i]));
    }
  }
  const std::vector<global_index>& ids() const { return ids_; }

 private:
  base::numbering<global_index> numbers_;
  std::vector<global_index> ids_;
};

/// The ranks of a group, which together own all rows of a matrix and the columns that are wanted. A band is a
/// nonempty block of rows, a slice a nonempty block of these columns; each pair has one owner.
class row_owners {
 public:
  row_owners(mesh_shape m, axis_set group, coordinates at, const partition::block_layout& x, interval wanted)
      : me_(partition::rank_in_group(m, group, at)), wanted_(wanted) {
    for (int q = 0; q < m.size(group); ++q) {
      const partition::rectangle all = x.block(partition::group_member(m, group, at, q));
      blocks_.push_back({all.rows, intersection(all.cols, wanted)});
    }
    for (const partition::rectangle& b : blocks_) {
      if (!b.rows.empty()) bands_.push_back(b.rows);
      if (!b.cols.empty()) slices_.push_back(b.cols);
    }
    for (auto* pieces : {&bands_, &slices_}) {
      std::sort(pieces->begin(), pieces->end(), [](interval a, interval b) { return a.begin < b.begin; });
      pieces->erase(std::unique(pieces->begin(), pieces->end()), pieces->end());
    }
    owners_.resize(bands_.size() * slices_.size());
    for (int q = 0; q < size(); ++q)
      if (owns(q)) owners_[band(q) * slices_.size() + index_in(slices_, block(q).cols.begin)] = q;
  }

  int size() const { return static_cast<int>(blocks_.size()); }
  int me() const { return me_; }
  /// The wanted columns, of which rank q owns those of its block.
  interval wanted() const { return wanted_; }
  const partition::rectangle& block(int q) const { return blocks_[static_cast<std::size_t>(q)]; }
  bool owns(int q) const { return block(q).size() > 0; }
  std::span<const interval> bands() const { return bands_; }
  std::span<const interval> slices() const { return slices_; }
  std::size_t band_of(global_index row) const { return index_in(bands_, row); }
  /// The band of a rank that owns something.
  std::size_t band(int q) const { return band_of(block(q).rows.begin); }
  int owner(std::size_t band, std::size_t slice) const { return owners_[band * slices_.size() + slice]; }

 private:
  /// The piece that contains i.
  static std::size_t index_in(const std::vector<interval>& pieces, global_index i) {
    const auto next = std::upper_bound(pieces.begin(), pieces.end(), i,
                                       [](global_index j, interval piece) { return j < piece.begin; });
    return static_cast<std::size_t>(next - pieces.begin() - 1);
  }

  int me_;
  interval wanted_;
  std::vector<partition::rectangle> blocks_;
  std::vector<interval> bands_, slices_;
  std::vector<int> owners_;  ///< by band, then slice
};

/// The rows that this rank needs by several lists of ids, each distinct row once and ordered by bands, and
/// the rows that others need of it. All memory is kept from one assign to the next.
class row_requests {
 public:
  /// `rows`: of the matrix.
  row_requests(row_owners owners, global_index rows) : owners_(std::move(owners)), all_rows_(rows) {
    const auto size = static_cast<std::size_t>(owners_.size());
    for (auto* counts : {&exchanged_.received, &exchanged_.sent, &received_, &sent_}) counts->assign(size, 0);
    firsts_.assign(owners_.bands().size() + 1, 0);
  }

  /// Replaces the lists. Collective over `group`, the ranks of row_owners over host memory. What travels: the
  /// number of rows asked of each rank, and their indices within its block. Throws shape_error, before
  /// anything is sent, for an id that is no row.
  void assign(std::span<const std::vector<global_index>> lists, const communicator& group) {
    require_rows(lists);
    number(lists);
    exchange(group);
  }

  const row_owners& owners() const { return owners_; }
  std::size_t lists() const { return begins_.size() - 1; }
  /// Position of the first id of list c among the ids of all lists; c may be lists().
  std::size_t begin(std::size_t c) const { return begins_[c]; }
  local_index size(std::size_t c) const { return static_cast<local_index>(begins_[c + 1] - begins_[c]); }
  /// For each id of all lists, the number of its distinct row.
  std::span<const local_index> numbers() const { return numbers_; }
  /// Distinct rows, as indices within their bands, and the number of the first one of a band; the band may be
  /// the number of bands.
  std::span<const local_index> rows() const { return rows_; }
  std::size_t first(std::size_t band) const { return firsts_[band]; }
  std::span<const local_index> rows_of(std::size_t band) const {
    return rows().subspan(firsts_[band], firsts_[band + 1] - firsts_[band]);
  }
  /// This rank's rows that itself needs, and the lists of those that it and other ranks need of each other.
  std::span<const local_index> own_rows() const {
    return owners_.owns(owners_.me()) ? rows_of(owners_.band(owners_.me())) : std::span<const local_index>();
  }
  const row_lists<>& exchanged() const { return exchanged_; }
  /// Elements that travel from each rank to this one, and from this one to each rank.
  const std::vector<global_index>& received() const { return received_; }
  const std::vector<global_index>& sent() const { return sent_; }

  /// Distinct rows of which another rank owns a part.
  global_index remote_rows() const {
    global_index count = 0;
    for (std::size_t b = 0; b < owners_.bands().size(); ++b) {
      bool remote = false;
      for (std::size_t s = 0; s < owners_.slices().size(); ++s)
        remote = remote || owners_.owner(b, s) != owners_.me();
      if (remote) count += static_cast<global_index>(rows_of(b).size());
    }
    return count;
  }
  /// What the last assign received.
  traffic predicted_assign() const {
    return traffic{owners_.size() - 1, owners_.size() - 1} + received_rows(exchanged_.sent);
  }

  /// Appends, for each id of all lists, where slice s of its row begins: in the elements received from all
  /// ranks in rank order, or, as -1 - start, in this rank's block, where own_rows()[i] is row places[i], or
  /// itself if there are none.
  void append_starts(std::size_t s, std::vector<global_index>& starts,
                     std::span<const local_index> places = {}) {
    starts_of_rows_.resize(rows_.size());
    for (std::size_t b = 0; b < owners_.bands().size(); ++b) {
      const int q = owners_.owner(b, s);
      const bool mine = q == owners_.me();
      const global_index width = owners_.slices()[s].size();
      const global_index base = comm::offset_of(received_, q);
      for (std::size_t u = firsts_[b]; u < firsts_[b + 1]; ++u)
        starts_of_rows_[u] = !mine            ? base + static_cast<global_index>(u - firsts_[b]) * width
                             : places.empty() ? -1 - rows_[u] * width
                                              : -1 - places[u - firsts_[b]] * width;
    }
    for (const local_index u : numbers_) starts.push_back(starts_of_rows_[static_cast<std::size_t>(u)]);
  }

 private:
  void require_rows(std::span<const std::vector<global_index>> lists) const {
    global_index all = 0;
    for (std::size_t c = 0; c < lists.size(); ++c) {
      for (const global_index id : lists[c])
        if (id < 0 || id >= all_rows_)
          base::throw_error<shape_error>(
              {"list ", c, " asks for row ", id, " of a matrix of ", all_rows_, " rows"});
      all += static_cast<global_index>(lists[c].size());
    }
    base::to_local(all, "the number of rows asked for");
  }
  void number(std::span<const std::vector<global_index>> lists) {
    begins_.assign(1, 0);
    for (const auto& list : lists) begins_.push_back(begins_.back() + list.size());
    distinct_.clear();
    numbers_.clear();
    for (const auto& list : lists) distinct_.append_numbers(list, numbers_);
    const std::vector<global_index>& ids = distinct_.ids();
    bands_of_rows_.clear();
    std::fill(firsts_.begin(), firsts_.end(), 0);
    for (const global_index id : ids) {
      bands_of_rows_.push_back(owners_.band_of(id));
      ++firsts_[bands_of_rows_.back() + 1];
    }
    std::inclusive_scan(firsts_.begin(), firsts_.end(), firsts_.begin());
    next_ = firsts_;
    places_.clear();
    rows_.resize(ids.size());
    for (std::size_t u = 0; u < ids.size(); ++u) {
      const std::size_t band = bands_of_rows_[u], place = next_[band]++;
      places_.push_back(static_cast<local_index>(place));
      rows_[place] = static_cast<local_index>(ids[u] - owners_.bands()[band].begin);
    }
    for (local_index& u : numbers_) u = places_[static_cast<std::size_t>(u)];
  }
  void exchange(const communicator& group) {
    asking_.clear();
    for (int q = 0; q < owners_.size(); ++q) {
      const bool asks = q != owners_.me() && owners_.owns(q);
      const auto list = asks ? rows_of(owners_.band(q)) : std::span<const local_index>();
      exchanged_.received[static_cast<std::size_t>(q)] = static_cast<global_index>(list.size());
      asking_.insert(asking_.end(), list.begin(), list.end());
    }
    exchanged_.exchange(group, asking_);
    for (std::size_t q = 0; q < received_.size(); ++q) {
      received_[q] = exchanged_.received[q] * owners_.block(static_cast<int>(q)).cols.size();
      sent_[q] = exchanged_.sent[q] * owners_.block(owners_.me()).cols.size();
    }
  }

  row_owners owners_;
  global_index all_rows_;
  id_numbers distinct_;
  std::vector<std::size_t> begins_{0}, firsts_, next_, bands_of_rows_;
  std::vector<local_index> numbers_, places_, rows_, asking_;
  row_lists<> exchanged_;
  std::vector<global_index> received_, sent_, starts_of_rows_;
};

}  // namespace partita::transfer
