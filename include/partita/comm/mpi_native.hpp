// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operations as MPI's own non-blocking collectives, for an MPI that knows its network.

#include <algorithm>
#include <cstring>
#include <vector>

#include "partita/comm/mpi_exchange.hpp"

namespace partita::mpi::detail {

/// reduce_in_order of two buffers, as MPI calls it: to[i] = from[i] op to[i].
template <reduction How>
void combine_for_mpi(void* from, void* to, int* count, MPI_Datatype* type) {
  using enum comm::element_type;
  for (const comm::element_type t : {u8, i32, i64, f32, f64, bf16})
    if (*type == datatype(t)) {
      const void* const both[] = {from, to};
      return comm::reduce_in_order(t, How, both, to, *count);
    }
}

/// A reduction of MPI's where it has this one; else one of ours: for maxima that propagate NaN, for bfloat16,
/// which MPI does not know, and for sums of bytes, which wrap here and stop at 255 in Open MPI 4.1. Those of
/// ours live as long as the process.
inline MPI_Op reduction_of(const comm::collective& op) {
  const auto ours = [](MPI_User_function* f) {
    MPI_Op made = MPI_OP_NULL;
    check(MPI_Op_create(f, 1, &made), "MPI_Op_create");
    return made;
  };
  if (op.reduce == reduction::max) {
    if (op.type <= comm::element_type::i64) return MPI_MAX;
    static const MPI_Op max = ours(combine_for_mpi<reduction::max>);
    return max;
  }
  if (op.type != comm::element_type::bf16 && op.type != comm::element_type::u8) return MPI_SUM;
  static const MPI_Op sum = ours(combine_for_mpi<reduction::sum>);
  return sum;
}

/// One collective of MPI's. Ranks must have agreed on it: MPI may print, end the job or never return where
/// they bring different ones.
class native_collective final : public in_flight {
 public:
  /// Starts it on the communicator of `at`, on which nothing else is started. The buffers of `op`, which is
  /// no send and no receive, must outlive the operation, until advance() returns true. Throws
  /// communication_error if an MPI call fails or all blocks together have too many elements for it.
  void start(const endpoints& at, const comm::collective& op) {
    at_ = at;
    op_ = op;
    const MPI_Datatype type = datatype(op.type);
    const int count = fit(op.count, op);
    switch (op.kind) {
      case operation::broadcast:
        return check(MPI_Ibcast(at.rank == op.peer ? const_cast<void*>(op.input) : op.output, count, type,
                                op.peer, at.comm, &request_),
                     op);
      case operation::all_gather:
        place(op.output_counts, to_);
        copy_own_block();
        return check(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, op.output, to_.counts.data(), to_.offsets.data(),
                                     type, at.comm, &request_),
                     op);
      case operation::all_to_all:
        place(op.input_counts, from_);
        place(op.output_counts, to_);
        return check(MPI_Ialltoallv(op.input, from_.counts.data(), from_.offsets.data(), type, op.output,
                                    to_.counts.data(), to_.offsets.data(), type, at.comm, &request_),
                     op);
      case operation::reduce_scatter:
        place(op.input_counts, from_);
        return check(MPI_Ireduce_scatter(op.input, op.output, from_.counts.data(), type, reduction_of(op),
                                         at.comm, &request_),
                     op);
      case operation::all_reduce:
        return check(
            MPI_Iallreduce(MPI_IN_PLACE, op.output, count, type, reduction_of(op), at.comm, &request_), op);
      case operation::send:
      case operation::receive:
        break;
    }
  }

  bool advance() override {
    int complete = 0;
    check(MPI_Test(&request_, &complete, MPI_STATUS_IGNORE), op_);
    return complete != 0;
  }
  /// Unknown: MPI does not say what it waits for.
  int next() const override { return -1; }
  std::vector<int> missing() const override {
    std::vector<int> others;
    for (int q = 0; q < at_.size; ++q)
      if (q != at_.rank) others.push_back(at_.name(q));
    std::ranges::sort(others);
    return others;
  }

 private:
  /// What MPI reads until the operation is complete.
  struct blocks {
    std::vector<int> counts, offsets;
  };

  void place(std::span<const global_index> counts, blocks& b) const {
    b.counts.clear();
    b.offsets.clear();
    global_index offset = 0;
    for (const global_index n : counts) {
      b.counts.push_back(fit(n, op_));
      b.offsets.push_back(fit(offset, op_));
      offset += n;
    }
  }
  /// Where all ranks have theirs in place, MPI takes an input that is there already as well.
  void copy_own_block() const {
    const auto me = static_cast<std::size_t>(at_.rank);
    if (to_.counts[me] > 0)
      std::memmove(static_cast<std::byte*>(op_.output) + op_.bytes(to_.offsets[me]), op_.input,
                   op_.bytes(to_.counts[me]));
  }

  endpoints at_;
  comm::collective op_;
  blocks from_, to_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace partita::mpi::detail
