// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Shares of the entries and rows of a sparse pattern, and what plans keep of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

/// Start of a share: `entry` entries precede it, `done` of them in `row`.
struct row_cut {
  local_index row, entry, done;
};

/// Merge-path partition: cuts the sequence of all entries and row ends into equal parts. A cut within a row
/// that is short beside them moves to the nearer end of the row, which then needs no join.
struct find_cuts {
  static constexpr std::int64_t smallest_share = 64;

  const local_index* offsets;
  local_index rows;
  std::int64_t shares;
  row_cut* cuts;

  constexpr void operator()(std::int64_t share) const {
    const std::int64_t entries = std::int64_t{offsets[rows]} - offsets[0], all = entries + rows;
    const std::int64_t even = quotient_up(all, shares);
    const std::int64_t begin = share * (even < smallest_share ? smallest_share : even);
    const std::int64_t at = begin < all ? begin : all;
    local_index low = static_cast<local_index>(at < entries ? 0 : at - entries);
    local_index high = static_cast<local_index>(at < rows ? at : rows);
    while (low < high) {
      const local_index middle = low + (high - low) / 2;
      if (end_of(middle) < at)
        low = middle + 1;
      else
        high = middle;
    }
    const auto entry = static_cast<local_index>(at - low);
    const local_index before = low < rows ? offsets[low] - offsets[0] : entry, done = entry - before;
    const local_index length = done > 0 ? offsets[low + 1] - offsets[low] : 0;
    if (done == 0 || length > (even < smallest_share ? smallest_share : even) / 4)
      cuts[share] = {low, entry, done};
    else if (2 * done < length)
      cuts[share] = {low, before, 0};
    else
      cuts[share] = {low + 1, before + length, 0};
  }

 private:
  /// Position of the end of a row in that sequence.
  constexpr std::int64_t end_of(local_index row) const {
    return std::int64_t{offsets[row + 1]} - offsets[0] + row;
  }
};

/// *joins = whether a cut splits a row.
struct find_splits {
  const row_cut* cuts;
  std::int64_t shares;
  std::int32_t* joins;

  __device__ void operator()(std::uint32_t, int lane) const {
    bool splits = false;
    for (std::int64_t share = lane; share < shares && !splits; share += 32) splits = cuts[share].done > 0;
    splits = __any_sync(0xffffffffu, splits);
    if (lane == 0) *joins = splits ? 1 : 0;
  }
};

/// Numbers that work of a queue writes for the host, each kept until `most` others have followed. Nobody
/// waits for them.
class late_numbers {
 public:
  explicit late_numbers(const device_queue<cuda_device>&)
      : memory_(static_cast<std::int32_t*>(pinned_.reserve(most * sizeof(std::int32_t)))) {}

  struct place {
    std::uint64_t number = 0, waits = 0;
  };
  /// Enqueues a copy of what is on the device.
  place take(const device_queue<cuda_device>& q, const std::int32_t* from) {
    check_cuda(cudaMemcpyAsync(memory_ + next_ % most, from, sizeof *from, cudaMemcpyDefault, q.stream()),
               "cudaMemcpyAsync");
    return {next_++, q.waits()};
  }
  /// That number, if the queue has been synchronised since it was taken, or else `unknown`.
  std::int32_t at(const device_queue<cuda_device>& q, const place& of, std::int32_t unknown) const {
    return q.waits() > of.waits && next_ - of.number <= most ? memory_[of.number % most] : unknown;
  }

 private:
  static constexpr std::uint64_t most = 1024;

  pinned_memory pinned_;
  std::int32_t* memory_;
  std::uint64_t next_ = 0;
};

/// Cuts of a pattern. No row is split if joins is false.
struct pattern_cuts {
  buffer<row_cut, cuda_device> memory;
  late_numbers::place answer;
  bool joins = true;
};

/// Cuts of the patterns of a plan, by their offsets, the number of the pass, rows and shares; empty after the
/// first pass, of which there may be no second.
using kept_cuts =
    std::map<std::tuple<const local_index*, std::size_t, local_index, std::int64_t>, pattern_cuts>;

/// The cuts of `a`, and whether they may split rows: what the plan keeps whose pass runs, if there is one, or
/// else in `scratch`. It is known that they do not once the queue has been synchronised.
inline std::pair<const row_cut*, bool> cuts_of(const device_queue<cuda_device>& q, const pattern_rows& a,
                                               std::int64_t shares, row_cut* scratch) {
  const auto& pass = q.resource<local::running_pass>().now;
  pattern_cuts* keeps = nullptr;
  if (pass.kept != nullptr && (a.offsets == pass.offsets || a.offsets == pass.inverse_offsets)) {
    if (*pass.kept == nullptr) *pass.kept = std::make_shared<kept_cuts>();
    auto& kept = *static_cast<kept_cuts*>(pass.kept->get());
    const auto [found, is_first] = kept.try_emplace({a.offsets, pass.number, a.rows, shares});
    pattern_cuts& known = found->second;
    if (known.memory.size() > 0) {
      if (known.joins) known.joins = q.resource<late_numbers>().at(q, known.answer, 1) != 0;
      return {known.memory.data(), known.joins};
    }
    if (!is_first) keeps = &known;
  }
  if (keeps != nullptr) keeps->memory = buffer<row_cut, cuda_device>(q, static_cast<std::size_t>(shares) + 2);
  row_cut* const cuts = keeps != nullptr ? keeps->memory.data() : scratch;
  on_cuda::launch(q, shares + 1, find_cuts{a.offsets, a.rows, shares, cuts});
  if (keeps != nullptr) {
    auto* const joins = reinterpret_cast<std::int32_t*>(cuts + shares + 1);
    on_cuda::launch_warps(q, 1, find_splits{cuts, shares, joins});
    keeps->answer = q.resource<late_numbers>().take(q, joins);
  }
  return {cuts, true};
}

/// Number of shares for `packs` packs of columns. A row of at most `cols` entries is as much work as these
/// and its end: rows without any are shared, too. None is empty if the number of entries is known.
inline std::int64_t share_count(const pattern_rows& a, local_index packs) {
  constexpr std::int64_t most_threads = 1 << 21, enough = 4096, cells_of_share = 32;
  const std::int64_t most =
      std::min<std::int64_t>(std::max<std::int64_t>(a.rows, enough), most_threads / packs + 1);
  const std::int64_t wanted =
      std::min(most, std::int64_t{a.rows} * (std::int64_t{a.cols} + 1) / cells_of_share);
  const std::int64_t filled =
      a.entries < 0 ? wanted : quotient_up(std::int64_t{a.entries} + a.rows, find_cuts::smallest_share);
  return std::max<std::int64_t>(1, std::min(wanted, filled));
}

}  // namespace partita::on_cuda
