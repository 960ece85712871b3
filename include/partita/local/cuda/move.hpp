#pragma once
/// Copies of blocks: into blocks, into and out of contiguous memory, by lists of rows.

#include <span>
#include <type_traits>

#include "partita/local/cuda/assign.hpp"
#include "partita/local/shapes.hpp"

namespace partita::gpu {

template <class T>
struct copied {
  matrix_view<const T> from;

  template <int Width>
  constexpr pack<T, Width> at(local_index i, local_index j) const {
    return load<Width>(from.row(i) + j);
  }
};

template <class T>
struct copied_from_rows {
  matrix_view<const T> from;
  const local_index* rows;

  template <int Width>
  constexpr pack<T, Width> at(local_index i, local_index j) const {
    return load<Width>(from.row(rows[i]) + j);
  }
};

template <class T>
struct everywhere {
  T value;

  template <int Width>
  constexpr pack<T, Width> at(local_index, local_index) const {
    pack<T, Width> values{};
    for (T& element : values.at) element = value;
    return values;
  }
};

struct move_kernels {
  /// to = from. Both (m, n), not overlapping. Throws shape_error when the shapes differ.
  template <class T>
  static void copy(const queue<cuda>& q, std::type_identity_t<matrix_view<const T>> from, matrix_view<T> to) {
    require_equal("copy", "from", shape_of(from), "to", shape_of(to));
    assign(q, to, copied<T>{from}, from);
  }

  /// y(i, j) = value. y is (m, n). Throws nothing.
  template <class T>
  static void fill(const queue<cuda>& q, std::type_identity_t<T> value, matrix_view<T> y) {
    assign(q, y, everywhere<T>{value});
  }

  /// to[i n + j] = from(i, j). from is (m, n), to has m n elements. Throws nothing.
  template <class T>
  static void pack(const queue<cuda>& q, std::type_identity_t<matrix_view<const T>> from, T* to) {
    copy(q, from, matrix_view<T>{to, from.rows, from.cols, from.cols});
  }

  /// to(i, j) = from[i n + j]. to is (m, n), from has m n elements. Throws nothing.
  template <class T>
  static void unpack(const queue<cuda>& q, const std::type_identity_t<T>* from, matrix_view<T> to) {
    copy(q, matrix_view<const T>{from, to.rows, to.cols, to.cols}, to);
  }

  /// to[i n + j] = from(rows[i], j). from is (m, n), to has rows.size() n elements, every rows[i] is below m;
  /// rows is in the device's memory. Throws shape_error when there are more rows than a local index counts.
  template <class T>
  static void gather_rows(const queue<cuda>& q, std::type_identity_t<matrix_view<const T>> from,
                          std::span<const local_index> rows, T* to) {
    const local_index count = narrow(static_cast<global_index>(rows.size()), "the number of gathered rows");
    assign(q, matrix_view<T>{to, count, from.cols, from.cols}, copied_from_rows<T>{from, rows.data()}, from);
  }
};

}  // namespace partita::gpu
