#pragma once
/// What the ranks of an MPI group tell each other before an operation when it is checked, and how they
/// compare it.

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/comm/mpi_call.hpp"

namespace partita::mpi::detail {

/// An operation as it travels: fixed size, no pointers.
struct signature {
  /// Steps of a program that are no operation but must agree as well.
  enum step : std::int32_t { in_operation, in_split, at_end };

  std::int32_t at = in_operation;
  std::int32_t kind = 0, type = 0, reduce = 0, peer = 0;
  std::uint32_t line = 0;
  global_index count = 0;   ///< what an error message says
  std::uint64_t shape = 0;  ///< hash of the counts that all ranks must share
  char file[40] = {};       ///< the tail of the file's name

  std::string text() const {
    if (at == in_split) return "split";
    if (at == at_end) return "nothing more";
    return std::string(name_of(static_cast<operation>(kind))) + " of " +
           name_of(static_cast<element_type>(type)) + " (" + file + ":" + std::to_string(line) + ")";
  }
  std::string call() const {
    return at == in_operation ? text() + " with " + std::to_string(count) + " elements" : text();
  }
  bool agrees_with(const signature& other) const {
    return at == other.at && kind == other.kind && type == other.type && reduce == other.reduce &&
           peer == other.peer && shape == other.shape;
  }
};
static_assert(std::is_trivially_copyable_v<signature>);

inline std::uint64_t hash_of(std::span<const global_index> counts) {
  std::uint64_t h = mix(counts.size());
  for (global_index n : counts) h = mix(h ^ static_cast<std::uint64_t>(n));
  return h;
}

inline signature signature_of(const collective& op) {
  signature s;
  s.kind = static_cast<std::int32_t>(op.kind);
  s.type = static_cast<std::int32_t>(op.type);
  s.reduce = static_cast<std::int32_t>(op.reduce);
  s.peer = op.peer;
  s.line = op.where.line();
  s.count = op.count;
  if (op.kind == operation::broadcast || op.kind == operation::all_reduce)
    s.shape = mix(static_cast<std::uint64_t>(op.count));
  if (op.kind == operation::all_gather) s.shape = hash_of(op.output_counts);
  if (op.kind == operation::reduce_scatter) s.shape = hash_of(op.input_counts);
  const char* slash = std::strrchr(op.where.file_name(), '/');
  std::strncpy(s.file, slash != nullptr ? slash + 1 : op.where.file_name(), sizeof(s.file) - 1);
  return s;
}

/// Compares operations over a communicator of its own, with blocking calls.
class checker {
 public:
  checker(MPI_Comm comm, std::vector<int> world_ranks)
      : comm_(duplicate(comm, check_comm_name)),
        all_(world_ranks.size()),
        world_ranks_(std::move(world_ranks)) {}

  MPI_Comm comm() const { return comm_.get(); }

  /// Throws communication_error, the same on every rank, unless all ranks bring the same signature.
  void agree(const signature& mine) {
    check(MPI_Allgather(&mine, bytes, MPI_BYTE, all_.data(), bytes, MPI_BYTE, comm_.get()), "MPI_Allgather");
    const signature& first = all_.front();
    const auto odd =
        std::find_if_not(all_.begin(), all_.end(), [&](const signature& s) { return s.agrees_with(first); });
    if (odd == all_.end()) return;
    const int other = static_cast<int>(odd - all_.begin());
    if (first.at == signature::at_end) throw communication_error(left_out(0, *odd));
    if (odd->at == signature::at_end) throw communication_error(left_out(other, first));
    throw communication_error("ranks disagree: rank " + name(other) + " calls " + odd->call() + ", rank " +
                              name(0) + " calls " + first.call());
  }

  /// Throws communication_error on a rank that expects other counts than are sent.
  void agree_on_counts(const collective& op, int rank) {
    counts_.resize(all_.size());
    check(MPI_Alltoall(op.input_counts.data(), 1, MPI_INT64_T, counts_.data(), 1, MPI_INT64_T, comm_.get()),
          "MPI_Alltoall");
    for (std::size_t q = 0; q < counts_.size(); ++q)
      if (counts_[q] != op.output_counts[q])
        throw communication_error("ranks disagree: rank " + name(rank) + " expects " +
                                  std::to_string(op.output_counts[q]) + " elements in " + describe(op) +
                                  ", rank " + name(static_cast<int>(q)) + " sends " +
                                  std::to_string(counts_[q]));
  }

  /// Throws communication_error unless the message that arrived is the one that `op` receives.
  void agree_on_message(const collective& op, int rank, const signature& sent) const {
    if (sent.count != op.count || sent.type != static_cast<std::int32_t>(op.type))
      throw communication_error("ranks disagree: rank " + name(rank) + " calls " + describe(op) + " for " +
                                std::to_string(op.count) + " elements, rank " + name(op.peer) + " calls " +
                                sent.text() + " with " + std::to_string(sent.count));
  }

 private:
  static constexpr int bytes = sizeof(signature);

  std::string name(int rank) const { return std::to_string(world_ranks_[static_cast<std::size_t>(rank)]); }
  std::string left_out(int rank, const signature& op) const {
    return "rank " + name(rank) + " ended without taking part in " + op.text();
  }

  owned_comm comm_;
  std::vector<signature> all_;
  std::vector<global_index> counts_;
  std::vector<int> world_ranks_;
};

}  // namespace partita::mpi::detail
