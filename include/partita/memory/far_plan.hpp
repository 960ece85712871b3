// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The chunks of a sparse block, and what is read once to pass through them again and again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far.hpp"
#include "partita/memory/far_cut.hpp"
#include "partita/memory/far_reuse.hpp"
#include "partita/memory/index_reader.hpp"
#include "partita/memory/large_list.hpp"

namespace partita::local {

namespace detail {

/// Lists and renumbers the columns of chunks, one after the other.
class far_numbering {
 public:
  explicit far_numbering(local_index cols)
      : seen_(static_cast<std::size_t>(cols), -1), place_(static_cast<std::size_t>(cols)) {}

  /// The columns of the next chunk, each once, ascending; as many as the list has elements.
  void list(std::span<const local_index> columns, std::span<local_index> list) {
    std::size_t count = 0;
    for (const local_index c : columns)
      if (std::exchange(seen_[at(c)], number_) != number_) list[count++] = c;
    if (list.size() < seen_.size() / 32)
      std::ranges::sort(list);
    else
      for (std::size_t c = count = 0; c < seen_.size(); ++c)
        if (seen_[c] == number_) list[count++] = static_cast<local_index>(c);
    ++number_;
  }
  /// Column list[i] is in the table at places[i] from now on, or, without places, at i.
  void place(std::span<const local_index> list, std::span<const local_index> places = {}) {
    for (std::size_t i = 0; i < list.size(); ++i)
      place_[at(list[i])] = places.empty() ? static_cast<local_index>(i) : places[i];
  }
  void renumber(std::span<local_index> columns) const {
    for (local_index& c : columns) c = place_[at(c)];
  }

 private:
  static std::size_t at(local_index c) { return static_cast<std::size_t>(c); }

  std::vector<local_index> seen_, place_;  ///< of each column: the last chunk that has it, and where it is
  local_index number_ = 0;
};

/// The transpose of a pattern (m x n): the rows of the entries of each column, ascending, and the numbers
/// that these entries have in the pattern.
template <class Device>
struct turned_pattern {
  large_list<local_index> offsets, rows, numbers;
  local_index end;  ///< of these numbers

  turned_pattern(const device_queue<Device>& q, local_index m, local_index n, const local_index* row_offsets,
                 const local_index* columns)
      : offsets(static_cast<std::size_t>(n) + 1, 0, list_memory(q)),
        rows(list_memory(q)),
        numbers(list_memory(q)),
        end(0) {
    large_list<local_index> begins(static_cast<std::size_t>(m) + 1, list_memory(q));
    copy(q, std::span<const local_index>(row_offsets, begins.size()), std::span<local_index>(begins));
    const local_index first = begins.front();
    end = begins.back();
    rows.resize(static_cast<std::size_t>(end - first));
    numbers.resize(rows.size());
    index_reader<Device> column(q, columns, end);
    for (local_index e = first; e < end; ++e) ++offsets[static_cast<std::size_t>(column[e]) + 1];
    std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
    large_list<local_index> next(offsets);
    for (local_index i = 0, e = first; i < m; ++i)
      for (; e < begins[static_cast<std::size_t>(i) + 1]; ++e) {
        const auto t = static_cast<std::size_t>(next[static_cast<std::size_t>(column[e])]++);
        rows[t] = i;
        numbers[t] = e;
      }
  }
};

}  // namespace detail

/// The chunks of a block and their indices. Made once for a block and size; the values of A may change.
template <class Device>
class far_plan {
 public:
  /// Reads the structure of A, (m + 1) offsets and columns below `cols`, three times, and keeps a copy of it
  /// in a buffer of the queue; if `size` is turned, `offsets` and `columns` are those of the transpose of A.
  /// Throws budget_error if the window does not hold one entry with its rows twice.
  far_plan(const device_queue<Device>& q, local_index rows, local_index cols, const local_index* offsets,
           const local_index* columns, const pass_layout& size)
      : size_(size), rows_(static_cast<std::uint64_t>(rows)), columns_(static_cast<std::uint64_t>(cols)) {
    if (rows == 0) return;
    std::optional<detail::turned_pattern<Device>> turned;
    if (size.turned) {
      turned.emplace(q, cols, rows, offsets, columns);
      numbers_end_ = turned->end;
      offsets = turned->offsets.data();
      columns = turned->rows.data();
    }
    large_list<local_index> all(static_cast<std::size_t>(rows) + 1, list_memory(q));
    copy(q, std::span<const local_index>(offsets, all.size()), std::span<local_index>(all));
    chunks_ = detail::far_cut<Device>(q, all, columns, cols, size)();
    detail::far_numbering number(size.renumbers ? cols : 0);
    large_list<local_index> lists(list_memory(q)), places(list_memory(q));
    list_rows(q, columns, number, lists);
    if (size.places > 0) keep_rows(cols, lists, places);
    std::size_t end = 0, listed = 0;
    for (far_chunk& c : chunks_) {
      c.indices = end;
      end += index_layout(size, c).end;
    }
    indices_ = buffer<local_index, Device>(q, end);
    large_list<local_index> indices(list_memory(q));
    for (const far_chunk& c : chunks_) {
      const index_layout part(size, c);
      indices.assign(part.end, 0);
      const std::span<local_index> to(indices);
      for (local_index i = 0; i <= c.rows; ++i)
        to[static_cast<std::size_t>(i)] =
            std::clamp(all[static_cast<std::size_t>(c.first_row + i)] - c.first_entry, 0, c.entries);
      if (size.renumbers) {
        const auto own = to.subspan(part.columns, static_cast<std::size_t>(c.entries));
        const auto loaded = static_cast<std::size_t>(c.loaded);
        const std::span<const local_index> list = std::span<const local_index>(lists).subspan(listed, loaded),
                                           at = std::span<const local_index>(places).subspan(
                                               size.places > 0 ? listed : 0, size.places > 0 ? loaded : 0);
        copy(q, std::span<const local_index>(columns + c.first_entry, own.size()), own);
        number.place(list, at);
        number.renumber(own);
        std::ranges::copy(list, to.begin() + static_cast<std::ptrdiff_t>(part.list));
        std::ranges::copy(at, to.begin() + static_cast<std::ptrdiff_t>(part.places));
        listed += static_cast<std::size_t>(c.needed);
      }
      if (size.inverse) invert(c, part, to);
      if (turned) place_entries(turned->numbers, c, part, to);
      copy(q, std::span<const local_index>(to), indices_.span().subspan(c.indices, part.end));
      visited_ += static_cast<std::uint64_t>(c.rows);
      entries_ += static_cast<std::uint64_t>(c.entries);
      loaded_ += static_cast<std::uint64_t>(c.loaded);
    }
  }

  const pass_layout& size() const { return size_; }
  std::span<const far_chunk> chunks() const { return chunks_; }
  std::span<const local_index> indices() const { return indices_.span(); }
  /// Rows of the operands of columns, if these are renumbered and not counted yet, and how many are read for
  /// all chunks.
  std::uint64_t operand_rows() const { return size_.renumbers && !size_.later_part ? columns_ : 0; }
  std::uint64_t rows_read() const { return loaded_; }
  /// Rows and columns of A, rows of all chunks, which are those of A, some of them more than once, and
  /// entries.
  std::uint64_t rows() const { return rows_; }
  std::uint64_t columns() const { return columns_; }
  std::uint64_t rows_visited() const { return visited_; }
  std::uint64_t entries() const { return entries_; }
  /// In a transpose, the end of the numbers that its entries have in the pattern.
  local_index numbers_end() const { return numbers_end_; }

  /// "of A (6000 x 6000, 66000 entries) and 16 columns, in chunks of 812 to 940 rows and 9000 to 9420
  /// entries"; of columns it says nothing if `width` is less than 0.
  std::string explain(local_index width) const {
    const auto range = [&](local_index far_chunk::*count) {
      const auto [least, most] = std::ranges::minmax_element(chunks_, {}, count);
      return std::to_string((*least).*count) + " to " + std::to_string((*most).*count);
    };
    std::string text = base::sentence_of({"of A (", rows_, " x ", columns_, ", ", entries_, " entries)"});
    if (width >= 0) text += base::sentence_of({" and ", width, width == 1 ? " column" : " columns"});
    if (chunks_.empty()) return text;
    return text + ", in chunks of " + range(&far_chunk::rows) + " rows and " + range(&far_chunk::entries) +
           " entries";
  }

  /// What passes of the structure of A and of the indices of the chunks in one pass, and what is counted of
  /// it. `far_indices`: whether these indices are far.
  memory::far_traffic of_structure(bool far_indices) const {
    memory::far_traffic t;
    t.chunks = chunks_.size();
    t.operations = chunks_.empty() ? 0 : 1;
    t.near = entries_ * sizeof(local_index);
    t.operand_rows = operand_rows();
    t.rows_read = loaded_;
    if (far_indices) t.read += indices_.size() * sizeof(local_index);
    if (size_.structure && !size_.renumbers) t.read += entries_ * sizeof(local_index);
    return t;
  }

 private:
  /// The rows N_j of all chunks, one after the other.
  void list_rows(const device_queue<Device>& q, const local_index* columns, detail::far_numbering& number,
                 large_list<local_index>& lists) const {
    if (!size_.renumbers) return;
    std::size_t count = 0, listed = 0;
    for (const far_chunk& c : chunks_) count += static_cast<std::size_t>(c.needed);
    lists.resize(count);
    large_list<local_index> own(list_memory(q));
    for (const far_chunk& c : chunks_) {
      own.resize(static_cast<std::size_t>(c.entries));
      copy(q, std::span<const local_index>(columns + c.first_entry, own.size()), std::span<local_index>(own));
      number.list(own, std::span<local_index>(lists).subspan(listed, static_cast<std::size_t>(c.needed)));
      listed += static_cast<std::size_t>(c.needed);
    }
  }
  /// Of them, those that each chunk loads come first, with their places.
  void keep_rows(local_index cols, large_list<local_index>& lists, large_list<local_index>& places) {
    std::vector<local_index> sizes;
    for (const far_chunk& c : chunks_) sizes.push_back(c.needed);
    places.resize(lists.size());
    find_next_chunks(sizes, lists, cols, places);
    kept_rows kept(cols, size_.places);
    std::size_t listed = 0;
    for (far_chunk& c : chunks_) {
      const auto needed = static_cast<std::size_t>(c.needed);
      c.loaded = kept(std::span<local_index>(lists).subspan(listed, needed),
                      std::span<local_index>(places).subspan(listed, needed));
      listed += needed;
    }
  }
  /// The inverse of a chunk, by a counting sort.
  static void invert(const far_chunk& c, const index_layout& part, std::span<local_index> indices) {
    local_index* const next = indices.data() + part.inverse;
    local_index* const rows = indices.data() + part.inverse_rows(c);
    local_index* const numbers = indices.data() + part.inverse_numbers(c);
    const local_index* const columns = indices.data() + part.columns;
    for (local_index e = 0; e < c.entries; ++e) ++next[columns[e] + 1];
    std::inclusive_scan(next, next + c.needed + 1, next);
    for (local_index i = 0; i < c.rows; ++i)
      for (local_index e = indices[static_cast<std::size_t>(i)]; e < indices[static_cast<std::size_t>(i) + 1];
           ++e) {
        const local_index t = next[columns[e]]++;
        rows[t] = i;
        numbers[t] = e;
      }
    for (local_index k = c.needed; k > 0; --k) next[k] = next[k - 1];
    next[0] = 0;
  }

  static void place_entries(std::span<const local_index> numbers, const far_chunk& c,
                            const index_layout& part, std::span<local_index> indices) {
    const auto count = static_cast<std::size_t>(c.entries);
    const auto own = numbers.subspan(static_cast<std::size_t>(c.first_entry), count);
    const auto list = indices.subspan(part.inverse, count),
               places = indices.subspan(part.turned_places(c), count);
    std::ranges::copy(own, list.begin());
    std::ranges::sort(list);
    for (std::size_t t = 0; t < count; ++t)
      places[t] = static_cast<local_index>(std::ranges::lower_bound(list, own[t]) - list.begin());
  }

  pass_layout size_;
  std::vector<far_chunk> chunks_;
  buffer<local_index, Device> indices_;
  std::uint64_t rows_, columns_, visited_ = 0, entries_ = 0, loaded_ = 0;
  local_index numbers_end_ = 0;
};

}  // namespace partita::local
