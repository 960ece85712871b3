// SPDX-License-Identifier: Apache-2.0
#pragma once
/// From blocks of whole rows to blocks of columns, a list of rows at a time.

#include <array>
#include <utility>
#include <vector>

#include "partita/local/move.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/partition/block_layout.hpp"
#include "partita/partition/route.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita::transfer {

/// Y = X for listed rows: X in a layout whose columns are whole, Y in one whose rows are. Stage s brings the
/// rows of list s, by global index, the same lists on every rank. The stages are started and finished in
/// order, at most two at a time, so that one travels while another is computed with.
///
/// Collective over the mesh: constructor and members. What travels: all-to-alls along the axes that partition
/// the rows of X; each rank receives its columns of the listed rows that it does not own. Throws shape_error
/// if the layouts are others. Source: Ai et al., NeutronTP (VLDB 2025), section 4.2.
template <class T, class Device>
class row_split {
 public:
  row_split(const mesh<Device>& m, const blocking& rows, const blocking& cols, layout from, layout to,
            const std::vector<std::vector<global_index>>& lists)
      : mesh_(m), group_(partition::on_mesh(partition::route_between(from, to), to, m.shape()).group) {
    const partition::rectangle mine = partition::block_of(rows, cols, from, m.at()),
                               own = partition::block_of(rows, cols, to, m.at());
    if (mine.cols.size() != cols.size() || own.rows.size() != rows.size())
      base::throw_error<shape_error>(
          {"rows are split from a layout of whole rows to one of whole columns, not from ", from, " to ",
           to});
    for (int q = 0; q < m.shape().size(group_); ++q) {
      const coordinates other = partition::group_member(m.shape(), group_, m.at(), q);
      owned_.push_back(partition::block_of(rows, cols, from, other).rows);
      columns_.push_back(partition::block_of(rows, cols, to, other).cols);
    }
    width_ = static_cast<local_index>(own.cols.size());
    plan(lists, mine.rows);
  }

  std::size_t stages() const { return stages_.size(); }
  /// Sends this rank's rows of list s; x is its block of X.
  void start(std::size_t s, matrix_view<const T> x) {
    const stage& now = stages_[s];
    T* to = outgoing_[s % 2].data();
    const std::span<const local_index> rows = std::as_const(sent_).span().subspan(now.first_sent, now.sent);
    for (const interval c : columns_) {
      gather_rows(mesh_.queue(),
                  x.block(0, static_cast<local_index>(c.begin), x.rows, static_cast<local_index>(c.size())),
                  rows, to);
      to += now.sent * static_cast<std::size_t>(c.size());
    }
    requests_[s % 2] = mesh_.along(group_).start_all_to_all(
        std::as_const(outgoing_[s % 2]).span().first(comm::total_of(std::span(now.send_counts))),
        now.send_counts, incoming_[s % 2].span().first(comm::total_of(std::span(now.recv_counts))),
        now.recv_counts);
  }
  /// Writes the rows of list s to y, this rank's block of Y.
  void finish(std::size_t s, matrix_view<T> y) {
    const stage& now = stages_[s];
    requests_[s % 2].wait();
    scatter_rows(mesh_.queue(), std::as_const(incoming_[s % 2]).data(),
                 std::as_const(received_).span().subspan(now.first_received, now.received), y);
  }

  /// What this rank receives in all stages.
  traffic predicted() const {
    traffic v;
    for (const stage& s : stages_)
      v += received_rows(s.recv_counts, 1, partition::rank_in_group(mesh_.shape(), group_, mesh_.at()));
    return v;
  }

 private:
  struct stage {
    std::size_t first_sent, sent, first_received, received;  ///< places in the lists of rows
    std::vector<global_index> send_counts, recv_counts;
  };

  void plan(const std::vector<std::vector<global_index>>& lists, interval mine) {
    std::vector<local_index> sent, received;
    std::size_t most_sent = 0, most_received = 0;
    global_index all_columns = 0;
    for (const interval c : columns_) all_columns += c.size();
    for (const auto& list : lists) {
      stage s{sent.size(), 0, received.size(), list.size(), {}, {}};
      for (const interval rows : owned_) {
        const std::size_t before = received.size();
        for (const global_index r : list)
          if (rows.contains(r)) received.push_back(static_cast<local_index>(r));
        s.recv_counts.push_back(static_cast<global_index>(received.size() - before) * width_);
      }
      for (const global_index r : list)
        if (mine.contains(r)) sent.push_back(static_cast<local_index>(r - mine.begin));
      s.sent = sent.size() - s.first_sent;
      for (const interval c : columns_) s.send_counts.push_back(static_cast<global_index>(s.sent) * c.size());
      most_sent = std::max(most_sent, s.sent * static_cast<std::size_t>(all_columns));
      most_received = std::max(most_received, s.received * static_cast<std::size_t>(width_));
      stages_.push_back(std::move(s));
    }
    const auto& q = mesh_.queue();
    upload(q, sent, sent_);
    upload(q, received, received_);
    for (auto& b : outgoing_) b = buffer<T, Device>(q, most_sent);
    for (auto& b : incoming_) b = buffer<T, Device>(q, most_received);
  }

  mesh<Device> mesh_;
  axis_set group_;
  std::vector<interval> owned_, columns_;  ///< rows of X and columns of Y of each rank of the group
  local_index width_ = 0;
  std::vector<stage> stages_;
  buffer<local_index, Device> sent_, received_;
  std::array<buffer<T, Device>, 2> outgoing_, incoming_;
  std::array<request, 2> requests_;
};

}  // namespace partita::transfer
