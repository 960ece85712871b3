// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vectorised loads and stores, and index arithmetic for kernels.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// `Width` elements, aligned to their total size: one load or store.
template <class T, int Width>
struct alignas(Width * sizeof(T)) pack_of {
  T at[Width];

  constexpr pack_of& operator+=(const pack_of& other) {
    for (int c = 0; c < Width; ++c) at[c] += other.at[c];
    return *this;
  }
};

/// Number of elements in 16 bytes, the widest single load.
template <class T>
inline constexpr int widest = 16 / static_cast<int>(sizeof(T));

template <int Width, class T>
constexpr pack_of<std::remove_const_t<T>, Width> load(T* from) {
  return *reinterpret_cast<const pack_of<std::remove_const_t<T>, Width>*>(from);
}

template <int Width, class T>
constexpr void store(const pack_of<T, Width>& value, T* to) {
  *reinterpret_cast<pack_of<T, Width>*>(to) = value;
}

/// A block whose rows are gathered. The 32-bit byte stride makes address computation a single instruction.
template <class T>
struct row_table {
  const T* data = nullptr;
  std::int32_t stride = 0;  // in bytes

  constexpr const T* at(local_index i, local_index j) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(data + j) +
                                      std::int64_t{i} * stride);
  }
};

/// Throws shape_error if the stride in bytes does not fit in 32 bits.
template <class T>
row_table<T> table_of(const matrix_view<const T>& x) {
  const std::ptrdiff_t stride = x.rows <= 1 ? 0 : x.row_stride * static_cast<std::ptrdiff_t>(sizeof(T));
  return {x.data, base::to_local(stride, "the stride in bytes of a block whose rows are gathered")};
}

/// Offset of `p`, in elements, from an address aligned to `width` elements.
template <class T>
int skew(const T* p, int width) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T) %
                          static_cast<std::uintptr_t>(width));
}

/// Whether every row starts at an address aligned to `width` elements.
template <class T>
bool aligned(const matrix_view<T>& view, int width) {
  return skew(view.data, width) == 0 && (view.rows <= 1 || view.row_stride % width == 0);
}

/// Whether every pack of `width` columns of the slice is within one head.
inline bool aligned(const local::head_slice& s, int width) {
  return s.head_width % width == 0 && s.first_col % width == 0;
}

/// Calls f(W) with the vector width W as a compile-time constant: the largest of Widest, Next, Next / 2, ...,
/// 1 that divides `cols` and to which all operands are aligned.
template <int Widest, int Next = Widest / 2, class F, class... Views>
void with_width(local_index cols, const F& f, const Views&... operands) {
  if constexpr (Widest > 1)
    if (cols % Widest != 0 || !(aligned(operands, Widest) && ...))
      return with_width<Next>(cols, f, operands...);
  f(std::integral_constant<int, Widest>{});
}

/// Row and column of an element in row-major order.
struct cell {
  local_index row, col;
};

/// Element number `count` of a block with `cols` columns.
constexpr cell cell_of(std::uint32_t count, local_index cols) {
  const auto width = static_cast<std::uint32_t>(cols);
  return {static_cast<local_index>(count / width), static_cast<local_index>(count % width)};
}
constexpr cell cell_of(std::int64_t thread, local_index cols) {
  // 32-bit division takes a third of the time.
  if (thread >> 32 == 0) return cell_of(static_cast<std::uint32_t>(thread), cols);
  return {static_cast<local_index>(thread / cols), static_cast<local_index>(thread % cols)};
}

/// a / b, rounded up.
constexpr std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace partita::on_cuda
