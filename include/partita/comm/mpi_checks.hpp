// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Agreement checks among the ranks of an MPI group before each operation.

#include <array>
#include <vector>

#include "partita/comm/mpi_exchange.hpp"

namespace partita::mpi::detail {

/// Compares operations over a control communicator.
class checker {
 public:
  checker(MPI_Comm comm, std::span<const int> world_ranks)
      : comm_(duplicate(comm, check_comm_name)),
        at_{comm_.get(), comm_.rank(), comm_.size(), world_ranks},
        all_(world_ranks.size()) {}

  /// Throws communication_error, the same on every rank, unless all signatures agree.
  void agree(job& all, awaited a) {
    gather(all, a, a.what, all_, all.tag_of(a.number, 0));
    partita::comm::detail::require_agreement(all_, at_.names);
  }
  /// Throws communication_error on a rank whose expected counts differ from those sent.
  void agree_on_counts(job& all, awaited a, const comm::collective& op) {
    counts_.resize(all_.size());
    comm::collective told;
    told.kind = operation::all_to_all;
    told.type = comm::element_type::i64;
    told.input = op.input_counts.data();
    told.output = counts_.data();
    const std::vector<global_index> one(all_.size(), 1);
    told.input_counts = told.output_counts = one;
    run(all, a, told, all.tag_of(a.number, 0) + 1);
    partita::comm::detail::require_counts(op, counts_, at_.rank, at_.names);
  }
  /// Error text if the incoming message does not match `op`; else empty.
  std::string mismatch_of(const comm::collective& op, const signature& sent) const {
    if (sent.count == op.count && sent.type == static_cast<std::int32_t>(op.type)) return {};
    return base::sentence_of({"ranks disagree: rank ", at_.name(at_.rank), " calls ", describe(op), " for ",
                              op.count, " elements, rank ", at_.name(op.peer), " calls ", sent.text(),
                              " with ", sent.count});
  }
  /// All-gather of the arguments of a split; a rank in another operation uses another tag.
  std::vector<std::array<std::int32_t, 2>> agree_on_split(job& all, awaited a,
                                                          std::array<std::int32_t, 2> mine) {
    std::vector<std::array<std::int32_t, 2>> brought(all_.size());
    gather(all, a, mine, brought, all.tag_of(a.number, a.what.hash()) + 1);
    return brought;
  }

 private:
  template <class T>
  void gather(job& all, awaited& a, const T& mine, std::vector<T>& values, int tag) {
    comm::collective told;
    told.kind = operation::all_gather;
    told.type = comm::element_type::u8;
    told.where = a.where;
    told.count = sizeof(T);
    told.input = &mine;
    told.output = values.data();
    const std::vector<global_index> sizes(values.size(), sizeof(T));
    told.output_counts = sizes;
    run(all, a, told, tag);
  }
  void run(job& all, awaited& a, const comm::collective& told, int tag) {
    exchange_.start(at_, told, tag);
    all.wait(a, exchange_);
  }

  owned_comm comm_;
  endpoints at_;
  exchange exchange_;
  std::vector<signature> all_;
  std::vector<global_index> counts_;
};

}  // namespace partita::mpi::detail
