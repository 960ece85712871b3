// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cuts a sparse block into chunks that pass through the window of far memory.
///
/// A chunk has consecutive rows of A (m x k), as many as fit a slot together with the rows N_j of the
/// operands that their columns index (X of A X, Y of A^T X). Its columns are renumbered to tables of these
/// rows. If rows are only gathered, all chunks share a table, which takes most of the window, and rows stay
/// in it (see kept_rows); if some are added to, each chunk has its own table in its slot, and loads all of
/// it.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2, chunks of destination vertices.

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"
#include "partita/memory/index_reader.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

/// Which parts of A and its operands pass through a slot of the window. The bytes of an operand are those of
/// an entry, a row or a column, and 0 if it does not pass.
struct pass_layout {
  static constexpr std::size_t most = 12;  ///< operands
  using bytes = std::array<std::size_t, most>;

  bool structure = false;       ///< whether that of A is far
  bool renumbers = false;       ///< whether columns are renumbered, which makes all operands of columns pass
  bool global_columns = false;  ///< whether each row of a table has the number of its column
  bool inverse = false;         ///< whether it has the inverse of the chunk; needs renumbered columns
  bool turned = false;          ///< whether A is the transpose of the pattern, whose entries are gathered
  bytes of{};
  std::array<along, most> has{};
  bytes kept{};             ///< of a row that lies in several chunks
  std::size_t slot = 0;     ///< bytes of half of the window
  local_index places = 0;   ///< rows of the table that chunks share; 0: they share none
  bool later_part = false;  ///< whether A continues a block, whose first part has counted the operands' rows

  friend auto operator<=>(const pass_layout&, const pass_layout&) = default;
};

/// How a pass by rows divides the rows of far operands: into `chunks` chunks of at most `most` rows. Both are
/// 0 if the window cannot hold two rows of each operand.
struct far_row_cut {
  std::size_t most = 0, chunks = 0;

  /// For `rows` rows of `row_bytes` bytes in all far operands together, through slots of `slot` bytes; only
  /// `best` bytes of a slot are used if these hold a row.
  constexpr far_row_cut(std::size_t rows, std::size_t row_bytes, std::size_t operands, std::size_t slot,
                        std::size_t best) {
    const std::size_t lost = operands * far_options::alignment;
    const std::size_t used = std::min(slot, std::max(best, lost + row_bytes));
    if (row_bytes == 0 || used < lost + row_bytes) return;
    most = (used - lost) / row_bytes;
    chunks = (rows + most - 1) / most;
  }
};

/// Rows of A, or entries of one row that do not fit at once.
struct far_chunk {
  local_index first_row = 0, rows = 0;
  local_index first_entry = 0, entries = 0;  ///< as the offsets of A count them
  local_index needed = 0;                    ///< |N_j|
  local_index loaded = 0;                    ///< of them: those that are read; all where no table is shared
  bool splits_first_row = false,
       splits_last_row = false;  ///< whether the previous and the next chunk have the same row
  std::size_t indices = 0;       ///< where its indices begin
};

/// Where the parts of a chunk lie in a slot, in bytes. A part that does not pass through has no bytes.
struct far_slot {
  std::size_t columns = 0;  ///< of A; the indices are at 0
  pass_layout::bytes of{};
  std::size_t end = 0;
};

/// Where the parts of a chunk are in its indices: (rows + 1) offsets that begin with 0; then, if columns are
/// renumbered, those to load, ascending; their places in a shared table; the renumbered columns; the inverse
/// of the chunk, or, in a transpose, the numbers that its entries have in the pattern, ascending, and the
/// place of each among these.
struct index_layout {
  std::size_t list, places, columns, inverse, end;

  index_layout(const pass_layout& s, const far_chunk& c)
      : list((static_cast<std::size_t>(c.rows) + 4) / 4 * 4),
        places(after(list, s.renumbers, c.loaded)),
        columns(after(places, s.places > 0, c.loaded)),
        inverse(after(columns, s.renumbers, c.entries)),
        end(s.inverse  ? inverse_numbers(c) + padded(c.entries)
            : s.turned ? turned_places(c) + padded(c.entries)
                       : inverse) {}

  std::size_t inverse_rows(const far_chunk& c) const { return inverse + padded(c.needed + 1); }
  std::size_t inverse_numbers(const far_chunk& c) const { return inverse_rows(c) + padded(c.entries); }
  std::size_t turned_places(const far_chunk& c) const { return inverse + padded(c.entries); }

 private:
  static std::size_t padded(local_index n) { return (static_cast<std::size_t>(n) + 3) / 4 * 4; }
  static std::size_t after(std::size_t begin, bool is_there, local_index n) {
    return is_there ? begin + padded(n) : begin;
  }
};

/// The bytes of a slot for this many rows.
constexpr std::size_t part_bytes(std::size_t count, std::size_t bytes) {
  return (count * bytes + far_options::alignment - 1) / far_options::alignment * far_options::alignment;
}

/// The parts of a chunk in a slot.
inline far_slot slot_of(const pass_layout& s, const far_chunk& c) {
  far_slot at;
  at.columns = at.end = part_bytes(index_layout(s, c).end, sizeof(local_index));
  if (s.structure && !s.renumbers)
    at.end += part_bytes(static_cast<std::size_t>(c.entries), sizeof(local_index));
  for (std::size_t i = 0; i < s.of.size(); ++i) {
    at.of[i] = at.end;
    const local_index count = s.has[i] == along::rows      ? c.rows
                              : s.has[i] == along::entries ? c.entries
                              : s.places == 0              ? c.needed
                                                           : 0;
    at.end += part_bytes(static_cast<std::size_t>(count), s.of[i]);
  }
  return at;
}
/// Bytes at the end of a slot for those rows of the operands from number `first` on that lie in several
/// chunks.
constexpr std::size_t kept_bytes(const pass_layout& s, std::size_t first = 0) {
  std::size_t kept = 0;
  for (std::size_t i = first; i < s.kept.size(); ++i) kept += part_bytes(1, s.kept[i]);
  return kept;
}
/// Where the rows of operand i begin in a shared table; the column numbers follow the rows of all operands.
constexpr std::size_t table_begin(const pass_layout& s, std::size_t i = pass_layout::most) {
  std::size_t begin = 0;
  for (std::size_t j = 0; j < i && s.places > 0; ++j)
    if (s.has[j] == along::columns) begin += part_bytes(static_cast<std::size_t>(s.places), s.of[j]);
  return begin;
}
/// Bytes of a shared table, with which the window begins.
constexpr std::size_t table_bytes(const pass_layout& s) {
  return table_begin(s) +
         part_bytes(static_cast<std::size_t>(s.places), s.global_columns ? sizeof(local_index) : 0);
}
/// Bytes of each of the two slots after the table.
constexpr std::size_t slot_bytes(const pass_layout& s) {
  const std::size_t table = table_bytes(s);
  return 2 * s.slot < table ? 0 : (2 * s.slot - table) / 2 / far_options::alignment * far_options::alignment;
}
/// Bytes of a slot that chunks may fill.
constexpr std::size_t room_of(const pass_layout& s) {
  const std::size_t kept = kept_bytes(s), slot = slot_bytes(s);
  return slot < kept ? 0 : slot - kept;
}
/// The layout with a table of rows of `cols` columns that chunks share: of all, or of as many as leave a slot
/// an eighth of the window, and an entry.
inline pass_layout with_shared_table(pass_layout s, local_index cols) {
  s.places = 1;
  const std::size_t entry =
      slot_of(s, {.rows = 1, .entries = 1, .needed = 1, .loaded = 1}).end + kept_bytes(s);
  std::size_t row = s.global_columns ? sizeof(local_index) : 0, taken = 2 * std::max(s.slot / 4, entry);
  taken += 3 * far_options::alignment;
  for (std::size_t i = 0; i < s.of.size(); ++i)
    if (s.has[i] == along::columns) row += s.of[i], taken += far_options::alignment;
  const std::size_t room = 2 * s.slot < taken ? 0 : 2 * s.slot - taken;
  const std::size_t most = std::max<std::size_t>(2, room / std::max<std::size_t>(1, row));
  s.places = static_cast<local_index>(std::min(most, static_cast<std::size_t>(cols)));
  return s;
}
/// The most rows that a chunk may need: a shared table holds those of two chunks, or all.
constexpr local_index most_needed(const pass_layout& s, local_index cols) {
  return s.places == 0 || s.places == cols ? cols : s.places / 2;
}

namespace detail {

/// Cuts A into chunks, greedily.
template <class Device>
class far_cut {
 public:
  far_cut(const device_queue<Device>& q, std::span<const local_index> offsets, const local_index* columns,
          local_index cols, const pass_layout& size)
      : size_(size),
        room_(room_of(size)),
        most_(most_needed(size, cols)),
        offsets_(offsets),
        columns_(q, columns, offsets.back()) {
    if (size.renumbers) seen_.assign(static_cast<std::size_t>(cols), -1);
  }

  std::vector<far_chunk> operator()() {
    open(0, offsets_[0]);
    for (local_index i = 0; i + 1 < static_cast<local_index>(offsets_.size()); ++i) {
      if (add_row(i)) continue;
      if (now_.rows > 0) chunks_.push_back(now_);
      open(i, offsets_[static_cast<std::size_t>(i)]);
      if (!add_row(i)) split(i);
    }
    if (now_.rows > 0) chunks_.push_back(now_);
    return std::move(chunks_);
  }

 private:
  bool fits(const far_chunk& c) const { return c.needed <= most_ && slot_of(size_, c).end <= room_; }
  void open(local_index row, local_index entry) {
    now_ = {.first_row = row, .first_entry = entry};
    ++number_;
  }
  void add_entry(far_chunk& c, local_index e) {
    ++c.entries;
    if (!size_.renumbers) return;
    local_index& last = seen_[static_cast<std::size_t>(columns_[e])];
    if (std::exchange(last, number_) != number_) c.loaded = ++c.needed;
  }
  /// Whether the row still fits into the chunk; if not, the chunk must be closed or opened.
  bool add_row(local_index i) {
    const auto row = static_cast<std::size_t>(i);
    far_chunk more = now_;
    ++more.rows;
    for (local_index e = offsets_[row]; e < offsets_[row + 1]; ++e) add_entry(more, e);
    if (!fits(more)) return false;
    now_ = more;
    return true;
  }
  /// Pieces of a row that does not fit into a chunk.
  void split(local_index i) {
    const auto row = static_cast<std::size_t>(i);
    const local_index end = offsets_[row + 1];
    for (local_index e = offsets_[row]; e < end;) {
      open(i, e);
      now_.rows = 1;
      for (far_chunk more = now_; e < end; ++e) {
        add_entry(more, e);
        if (!fits(more)) break;
        now_ = more;
      }
      if (now_.entries == 0) refuse();
      now_.splits_first_row = now_.first_entry > offsets_[row];
      now_.splits_last_row = e < end;
      chunks_.push_back(now_);
    }
    if (offsets_[row] == end) refuse();
    open(i + 1, end);
  }
  [[noreturn]] void refuse() const {
    const far_chunk one{.rows = 1, .entries = 1, .needed = 1, .loaded = 1};
    const std::size_t needed = table_bytes(size_) + 2 * (slot_of(size_, one).end + kept_bytes(size_));
    const std::size_t least = far_options::least_window(needed);
    throw budget_error(base::sentence_of({"a pass over far operands takes ", needed,
                                          " bytes for one entry, which a window of near memory of ",
                                          2 * size_.slot, " bytes does not hold: it must have ", least}),
                       least);
  }

  pass_layout size_;
  std::size_t room_;
  local_index most_;
  std::span<const local_index> offsets_;
  index_reader<Device> columns_;
  std::vector<local_index> seen_;  ///< the last chunk that needs each column
  std::vector<far_chunk> chunks_;
  far_chunk now_;
  local_index number_ = 0;
};

}  // namespace detail

}  // namespace partita::local
