#pragma once
/// Neighbouring elements that a thread of a device loads and stores as one, and the cells of a block that
/// threads count through.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::gpu {

/// `Width` elements at an address that is a multiple of their size: one load, one store.
template <class T, int Width>
struct alignas(Width * sizeof(T)) pack {
  T at[Width];
};

/// Elements in 16 bytes, the most that one instruction loads.
template <class T>
inline constexpr int widest = 16 / static_cast<int>(sizeof(T));

template <int Width, class T>
constexpr pack<std::remove_const_t<T>, Width> load(T* from) {
  return *reinterpret_cast<const pack<std::remove_const_t<T>, Width>*>(from);
}

template <int Width, class T>
constexpr void store(const pack<T, Width>& value, T* to) {
  *reinterpret_cast<pack<T, Width>*>(to) = value;
}

/// Elements by which `p` lies beyond a multiple of `width` elements in memory.
template <class T>
int skew(const T* p, int width) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T) %
                          static_cast<std::uintptr_t>(width));
}

/// Whether every row begins at a multiple of `width` elements in memory.
template <class T>
bool aligned(const matrix_view<T>& view, int width) {
  return skew(view.data, width) == 0 && (view.rows <= 1 || view.stride % width == 0);
}

/// Whether packs of `width` columns of a slice lie each within one head.
inline bool aligned(const head_slice& s, int width) {
  return s.head_width % width == 0 && s.first_col % width == 0;
}

/// f(W), W the compile-time number of elements that a thread moves at once: the largest of at most `Widest`
/// that divides `cols` and to which all operands are aligned.
template <int Widest, class F, class... Views>
void with_width(local_index cols, const F& f, const Views&... operands) {
  if constexpr (Widest > 1)
    if (cols % Widest != 0 || !(aligned(operands, Widest) && ...))
      return with_width<Widest / 2>(cols, f, operands...);
  f(std::integral_constant<int, Widest>{});
}

/// A place in a block whose cells are counted row after row.
struct cell {
  local_index row, col;
};

/// Cell number `count` of a block with `cols` columns.
constexpr cell cell_of(std::uint32_t count, local_index cols) {
  const auto width = static_cast<std::uint32_t>(cols);
  return {static_cast<local_index>(count / width), static_cast<local_index>(count % width)};
}
constexpr cell cell_of(std::int64_t thread, local_index cols) {
  // Divisions of 32 bits take a third of the time.
  if (thread >> 32 == 0) return cell_of(static_cast<std::uint32_t>(thread), cols);
  return {static_cast<local_index>(thread / cols), static_cast<local_index>(thread % cols)};
}

/// `a / b`, rounded up.
constexpr std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace partita::gpu
