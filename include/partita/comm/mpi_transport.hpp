// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A group of MPI processes, as seen by one rank. Operations are nonblocking; reductions are summed here in
/// rank order, so results are reproducible bit for bit, unless MPI's own collectives were asked for.

#include <memory>
#include <numeric>
#include <optional>

#include "partita/comm/mpi_checks.hpp"
#include "partita/comm/mpi_native.hpp"
#include "partita/comm/staged.hpp"

namespace partita::mpi {

/// The transport over MPI.
class mpi_transport final : public comm::transport, public std::enable_shared_from_this<mpi_transport> {
 public:
  /// The group of `comm`, of which it takes ownership. `world_ranks` name its ranks in errors; `id` is equal
  /// on all ranks of this group and unique in the job.
  mpi_transport(detail::owned_comm comm, std::shared_ptr<detail::job> job, std::vector<int> world_ranks,
                std::uint64_t id)
      : world_ranks_(std::move(world_ranks)),
        job_(std::move(job)),
        collectives_(std::move(comm)),
        messages_(detail::duplicate(collectives_.get(), "partita messages")),
        checker_(std::make_unique<detail::checker>(collectives_.get(), world_ranks_)),
        at_{collectives_.get(), collectives_.rank(), collectives_.size(), world_ranks_,
            job_->device_pointers()},
        operations_(&job_->series_of(id)) {
    if (job_->checked()) notes_.emplace(detail::duplicate(collectives_.get(), detail::check_comm_name));
  }
  mpi_transport(const mpi_transport&) = delete;
  mpi_transport& operator=(const mpi_transport&) = delete;
  /// Scratch buffers of abandoned operations are never freed: MPI may still write to them.
  ~mpi_transport() override {
    if (free_.size() == pending_.size() && !job_->failed()) return;
    collectives_.leak();
    messages_.leak();
    if (notes_) notes_->leak();
    static_cast<void>(checker_.release());
    for (auto& pending : pending_) static_cast<void>(pending.release());
  }

  int rank() const override { return at_.rank; }
  int size() const override { return at_.size; }

  std::uint64_t start(const comm::collective& op) override {
    job_->require_alive();
    const bool message = op.kind == operation::send || op.kind == operation::receive;
    const detail::awaited a =
        message ? begin_message(op) : begin(partita::comm::detail::signature_of(op), op.where, op.axis);
    detail::last_call_of_process() = {name_of(op.kind), op.where};
    if (job_->checked() && !message) {
      checker_->agree(*job_, a);
      if (op.kind == operation::all_to_all) checker_->agree_on_counts(*job_, a, op);
    }
    const std::uint64_t token = free_operation();
    pending_operation& pending = *pending_[token];
    pending.awaits = a;
    pending.running = &pending.data;
    try {
      if (message)
        post_message(op, pending);
      else if (job_->native())
        start_native(op, pending);
      else
        pending.data.start(at_, op, job_->tag_of(a.number, a.what.hash()));
    } catch (const std::exception& e) {
      job_->fail(e.what());
      throw;
    }
    job_->enlist(pending.running);
    return token;
  }

  void finish(const comm::collective& op, std::uint64_t token) override {
    pending_operation& pending = *pending_[token];
    if (notes_ && op.kind == operation::receive) {
      job_->wait(pending.awaits, pending.note);
      if (const std::string wrong = checker_->mismatch_of(op, pending.told); !wrong.empty()) {
        job_->fail(wrong);
        throw communication_error(wrong);
      }
    }
    job_->wait(pending.awaits, *pending.running);
    if (notes_ && op.kind == operation::send) job_->wait(pending.awaits, pending.note);
    job_->dismiss(pending.running);
    free_.push_back(token);
  }

  /// An operation in flight can be neither completed by one rank nor cancelled: its memory is leaked to MPI,
  /// every later operation of this rank throws, and MPI_Finalize aborts the job.
  void abandon(const comm::collective& op, std::uint64_t) noexcept override {
    job_->fail("a rank gave up its " + describe(op) + " before it was complete");
  }

  std::shared_ptr<comm::transport> split(int color, int key, std::source_location where) override {
    job_->require_alive();
    const detail::awaited a =
        begin(partita::comm::detail::signature_at(comm::detail::signature::in_split, where), where);
    detail::last_call_of_process() = {"split", where};
    if (job_->checked()) checker_->agree(*job_, a);
    const auto brought = checker_->agree_on_split(*job_, a, {color, key});
    MPI_Comm part = MPI_COMM_NULL;  // all ranks have arrived, so MPI may block
    detail::check(MPI_Comm_split(collectives_.get(), color, key, &part), "MPI_Comm_split");

    std::vector<int> members;
    for (int q = 0; q < at_.size; ++q)
      if (brought[static_cast<std::size_t>(q)][0] == color) members.push_back(q);
    std::stable_sort(members.begin(), members.end(), [&](int q, int r) {
      return brought[static_cast<std::size_t>(q)][1] < brought[static_cast<std::size_t>(r)][1];
    });
    for (int& q : members) q = at_.name(q);
    return std::make_shared<mpi_transport>(
        detail::owned_comm(part, "partita"), job_, std::move(members),
        mixed({operations_->id, a.number, static_cast<std::uint64_t>(static_cast<std::uint32_t>(color))}));
  }

  /// On device memory: staged through the host, unless device pointers are enabled.
  std::shared_ptr<comm::transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    if (!memory) return shared_from_this();
    return std::make_shared<comm::staged_transport>(shared_from_this(), std::move(memory),
                                                    job_->device_pointers());
  }

  void check() const override { job_->require_alive(); }

 private:
  /// State that must outlive an operation in flight.
  struct pending_operation {
    detail::awaited awaits;
    detail::exchange data, note;
    detail::native_collective native;
    detail::in_flight* running = nullptr;  ///< data or native
    comm::detail::signature told;          ///< in the message's note
  };

  static constexpr int most_accounts = 64;  ///< message counters per pair of ranks; tags share them

  static std::uint64_t mixed(std::initializer_list<std::uint64_t> values) {
    std::uint64_t h = 0;
    for (const std::uint64_t v : values) h = base::mixed_bits(h ^ v);
    return h;
  }
  /// Numbers the operation that this rank starts now.
  detail::awaited begin(const comm::detail::signature& what, std::source_location where,
                        std::string_view axis = {}) {
    operations_->add(what);
    return {operations_->id, operations_->started, what, world_ranks_, where, axis};
  }
  /// Both partners count their messages; the receiver waits for the sender's count.
  detail::awaited begin_message(const comm::collective& op) {
    const auto me = static_cast<std::uint64_t>(at_.rank), peer = static_cast<std::uint64_t>(op.peer);
    const auto tag = static_cast<std::uint64_t>(op.tag % most_accounts);
    const bool sends = op.kind == operation::send;
    const std::uint64_t from = sends ? me : peer, to = sends ? peer : me;
    const std::uint64_t sent = mixed({operations_->id, from, to, tag, 1}),
                        received = mixed({operations_->id, from, to, tag, 2});
    const std::uint64_t number = ++job_->series_of(sends ? sent : received).started;
    return {sends ? received : sent,
            number,
            partita::comm::detail::signature_of(op),
            std::span(world_ranks_).subspan(peer, 1),
            op.where,
            op.axis};
  }
  void start_native(const comm::collective& op, pending_operation& pending) {
    if (op.kind == operation::all_to_all) detail::require_own_counts(op, at_.rank, at_.name(at_.rank));
    pending.running = &pending.native;
    pending.native.start(at_, op);
  }
  void post_message(const comm::collective& op, pending_operation& pending) {
    detail::endpoints at = at_;
    if (notes_) {
      pending.told = pending.awaits.what;
      comm::collective note = op;
      note.type = comm::element_type::u8;
      note.count = sizeof(pending.told);
      note.input = note.output = &pending.told;
      at.comm = notes_->get();
      pending.note.start(at, note, op.tag);
    }
    at.comm = messages_.get();
    pending.data.start(at, op, op.tag);
  }

  std::uint64_t free_operation() {
    if (free_.empty()) {
      pending_.push_back(std::make_unique<pending_operation>());
      return pending_.size() - 1;
    }
    const std::uint64_t token = free_.back();
    free_.pop_back();
    return token;
  }

  std::vector<int> world_ranks_;
  std::shared_ptr<detail::job> job_;
  detail::owned_comm collectives_, messages_;
  std::unique_ptr<detail::checker> checker_;
  std::optional<detail::owned_comm> notes_;
  detail::endpoints at_;
  detail::series* operations_;
  std::vector<std::unique_ptr<pending_operation>> pending_;
  std::vector<std::uint64_t> free_;
};

}  // namespace partita::mpi
