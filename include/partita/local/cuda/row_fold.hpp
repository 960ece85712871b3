// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Folds over the rows of a sparse pattern with load balancing: the work is split into shares of about
/// equally many entries and rows, so that neither long rows nor many short ones overload a thread. Rows that
/// span several shares are joined from their parts in order. Share boundaries, and thus the summation order,
/// depend only on the pattern and the number of packs per row: results are bitwise reproducible, but a slice
/// of the columns may differ in the last bits.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "partita/local/cuda/row_cuts.hpp"
#include "partita/local/cuda/vector.hpp"

namespace partita::on_cuda {

/// What is summed over the entries of a row, for pack v of the columns: `sum` is the accumulator of a row,
/// `term` what is loaded for an entry, `ahead` what four consecutive entries have in common for all packs and
/// is loaded before them. merge(sum, later) joins the sums of consecutive parts of a row, store(sum, row, v)
/// ends it. Optional are terms_of(ahead, e, v, terms), the terms of entries e, ..., e + 3, where e + skew is
/// a multiple of 4, and min_blocks_per_multiprocessor, 4 without it.
template <class Fold>
concept row_fold = std::is_trivially_copyable_v<Fold> &&
    requires(const Fold f, typename Fold::sum total, typename Fold::term term, local_index i) {
  { f.zero() } -> std::same_as<typename Fold::sum>;
  { f.load_ahead(i) } -> std::same_as<typename Fold::ahead>;
  { f.term_of(i, i) } -> std::same_as<typename Fold::term>;
  f.add(total, term, i, i);
  f.merge(total, total);
  f.store(total, i, i);
};

/// Base of folds that load nothing ahead.
struct nothing_ahead {
  struct ahead {};

  constexpr ahead load_ahead(local_index) const { return {}; }
};

/// Base of folds that load the columns of four entries ahead.
struct columns_ahead {
  using ahead = pack_of<local_index, 4>;

  const local_index* columns;

  constexpr ahead load_ahead(local_index e) const { return load<4>(columns + e); }
};

/// Base of folds that accumulate with +=.
template <class Ahead, class Sum>
struct summing : Ahead {
  using sum = Sum;

  constexpr sum zero() const { return {}; }
  constexpr void merge(sum& total, const sum& later) const { total += later; }
};

/// Thread (share, v) folds the entries of a share for pack v. The part of a row continued from an earlier
/// share goes to `heads`, that of a row continued in a later one to `tails`.
template <row_fold Fold>
struct fold_shares {
  using sum = typename Fold::sum;
  using term = typename Fold::term;
  static constexpr int min_blocks_per_multiprocessor = [] {
    if constexpr (requires { Fold::min_blocks_per_multiprocessor; })
      return Fold::min_blocks_per_multiprocessor;
    else
      return 4;
  }();

  Fold fold;
  const local_index* offsets;
  const row_cut* cuts;
  local_index packs;
  int skew;
  sum* heads;
  sum* tails;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(static_cast<std::uint32_t>(thread), packs);
    const row_cut from = cuts[at.row], to = cuts[at.row + 1];
    local_index e = offsets[0] + from.entry;
    const local_index last = offsets[0] + to.entry;
    progress now{fold.zero(),
                 from.row,
                 to.row,
                 row_end(from.row, to.row),
                 at.col,
                 static_cast<std::uint32_t>(thread),
                 from.done > 0 ? from.row : -1};
    const auto beyond = static_cast<std::uint32_t>(e) + static_cast<std::uint32_t>(skew);
    const auto missing = static_cast<local_index>((4 - beyond % 4) % 4);
    const local_index first_part = missing < last - e ? missing : last - e;
    some(now, e, first_part);
    e += first_part;
    if (last - e >= 4) {
      auto ahead = fold.load_ahead(e);
      for (; last - e >= 4; e += 4) four(now, ahead, e, last);
    }
    some(now, e, last - e);
    while (now.row < to.row) end_row(now);
    if (last > offsets[now.last_row]) tails[thread] = now.total;
  }

 private:
  struct progress {
    sum total;
    local_index row, last_row, end;
    local_index pack;
    std::uint32_t thread;
    local_index continued;  ///< the row that an earlier share began, or -1
  };

  /// End of a row's entries; unreachable for the last row of the share, which stays open.
  constexpr local_index row_end(local_index row, local_index last_row) const {
    return row < last_row ? offsets[row + 1] : std::numeric_limits<local_index>::max();
  }

  constexpr void end_row(progress& now) const {
    if (now.row == now.continued)
      heads[now.thread] = now.total;
    else
      fold.store(now.total, now.row, now.pack);
    now.total = fold.zero();
    ++now.row;
    now.end = row_end(now.row, now.last_row);
  }

  /// Entries e, ..., e + 3; all loads are issued before the first use, also those ahead for the next four.
  template <class Ahead>
  constexpr void four(progress& now, Ahead& ahead, local_index e, local_index last) const {
    term terms[4] = {};
    if constexpr (requires { fold.terms_of(ahead, e, now.pack, terms); })
      fold.terms_of(ahead, e, now.pack, terms);
    else
      for (int k = 0; k < 4; ++k) terms[k] = fold.term_of(e + k, now.pack);
    if (last - e >= 8) ahead = fold.load_ahead(e + 4);
    if (now.end - e >= 4)
      add_some(now, terms, 0, 4, std::make_integer_sequence<local_index, 4>());
    else
      add(now, terms, e, 4);
  }

  /// Up to three entries.
  constexpr void some(progress& now, local_index e, local_index count) const {
    term terms[3] = {};
    for (int k = 0; k < 3; ++k)
      if (k < count) terms[k] = fold.term_of(e + k, now.pack);
    add(now, terms, e, count);
  }

  /// Adds the first `count` entries from e on, row by row.
  template <local_index Most>
  constexpr void add(progress& now, const term (&terms)[Most], local_index e, local_index count) const {
    for (local_index done = 0; done < count;) {
      while (now.end - e <= done) end_row(now);
      const local_index stop = now.end - e < count ? now.end - e : count;
      add_some(now, terms, done, stop, std::make_integer_sequence<local_index, Most>());
      done = stop;
    }
  }
  /// Adds terms [begin, end) of a row. Unrolled by hand: dynamically indexed arrays cannot be kept in
  /// registers.
  template <std::size_t Most, local_index... K>
  constexpr void add_some(progress& now, const term (&terms)[Most], local_index begin, local_index end,
                          std::integer_sequence<local_index, K...>) const {
    ((begin <= K && K < end ? fold.add(now.total, terms[K], now.row, now.pack) : void()), ...);
  }
};

/// Thread (share, v) joins the parts of the row that begins in its share and ends in a later one.
template <class Fold>
struct merge_shares {
  using sum = typename Fold::sum;

  Fold fold;
  const row_cut* cuts;
  local_index packs;
  const sum* heads;
  const sum* tails;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(static_cast<std::uint32_t>(thread), packs);
    const row_cut begin = cuts[at.row], end = cuts[at.row + 1];
    if (end.done == 0 || (begin.row == end.row && begin.done > 0)) return;
    sum total = tails[thread];
    local_index next = at.row + 1;
    for (; cuts[next + 1].row == end.row; ++next) fold.merge(total, tails[part(next, at.col)]);
    fold.merge(total, heads[part(next, at.col)]);
    fold.store(total, end.row, at.col);
  }

 private:
  constexpr std::int64_t part(local_index share, local_index pack) const {
    return std::int64_t{share} * packs + pack;
  }
};

/// Per-queue workspace of folds.
struct fold_memory {
  explicit fold_memory(const device_queue<cuda_device>&) {}

  buffer<std::byte, cuda_device> bytes;
};

/// Cuts the rows of `a` into shares and calls fold_all(cuts, heads, tails), which has to enqueue the fold of
/// every share for `packs` packs of columns as fold_shares does; joins what it leaves.
template <class Fold, class F>
void in_shares(const device_queue<cuda_device>& q, const pattern_rows& a, local_index packs,
               std::int64_t shares, const Fold& fold, const F& fold_all) {
  using sum = typename Fold::sum;
  const auto parts = std::is_empty_v<sum> ? std::size_t{0} : static_cast<std::size_t>(shares * packs);
  auto& bytes = q.resource<fold_memory>().bytes;
  bytes.reset(q, 2 * parts * sizeof(sum) + static_cast<std::size_t>(shares + 1) * sizeof(row_cut));
  sum* const heads = reinterpret_cast<sum*>(bytes.data());
  sum* const tails = heads + parts;
  const auto [cuts, joins] = cuts_of(q, a, shares, reinterpret_cast<row_cut*>(tails + parts));
  fold_all(cuts, heads, tails);
  if constexpr (!std::is_empty_v<sum>)
    if (joins && shares > 1)
      on_cuda::launch(q, shares * packs, merge_shares<Fold>{fold, cuts, packs, heads, tails});
}

/// Folds every row of `a` for each of `packs` packs of columns, in so many shares. `skew` is the offset of
/// the column array from 16-byte alignment, in elements.
template <row_fold Fold>
void fold_rows(const device_queue<cuda_device>& q, const pattern_rows& a, local_index packs, int skew,
               const Fold& fold, std::int64_t shares) {
  if (a.rows == 0 || packs == 0) return;
  in_shares(q, a, packs, shares, fold, [&](const row_cut* cuts, auto* heads, auto* tails) {
    on_cuda::launch(q, shares * packs, fold_shares<Fold>{fold, a.offsets, cuts, packs, skew, heads, tails});
  });
}
template <row_fold Fold>
void fold_rows(const device_queue<cuda_device>& q, const pattern_rows& a, local_index packs, int skew,
               const Fold& fold) {
  fold_rows(q, a, packs, skew, fold, share_count(a, std::max(packs, 1)));
}

}  // namespace partita::on_cuda
