// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One rank's end of a group of MPI processes. Every operation is non-blocking, every reduction is added up
/// here in rank order, so that a run repeats bit for bit.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "partita/comm/mpi_checks.hpp"
#include "partita/comm/staged.hpp"

namespace partita::mpi {

namespace detail {

/// What all groups of one world share.
struct job {
  bool checked = false;
  bool device_pointers = false;
  std::string failure;  ///< why no further operation can succeed, or empty
};

/// Counts of every rank and where their blocks begin, as MPI takes them.
struct block_list {
  std::vector<int> counts, offsets;

  template <class Count>
  void assign(const comm::collective& op, int ranks, Count count) {
    counts.clear();
    offsets.clear();
    global_index offset = 0;
    for (int q = 0; q < ranks; ++q) {
      const global_index n = count(q);
      counts.push_back(fit(n, op));
      offsets.push_back(fit(offset, op));
      offset += n;
    }
  }
  void assign(const comm::collective& op, std::span<const global_index> all) {
    assign(op, static_cast<int>(all.size()), [&](int q) { return all[static_cast<std::size_t>(q)]; });
  }
};

/// What MPI holds on to while an operation is in flight.
struct pending_operation {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Request note_request = MPI_REQUEST_NULL;
  signature note;
  block_list to, from;
  std::vector<std::byte> scratch;
  std::vector<const void*> pieces;  ///< of the scratch, one from each rank
};

}  // namespace detail

/// Collectives of the concept over MPI. Ranks must wait for their all-reduces in the same order, as the
/// second half of one starts when it is waited for.
class mpi_transport final : public transport, public std::enable_shared_from_this<mpi_transport> {
 public:
  /// A group over the ranks of `comm`, which is owned from now on. `world_ranks` are their names in errors.
  mpi_transport(detail::owned_comm comm, std::shared_ptr<detail::job> job, std::vector<int> world_ranks)
      : comm_(std::move(comm)),
        gather_comm_(detail::duplicate(comm_.get(), "partita gathers")),
        rank_(comm_.rank()),
        size_(comm_.size()),
        job_(std::move(job)),
        world_ranks_(std::move(world_ranks)) {
    if (job_->checked) checker_.emplace(comm_.get(), world_ranks_);
  }
  mpi_transport(const mpi_transport&) = delete;
  mpi_transport& operator=(const mpi_transport&) = delete;
  /// MPI may still write into the scratch of what was given up: that memory is never freed.
  ~mpi_transport() override {
    if (free_.size() == pending_.size()) return;
    comm_.leak();
    gather_comm_.leak();
    for (auto& pending : pending_) static_cast<void>(pending.release());
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::uint64_t start(const comm::collective& op) override {
    require_alive();
    if (checker_ && op.kind != operation::send && op.kind != operation::receive) {
      checker_->agree(partita::detail::signature_of(op));
      if (op.kind == operation::all_to_all) checker_->agree_on_counts(op, rank_);
    }
    const std::uint64_t token = free_operation();
    post(op, *pending_[token]);
    return token;
  }

  void finish(const comm::collective& op, std::uint64_t token) override {
    require_alive();
    detail::pending_operation& pending = *pending_[token];
    if (op.kind == operation::receive)
      finish_receive(op, pending);
    else
      detail::check(MPI_Wait(&pending.request, MPI_STATUS_IGNORE), op);
    if (op.kind == operation::send) detail::check(MPI_Wait(&pending.note_request, MPI_STATUS_IGNORE), op);
    if (op.kind == operation::reduce_scatter) add_up(op, pending, op.output, op.count);
    if (op.kind == operation::all_reduce) {
      const interval mine = comm::share_of(op.count, rank_, size_);
      add_up(op, pending, static_cast<std::byte*>(op.output) + op.bytes(mine.begin), mine.size());
      gather_shares(op, pending);
    }
    free_.push_back(token);
  }

  /// What is in flight cannot be completed alone, nor taken back: its memory stays with MPI, nothing is
  /// waited for, every later operation of this rank throws, and mpi::run ends the job.
  void abandon(const comm::collective& op, std::uint64_t) noexcept override {
    if (job_->failure.empty())
      job_->failure = "a rank gave up its " + describe(op) + " before it was complete";
  }

  std::shared_ptr<transport> split(int color, int key, std::source_location where) override {
    require_alive();
    agree_on(detail::signature::in_split, where);
    MPI_Comm part = MPI_COMM_NULL;
    detail::check(MPI_Comm_split(comm_.get(), color, key, &part), "MPI_Comm_split");
    detail::owned_comm owned(part, "partita");
    std::vector<int> members(static_cast<std::size_t>(owned.size()));
    const int me = world_ranks_[static_cast<std::size_t>(rank_)];
    detail::check(MPI_Allgather(&me, 1, MPI_INT, members.data(), 1, MPI_INT, part), "MPI_Allgather");
    return std::make_shared<mpi_transport>(std::move(owned), job_, std::move(members));
  }

  /// For memory of a device: staged, unless MPI may get pointers to it.
  std::shared_ptr<transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    if (!memory) return shared_from_this();
    return std::make_shared<comm::staged_transport>(shared_from_this(), std::move(memory),
                                                    job_->device_pointers);
  }

  void check() const override { require_alive(); }

  /// Says that this rank calls no more operations of this group. Throws when something was given up, or,
  /// where checked, when another rank goes on.
  void end() {
    require_alive();
    agree_on(detail::signature::at_end, std::source_location::current());
  }

 private:
  void require_alive() const {
    if (!job_->failure.empty()) throw communication_error(job_->failure);
  }
  void agree_on(detail::signature::step step, std::source_location where) {
    if (checker_) checker_->agree(partita::detail::signature_at(step, where));
  }

  std::uint64_t free_operation() {
    if (free_.empty()) {
      pending_.push_back(std::make_unique<detail::pending_operation>());
      return pending_.size() - 1;
    }
    const std::uint64_t token = free_.back();
    free_.pop_back();
    return token;
  }

  void post(const comm::collective& op, detail::pending_operation& pending) {
    const MPI_Datatype type = detail::datatype(op.type);
    const int count = detail::fit(op.count, op);
    switch (op.kind) {
      case operation::broadcast:
        return detail::check(MPI_Ibcast(op.output, count, type, op.peer, comm_.get(), &pending.request), op);
      case operation::all_gather:
        pending.from.assign(op, op.output_counts);
        return detail::check(
            MPI_Iallgatherv(op.input, count, type, op.output, pending.from.counts.data(),
                            pending.from.offsets.data(), type, comm_.get(), &pending.request),
            op);
      case operation::all_to_all:
        pending.to.assign(op, op.input_counts);
        pending.from.assign(op, op.output_counts);
        return exchange(op, pending, op.input, op.output);
      case operation::reduce_scatter:
        pending.to.assign(op, op.input_counts);
        return exchange_into_scratch(op, pending, op.input, op.count);
      case operation::all_reduce:
        pending.to.assign(op, size_, [&](int q) { return comm::share_of(op.count, q, size_).size(); });
        return exchange_into_scratch(op, pending, op.output, comm::share_of(op.count, rank_, size_).size());
      case operation::send:
        if (checker_) {
          pending.note = partita::detail::signature_of(op);
          detail::check(MPI_Isend(&pending.note, sizeof(pending.note), MPI_BYTE, op.peer, op.tag,
                                  checker_->comm(), &pending.note_request),
                        op);
        }
        return detail::check(MPI_Isend(op.input, count, type, op.peer, op.tag, comm_.get(), &pending.request),
                             op);
      case operation::receive:
        if (checker_)
          detail::check(MPI_Irecv(&pending.note, sizeof(pending.note), MPI_BYTE, op.peer, op.tag,
                                  checker_->comm(), &pending.note_request),
                        op);
        return detail::check(
            MPI_Irecv(op.output, count, type, op.peer, op.tag, comm_.get(), &pending.request), op);
    }
  }

  void exchange(const comm::collective& op, detail::pending_operation& pending, const void* input,
                void* output) {
    const MPI_Datatype type = detail::datatype(op.type);
    detail::check(MPI_Ialltoallv(input, pending.to.counts.data(), pending.to.offsets.data(), type, output,
                                 pending.from.counts.data(), pending.from.offsets.data(), type, comm_.get(),
                                 &pending.request),
                  op);
  }
  /// Brings my block, of `count` elements, of every rank's `input`.
  void exchange_into_scratch(const comm::collective& op, detail::pending_operation& pending,
                             const void* input, global_index count) {
    pending.from.assign(op, size_, [&](int) { return count; });
    const std::size_t bytes = static_cast<std::size_t>(size_) * op.bytes(count);
    if (pending.scratch.size() < bytes) pending.scratch.resize(bytes);
    exchange(op, pending, input, pending.scratch.data());
  }

  void add_up(const comm::collective& op, detail::pending_operation& pending, void* sum,
              global_index count) const {
    pending.pieces.clear();
    for (int q = 0; q < size_; ++q) pending.pieces.push_back(pending.scratch.data() + op.bytes(q * count));
    comm::reduce_in_order(op.type, op.reduce, pending.pieces, sum, count);
  }
  void gather_shares(const comm::collective& op, detail::pending_operation& pending) {
    const MPI_Datatype type = detail::datatype(op.type);
    detail::check(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, op.output, pending.to.counts.data(),
                                  pending.to.offsets.data(), type, gather_comm_.get(), &pending.request),
                  op);
    detail::check(MPI_Wait(&pending.request, MPI_STATUS_IGNORE), op);
  }

  void finish_receive(const comm::collective& op, detail::pending_operation& pending) {
    if (checker_) {
      detail::check(MPI_Wait(&pending.note_request, MPI_STATUS_IGNORE), op);
      checker_->agree_on_message(op, rank_, pending.note);
    }
    MPI_Status status;
    detail::check(MPI_Wait(&pending.request, &status), op);
    int arrived = 0;
    detail::check(MPI_Get_count(&status, detail::datatype(op.type), &arrived), op);
    if (arrived != op.count)
      throw_error<communication_error>(
          {"ranks disagree: ", describe(op), " is for ", op.count, " elements, ", arrived, " came"});
  }

  detail::owned_comm comm_;
  detail::owned_comm gather_comm_;
  int rank_, size_;
  std::shared_ptr<detail::job> job_;
  std::vector<int> world_ranks_;
  std::optional<detail::checker> checker_;
  std::vector<std::unique_ptr<detail::pending_operation>> pending_;
  std::vector<std::uint64_t> free_;
};

}  // namespace partita::mpi
