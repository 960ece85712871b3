// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross-rank consistency check: the signatures that ranks exchange before an operation, and their
/// comparison.

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "partita/base/random.hpp"
#include "partita/comm/operation.hpp"

namespace partita::comm::detail {

/// Fixed-size description of an operation, for exchange between ranks.
struct signature {
  /// Other program steps on which ranks must agree.
  enum step : std::int32_t { in_operation, in_split };

  std::int32_t at = in_operation;
  std::int32_t kind = 0, type = 0, reduce = 0, peer = 0;
  std::uint32_t line = 0;
  global_index count = 0;   ///< for error messages only
  std::uint64_t shape = 0;  ///< hash of the counts that must agree on all ranks
  char file[40] = {};       ///< file name, truncated

  std::string text() const {
    if (at == in_split) return std::string("split (") + file + ":" + std::to_string(line) + ")";
    return std::string(name_of(static_cast<operation>(kind))) + " of " +
           name_of(static_cast<comm::element_type>(type)) + " (" + file + ":" + std::to_string(line) + ")";
  }
  std::string call() const {
    return at == in_operation ? text() + " with " + std::to_string(count) + " elements" : text();
  }
  bool agrees_with(const signature& other) const {
    return at == other.at && kind == other.kind && type == other.type && reduce == other.reduce &&
           peer == other.peer && shape == other.shape;
  }
  /// The same where signatures agree.
  std::uint64_t hash() const {
    const auto bits = [](std::int32_t v) {
      return static_cast<std::uint64_t>(static_cast<std::uint32_t>(v));
    };
    return base::mixed_bits(shape ^ base::mixed_bits(bits(peer) << 32 | bits(at) << 24 | bits(kind) << 16 |
                                                     bits(type) << 8 | bits(reduce)));
  }
};
static_assert(std::is_trivially_copyable_v<signature>);

inline std::uint64_t hash_of(std::span<const global_index> counts) {
  std::uint64_t h = base::mixed_bits(counts.size());
  for (global_index n : counts) h = base::mixed_bits(h ^ static_cast<std::uint64_t>(n));
  return h;
}

inline signature signature_at(signature::step step, std::source_location where) {
  signature s;
  s.at = step;
  s.line = where.line();
  const char* slash = std::strrchr(where.file_name(), '/');
  std::strncpy(s.file, slash != nullptr ? slash + 1 : where.file_name(), sizeof(s.file) - 1);
  return s;
}

inline signature signature_of(const comm::collective& op) {
  signature s = signature_at(signature::in_operation, op.where);
  s.kind = static_cast<std::int32_t>(op.kind);
  s.type = static_cast<std::int32_t>(op.type);
  s.reduce = static_cast<std::int32_t>(op.reduce);
  s.peer = op.peer;
  s.count = op.count;
  if (op.kind == operation::broadcast || op.kind == operation::all_reduce)
    s.shape = base::mixed_bits(static_cast<std::uint64_t>(op.count));
  if (op.kind == operation::all_gather) s.shape = hash_of(op.output_counts);
  if (op.kind == operation::reduce_scatter) s.shape = hash_of(op.input_counts);
  return s;
}

/// Error text for two ranks that bring different operations.
inline std::string disagreement(int one, const signature& call, int other, const signature& other_call) {
  return base::sentence_of(
      {"ranks disagree: rank ", one, " calls ", call.call(), ", rank ", other, " calls ", other_call.call()});
}

/// Throws communication_error, the same on every rank, unless all signatures agree. `names` are the ranks'
/// names in the message.
inline void require_agreement(std::span<const signature> all, std::span<const int> names) {
  const signature& first = all.front();
  const auto odd =
      std::find_if_not(all.begin(), all.end(), [&](const signature& s) { return s.agrees_with(first); });
  if (odd != all.end())
    throw communication_error(
        disagreement(names[static_cast<std::size_t>(odd - all.begin())], *odd, names.front(), first));
}

/// Error text if the counts `sent` to this rank (named names[rank]) differ from those it expects; else empty.
inline std::string mismatch_of_counts(const comm::collective& op, std::span<const global_index> sent,
                                      int rank, std::span<const int> names) {
  for (std::size_t q = 0; q < sent.size(); ++q)
    if (sent[q] != op.output_counts[q])
      return base::sentence_of({"ranks disagree: rank ", names[static_cast<std::size_t>(rank)], " expects ",
                                op.output_counts[q], " elements in ", describe(op), ", rank ", names[q],
                                " sends ", sent[q]});
  return {};
}

/// Throws communication_error if the counts differ.
inline void require_counts(const comm::collective& op, std::span<const global_index> sent, int rank,
                           std::span<const int> names) {
  if (const std::string wrong = mismatch_of_counts(op, sent, rank, names); !wrong.empty())
    throw communication_error(wrong);
}

}  // namespace partita::comm::detail
