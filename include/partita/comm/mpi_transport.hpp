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
  void assign(const collective& op, int ranks, Count count) {
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
  void assign(const collective& op, std::span<const global_index> all) {
    assign(op, static_cast<int>(all.size()), [&](int q) { return all[static_cast<std::size_t>(q)]; });
  }
};

/// What MPI holds on to while an operation is in flight.
struct flight {
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
    if (free_.size() == flights_.size()) return;
    comm_.leak();
    gather_comm_.leak();
    for (auto& f : flights_) static_cast<void>(f.release());
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::uint64_t start(const collective& op) override {
    require_alive();
    if (checker_ && op.kind != operation::send && op.kind != operation::receive) {
      checker_->agree(partita::detail::signature_of(op));
      if (op.kind == operation::all_to_all) checker_->agree_on_counts(op, rank_);
    }
    const std::uint64_t token = take();
    post(op, *flights_[token]);
    return token;
  }

  void finish(const collective& op, std::uint64_t token) override {
    require_alive();
    detail::flight& f = *flights_[token];
    if (op.kind == operation::receive)
      finish_receive(op, f);
    else
      detail::check(MPI_Wait(&f.request, MPI_STATUS_IGNORE), op);
    if (op.kind == operation::send) detail::check(MPI_Wait(&f.note_request, MPI_STATUS_IGNORE), op);
    if (op.kind == operation::reduce_scatter) add_up(op, f, op.output, op.count);
    if (op.kind == operation::all_reduce) {
      const interval mine = share_of(op.count, rank_, size_);
      add_up(op, f, static_cast<std::byte*>(op.output) + op.bytes(mine.begin), mine.size());
      gather_shares(op, f);
    }
    free_.push_back(token);
  }

  /// What is in flight cannot be completed alone, nor taken back: its memory stays with MPI, nothing is
  /// waited for, every later operation of this rank throws, and mpi::run ends the job.
  void abandon(const collective& op, std::uint64_t) noexcept override {
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
  std::shared_ptr<transport> over(std::shared_ptr<device_memory> memory) override {
    if (!memory) return shared_from_this();
    return std::make_shared<staged_transport>(shared_from_this(), std::move(memory), job_->device_pointers);
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

  std::uint64_t take() {
    if (free_.empty()) {
      flights_.push_back(std::make_unique<detail::flight>());
      return flights_.size() - 1;
    }
    const std::uint64_t token = free_.back();
    free_.pop_back();
    return token;
  }

  void post(const collective& op, detail::flight& f) {
    const MPI_Datatype type = detail::datatype(op.type);
    const int count = detail::fit(op.count, op);
    switch (op.kind) {
      case operation::broadcast:
        return detail::check(MPI_Ibcast(op.output, count, type, op.peer, comm_.get(), &f.request), op);
      case operation::all_gather:
        f.from.assign(op, op.output_counts);
        return detail::check(MPI_Iallgatherv(op.input, count, type, op.output, f.from.counts.data(),
                                             f.from.offsets.data(), type, comm_.get(), &f.request),
                             op);
      case operation::all_to_all:
        f.to.assign(op, op.input_counts);
        f.from.assign(op, op.output_counts);
        return exchange(op, f, op.input, op.output);
      case operation::reduce_scatter:
        f.to.assign(op, op.input_counts);
        return exchange_into_scratch(op, f, op.input, op.count);
      case operation::all_reduce:
        f.to.assign(op, size_, [&](int q) { return share_of(op.count, q, size_).size(); });
        return exchange_into_scratch(op, f, op.output, share_of(op.count, rank_, size_).size());
      case operation::send:
        if (checker_) {
          f.note = partita::detail::signature_of(op);
          detail::check(MPI_Isend(&f.note, sizeof(f.note), MPI_BYTE, op.peer, op.tag, checker_->comm(),
                                  &f.note_request),
                        op);
        }
        return detail::check(MPI_Isend(op.input, count, type, op.peer, op.tag, comm_.get(), &f.request), op);
      case operation::receive:
        if (checker_)
          detail::check(MPI_Irecv(&f.note, sizeof(f.note), MPI_BYTE, op.peer, op.tag, checker_->comm(),
                                  &f.note_request),
                        op);
        return detail::check(MPI_Irecv(op.output, count, type, op.peer, op.tag, comm_.get(), &f.request), op);
    }
  }

  void exchange(const collective& op, detail::flight& f, const void* input, void* output) {
    const MPI_Datatype type = detail::datatype(op.type);
    detail::check(MPI_Ialltoallv(input, f.to.counts.data(), f.to.offsets.data(), type, output,
                                 f.from.counts.data(), f.from.offsets.data(), type, comm_.get(), &f.request),
                  op);
  }
  /// Brings my block, of `count` elements, of every rank's `input`.
  void exchange_into_scratch(const collective& op, detail::flight& f, const void* input, global_index count) {
    f.from.assign(op, size_, [&](int) { return count; });
    const std::size_t bytes = static_cast<std::size_t>(size_) * op.bytes(count);
    if (f.scratch.size() < bytes) f.scratch.resize(bytes);
    exchange(op, f, input, f.scratch.data());
  }

  void add_up(const collective& op, detail::flight& f, void* sum, global_index count) const {
    f.pieces.clear();
    for (int q = 0; q < size_; ++q) f.pieces.push_back(f.scratch.data() + op.bytes(q * count));
    reduce_in_order(op.type, op.reduce, f.pieces, sum, count);
  }
  void gather_shares(const collective& op, detail::flight& f) {
    const MPI_Datatype type = detail::datatype(op.type);
    detail::check(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, op.output, f.to.counts.data(), f.to.offsets.data(),
                                  type, gather_comm_.get(), &f.request),
                  op);
    detail::check(MPI_Wait(&f.request, MPI_STATUS_IGNORE), op);
  }

  void finish_receive(const collective& op, detail::flight& f) {
    if (checker_) {
      detail::check(MPI_Wait(&f.note_request, MPI_STATUS_IGNORE), op);
      checker_->agree_on_message(op, rank_, f.note);
    }
    MPI_Status status;
    detail::check(MPI_Wait(&f.request, &status), op);
    int arrived = 0;
    detail::check(MPI_Get_count(&status, detail::datatype(op.type), &arrived), op);
    if (arrived != op.count)
      throw communication_error("ranks disagree: " + describe(op) + " is for " + std::to_string(op.count) +
                                " elements, " + std::to_string(arrived) + " came");
  }

  detail::owned_comm comm_;
  detail::owned_comm gather_comm_;
  int rank_, size_;
  std::shared_ptr<detail::job> job_;
  std::vector<int> world_ranks_;
  std::optional<detail::checker> checker_;
  std::vector<std::unique_ptr<detail::flight>> flights_;
  std::vector<std::uint64_t> free_;
};

}  // namespace partita::mpi
