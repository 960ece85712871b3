// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Index types: global indices are 64-bit, local ones 32-bit; to_local() is the checked conversion.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "partita/base/error.hpp"

namespace partita {

/// Index into a global matrix.
using global_index = std::int64_t;
/// Index into the block of one rank.
using local_index = std::int32_t;

namespace base {

/// Default upper bound on the nonzeros of one sparse tile. Offsets are local indices; the margin covers
/// kernels that prefetch a few entries ahead.
inline constexpr std::size_t max_tile_entries = std::numeric_limits<local_index>::max() - 1024;

/// Narrows a global index. Throws shape_error naming `what` if it does not fit in 32 bits.
inline local_index to_local(global_index value, const char* what) {
  if (value < 0 || value > std::numeric_limits<local_index>::max())
    throw_error<shape_error>({what, " is ", value, ", which does not fit in a 32-bit local index"});
  return static_cast<local_index>(value);
}

}  // namespace base

/// Half-open range [begin, end) of global indices.
struct interval {
  global_index begin = 0;
  global_index end = 0;

  constexpr global_index size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(global_index i) const { return begin <= i && i < end; }
  friend constexpr bool operator==(interval, interval) = default;
  /// Intersection; empty (begin == end) if the intervals are disjoint.
  friend constexpr interval intersection(interval a, interval b) {
    const global_index begin = a.begin > b.begin ? a.begin : b.begin;
    const global_index end = a.end < b.end ? a.end : b.end;
    return end < begin ? interval{begin, begin} : interval{begin, end};
  }
};

/// Rows and columns of a global matrix.
struct matrix_shape {
  global_index rows = 0;
  global_index cols = 0;

  friend constexpr bool operator==(matrix_shape, matrix_shape) = default;
};

inline std::string to_string(matrix_shape e) { return base::sentence_of({e.rows, " x ", e.cols}); }

namespace base {

/// Part `index` of `parts` nearly equal ones, the longer ones first.
constexpr interval part_of(interval whole, global_index index, global_index parts) {
  const global_index size = whole.size() / parts, longer = whole.size() % parts;
  const auto begin = [&](global_index p) { return whole.begin + p * size + (p < longer ? p : longer); };
  return {begin(index), begin(index + 1)};
}

/// `size` rounded up to one of four sizes between two powers of two. From 4 on.
constexpr std::size_t size_class(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 4;
  return (size + step - 1) / step * step;
}

/// Calls make(), which allocates an operand of this shape. Rethrows an allocation failure as error, or as
/// device_error, naming operand and shape.
template <class Make>
auto with_memory_for(const char* operand, matrix_shape shape, Make make) {
  constexpr const char* too_large = " does not fit into memory";
  try {
    return make();
  } catch (const std::bad_alloc&) {
    throw_error<error>({operand, " of ", shape, too_large});
  } catch (const std::length_error&) {  // std::vector, for sizes beyond max_size()
    throw_error<error>({operand, " of ", shape, too_large});
  } catch (const device_error& e) {
    throw_error<device_error>({operand, " of ", shape, ": ", e.what()});
  }
}

}  // namespace base

}  // namespace partita
