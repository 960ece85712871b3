// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operands of passes over the entries of a sparse pattern, and what of them passes through the window of far
/// memory.

#include <array>
#include <cstddef>
#include <type_traits>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/far_chunks.hpp"
#include "partita/local/far_cut.hpp"
#include "partita/local/view.hpp"

namespace partita::local {

/// Values of the entries of a pattern, `width` of them for each: (entries x width), entry e as in the
/// pattern's offsets.
template <class T>
struct entry_operand {
  T* data;
  local_index width;
  bool is_read, is_written;
};
template <class T>
entry_operand<const T> reads_entries(const T* values, local_index width) {
  return {values, width, true, false};
}
template <class T>
entry_operand<T> writes_entries(T* values, local_index width) {
  return {values, width, false, true};
}
template <class T>
entry_operand<T> updates_entries(T* values, local_index width) {
  return {values, width, true, true};
}
/// What becomes of the values is left open: results are not brought back.
template <class T>
entry_operand<T> consumes_entries(T* values, local_index width) {
  return {values, width, true, false};
}
/// Memory for values of the entries, with any values.
template <class T>
entry_operand<T> scratch_entries(T* values, local_index width) {
  return {values, width, false, false};
}

/// Rows of which each chunk gets copies that it may change.
template <class T>
struct copied_rows {
  matrix_view<const T> view;
};
template <class T>
copied_rows<T> copies(matrix_view<const T> x) {
  return {x};
}

/// Rows that the columns of the pattern index: gathered for each chunk, or the sums of the chunks are added
/// to beta times the rows.
template <class T>
struct column_operand {
  matrix_view<T> view;
  bool is_added;
  std::remove_const_t<T> beta = {};
};
template <class T>
column_operand<const T> gathers(matrix_view<T> x) {
  return {x, false};
}
template <class T>
column_operand<T> adds(matrix_view<T> y, scalar<T> beta) {
  return {y, true, beta};
}

/// Rows of a pattern, or all of it.
template <class T>
struct edge_chunk {
  csr_view<T> pattern;         ///< without values; columns index what f is given of operands of columns
  csr_inverse_view inverse{};  ///< if asked for; not of all of a pattern
  const local_index* names = nullptr;    ///< if asked for: the columns of the pattern; null for all of them
  local_index first_row = 0;             ///< of the pattern
  local_index first_entry = 0;           ///< entry e of the chunk is entry first_entry + e of the pattern
  bool is_whole = true;                  ///< whether this is all of the pattern
  bool continued = false;                ///< whether the first row has entries in the chunk before
  bool continues = false;                ///< whether the last row has entries in the next chunk
  bool adds = false, has_added = false;  ///< for beta_of_columns

  /// With what f multiplies the rows that it adds to: sums of a row that lies in several chunks go on.
  constexpr T beta_of_rows(T beta) const { return continued ? T(1) : beta; }
  /// The same for operands that are added.
  constexpr T beta_of_columns(T beta) const { return adds ? T(0) : has_added ? T(1) : beta; }
};

/// What the program of a pass has beside the chunks.
struct edge_pass {
  bool names = false, inverse = false;
  friend auto operator<=>(const edge_pass&, const edge_pass&) = default;
};

namespace detail {

inline constexpr int of_entries = 0, of_rows = 1, of_columns = 2;
template <class X>
inline constexpr int edge_kind = of_entries;
template <class T>
inline constexpr int edge_kind<row_operand<T>> = of_rows;
template <class T>
inline constexpr int edge_kind<copied_rows<T>> = of_rows;
template <class T>
inline constexpr int edge_kind<column_operand<T>> = of_columns;

template <class T>
bool reads_rows(const row_operand<T>& x) {
  return x.is_read;
}
template <class T>
bool reads_rows(const copied_rows<T>&) {
  return true;
}
template <class T>
bool writes_rows(const row_operand<T>& x) {
  return x.is_written;
}
template <class T>
bool writes_rows(const copied_rows<T>&) {
  return false;
}
template <class T>
constexpr bool copies_rows(const row_operand<T>&) {
  return false;
}
template <class T>
constexpr bool copies_rows(const copied_rows<T>&) {
  return true;
}

/// The place of each operand among those of its kind.
template <class... X>
constexpr std::array<std::size_t, sizeof...(X)> places_of_operands() {
  const std::array<int, sizeof...(X)> kinds{edge_kind<X>...};
  std::array<std::size_t, sizeof...(X)> places{};
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) places[i] += kinds[j] == kinds[i] ? 1 : 0;
  return places;
}

template <class... X>
constexpr std::size_t most_of_a_kind() {
  std::size_t most = 0;
  for (const std::size_t place : places_of_operands<X...>()) most = place + 1 > most ? place + 1 : most;
  return most;
}

template <class T>
std::size_t bytes_of_row(const entry_operand<T>& x) {
  return static_cast<std::size_t>(x.width) * sizeof(T);
}
template <class X>
std::size_t bytes_of_row(const X& x) {
  return static_cast<std::size_t>(x.view.cols) * sizeof(*x.view.data);
}
template <class T>
const void* memory_of(const entry_operand<T>& x) {
  return x.data;
}
template <class X>
const void* memory_of(const X& x) {
  return x.view.data;
}

/// Calls f(operand, its place among those of its kind) for all of them.
template <class F, class... X>
void for_operands(const F& f, const X&... x) {
  constexpr auto places = places_of_operands<X...>();
  std::size_t i = 0;
  (f(x, places[i++]), ...);
}

/// What passes in a pass with these operands: nothing if none is far.
template <class T, class Channel, class... X>
far_pass_size pass_size(const Channel& c, const csr_view<T>& a, edge_pass wants, const X&... x) {
  static_assert(most_of_a_kind<X...>() <= far_pass_size::most);
  far_pass_size s;
  if (a.rows == 0) return s;
  bool some = false, added = false;
  const auto is_far = [&](const void* memory, std::size_t bytes) {
    const bool far = bytes > 0 && memory != nullptr && c.is_far(memory);
    some = some || far;
    return far;
  };
  s.structure = is_far(a.offsets, 1);
  s.structure = is_far(a.columns, a.entries == 0 ? 0 : 1) || s.structure;
  const auto note = [&](const auto& operand, std::size_t place) {
    constexpr int kind = edge_kind<std::remove_cvref_t<decltype(operand)>>;
    const std::size_t bytes = bytes_of_row(operand);
    const bool far = is_far(memory_of(operand), kind == of_entries && a.entries == 0 ? 0 : bytes);
    if constexpr (kind == of_entries) {
      s.of_entry[place] = far ? bytes : 0;
    } else if constexpr (kind == of_rows) {
      s.of_row[place] = far || copies_rows(operand) ? bytes : 0;
      s.kept[place] = far && writes_rows(operand) ? bytes : 0;
    } else {
      s.renumbers = s.renumbers || far;
      s.keeps = s.keeps || !operand.is_added;
      added = added || operand.is_added;
      s.of_column[place] = bytes;
    }
  };
  for_operands(note, x...);
  if (!some) return {};
  s.inverse = wants.inverse;
  s.renumbers = s.renumbers || s.inverse;
  s.keeps = s.keeps && s.renumbers;
  s.names = s.renumbers && (wants.names || (s.keeps && added));
  if (!s.renumbers) s.of_column = {};
  s.slot = c.slot_bytes();
  return s;
}

/// What f gets of an operand that is near.
template <class T>
T* whole(const entry_operand<T>& x) {
  return x.data;
}
template <class T>
matrix_view<T> whole(const row_operand<T>& x) {
  return x.view;
}
template <class T>
matrix_view<T> whole(const column_operand<T>& x) {
  return x.view;
}
/// These are not copied, and so not to be changed.
template <class T>
matrix_view<T> whole(const copied_rows<T>& x) {
  return {const_cast<T*>(x.view.data), x.view.rows, x.view.cols, x.view.row_stride};
}

}  // namespace detail

}  // namespace partita::local
