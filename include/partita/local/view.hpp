// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Non-owning, trivially copyable views of local blocks, the arguments of kernels.

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "partita/base/index.hpp"

namespace partita::local {

/// A row-major dense block: element (i, j) is at data[i * row_stride + j], without gaps between rows unless a
/// stride is given. Follows the interface of
/// std::mdspan and converts to it.
template <class T>
struct matrix_view {
  using element_type = T;
  using index_type = local_index;

  T* data = nullptr;
  local_index rows = 0;
  local_index cols = 0;
  std::ptrdiff_t row_stride = cols;

  static constexpr std::size_t rank() { return 2; }
  /// Number of rows (r = 0) or columns (r = 1), and the stride along that dimension.
  constexpr local_index extent(std::size_t r) const { return r == 0 ? rows : cols; }
  constexpr std::ptrdiff_t stride(std::size_t r) const { return r == 0 ? row_stride : 1; }
  constexpr T* data_handle() const { return data; }
  constexpr T& operator()(local_index i, local_index j) const { return data[i * row_stride + j]; }

  /// Row i, as a span and as a pointer.
  constexpr std::span<T> row(local_index i) const { return {row_data(i), static_cast<std::size_t>(cols)}; }
  constexpr T* row_data(local_index i) const { return data + i * row_stride; }
  /// Where it has no elements, it may begin anywhere.
  constexpr matrix_view block(local_index row, local_index col, local_index block_rows,
                              local_index block_cols) const {
    const bool empty = block_rows == 0 || block_cols == 0;
    return {empty ? data : data + row * row_stride + col, block_rows, block_cols, row_stride};
  }

  /// Conversion to a read-only view.
  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) constexpr operator matrix_view<U>() const {
    return {data, rows, cols, row_stride};
  }
  /// Conversion to std::mdspan, or an implementation with the same interface, with layout_stride.
  template <class Mdspan>
  requires(std::is_convertible_v<T*, typename Mdspan::data_handle_type>&& Mdspan::rank() == 2) constexpr
  operator Mdspan() const {
    using mapping = typename Mdspan::mapping_type;
    using index = typename Mdspan::index_type;
    using strides = decltype(std::declval<const mapping&>().strides());
    return Mdspan(data,
                  mapping(typename Mdspan::extents_type(static_cast<index>(rows), static_cast<index>(cols)),
                          strides{static_cast<index>(row_stride), 1}));
  }
};

/// Size of a buffer with the offsets of `count` tiles of `rows` rows and `more` further offsets, padded so
/// that the column indices that follow are 16-byte aligned, for vector loads and vendor libraries.
constexpr std::size_t offsets_size(std::size_t count, local_index rows, std::size_t more = 0) {
  return (count * (static_cast<std::size_t>(rows) + 1) + more + 3) / 4 * 4;
}

/// A CSR block: the entries of row i are [offsets[i], offsets[i + 1]). Without values, the entry (i, j) is
/// row_factors[i] column_factors[j], where a null factor is 1, and products need a call of multiply_factors
/// before.
template <class T>
struct csr_view {
  local_index rows = 0;
  local_index cols = 0;
  const local_index* offsets = nullptr;  // (rows + 1), offsets[0] need not be 0
  const local_index* columns = nullptr;
  const T* values = nullptr;
  local_index entries = -1;           // number of entries if known without reading offsets, else -1
  const T* row_factors = nullptr;     // (rows)
  const T* column_factors = nullptr;  // (cols)

  constexpr local_index nonzeros() const {
    return entries >= 0 ? entries : rows == 0 ? 0 : offsets[rows] - offsets[0];
  }
};

/// Non-deduced kernel parameters, so that arguments convert implicitly: a read-only dense view, a read-only
/// CSR view, and a scalar (also as the element type of a pointer).
template <class T>
using input_view = std::type_identity_t<matrix_view<const T>>;
template <class T>
using input_csr = std::type_identity_t<csr_view<T>>;
template <class T>
using scalar = std::type_identity_t<T>;

}  // namespace partita::local

namespace partita {

using local::matrix_view;

}  // namespace partita
