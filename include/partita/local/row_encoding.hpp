// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows in fewer bytes: an element in 16, 8 or 4 bits.

#include <bit>
#include <cstdint>
#include <limits>

#include "partita/base/bfloat16.hpp"
#include "partita/base/random.hpp"

namespace partita::local {

/// How rows are sent: as they are; with each number as the nearest bfloat16; or in 8 or 4 bits, as one of
/// 2^bits equidistant numbers from the least to the largest of the row.
enum class row_encoding : std::uint8_t { exact, bf16, int8, int4 };

/// "bf16".
constexpr const char* name_of(row_encoding e) {
  constexpr const char* names[] = {"exact", "bf16", "int8", "int4"};
  return names[static_cast<std::size_t>(e)];
}
constexpr int bits_of(row_encoding e) {
  return e == row_encoding::bf16 ? 16 : e == row_encoding::int8 ? 8 : 4;
}
/// What is sent for a row of n numbers: n elements, or this many bytes.
constexpr global_index sent_of_row(row_encoding e, global_index n) {
  if (e == row_encoding::exact) return n;
  return (n * bits_of(e) + 7) / 8 + (e == row_encoding::bf16 ? 0 : 4);
}

namespace detail {

/// The neighbour of x that is nearer to an infinity, upwards or downwards.
constexpr base::bfloat16 next(base::bfloat16 x, bool upwards) {
  const std::uint16_t bits = x.bits(), sign = 0x8000;
  if ((bits & ~sign) == 0) return base::bfloat16::from_bits(upwards ? 1 : sign | 1);
  const bool away = ((bits & sign) == 0) == upwards;
  return base::bfloat16::from_bits(static_cast<std::uint16_t>(away ? bits + 1 : bits - 1));
}
constexpr base::bfloat16 not_above(float x) {
  const base::bfloat16 nearest(x);
  return float{nearest} > x ? next(nearest, false) : nearest;
}
constexpr base::bfloat16 not_below(float x) {
  const base::bfloat16 nearest(x);
  return float{nearest} < x ? next(nearest, true) : nearest;
}
constexpr void put(std::uint8_t* to, base::bfloat16 x) {
  to[0] = static_cast<std::uint8_t>(x.bits() & 0xff);
  to[1] = static_cast<std::uint8_t>(x.bits() >> 8);
}
constexpr float get(const std::uint8_t* from) {
  return base::bfloat16::from_bits(static_cast<std::uint16_t>(from[0] | from[1] << 8));
}

}  // namespace detail

/// Encodes row i of `from` (contiguous rows of `width` numbers) into the b = sent_of_row bytes from to[i b]
/// on:
///
///     bf16          x_0, x_1, ...
///     int8, int4    l, s, q_0, q_1, ...   q_j = floor((x_j - l) / s + u_j), of two 4-bit numbers the first
///                                         in the lower half of a byte
///
/// l and s are bfloat16, l not above the least of the row and l + (2^bits - 1) s not below its largest
/// number. u_j, uniform in [0, 1), is a function of `noise` and the numbers of row and column. The decoded
/// value thus has mean x_j, and does not depend on the ranks that send and receive the row. A row with a
/// number that is not a finite float is decoded as NaNs.
template <class T>
struct encoded_row {
  row_encoding how;
  const T* from;
  local_index width;
  const local_index* numbers;  ///< of each row, or null: i
  global_index first_row, first_col;
  std::uint64_t noise;
  std::uint8_t* to;

  constexpr void operator()(std::int64_t i) const {
    const T* const x = from + i * width;
    std::uint8_t* const out = to + i * sent_of_row(how, width);
    if (how == row_encoding::bf16) {
      for (local_index j = 0; j < width; ++j)
        detail::put(out + 2 * j, base::bfloat16(static_cast<float>(x[j])));
      return;
    }
    float least = static_cast<float>(x[0]), most = least, zero = 0;
    for (local_index j = 0; j < width; ++j) {
      const auto value = static_cast<float>(x[j]);
      least = value < least ? value : least;
      most = value > most ? value : most;
      zero += value * 0.0F;  // a NaN where one is not finite
    }
    const int levels = (1 << bits_of(how)) - 1;
    const base::bfloat16 low = detail::not_above(least),
                         step = detail::not_below((most - float{low}) / static_cast<float>(levels));
    const bool is_finite = zero == 0 && float{step} < std::numeric_limits<float>::infinity();
    detail::put(out, is_finite ? low : base::bfloat16(std::numeric_limits<float>::quiet_NaN()));
    detail::put(out + 2, is_finite ? step : base::bfloat16(0.0F));
    const float scale = is_finite && float{step} > 0 ? 1 / float{step} : 0;
    const std::uint64_t of_row = base::mixed_bits(
        noise ^ static_cast<std::uint64_t>(first_row + (numbers == nullptr ? i : numbers[i])));
    const auto code = [&](local_index j) {
      const std::uint64_t random = base::mixed_bits(of_row ^ static_cast<std::uint64_t>(first_col + j));
      const float at = is_finite ? (static_cast<float>(x[j]) - float{low}) * scale : 0;
      const int q = static_cast<int>(at + static_cast<float>(random >> 40) * 0x1.0p-24F);
      return q < levels ? q : levels;
    };
    if (how == row_encoding::int8) {
      for (local_index j = 0; j < width; ++j) out[4 + j] = static_cast<std::uint8_t>(code(j));
      return;
    }
    for (local_index j = 0; j < width; j += 2)
      out[4 + j / 2] = static_cast<std::uint8_t>(code(j) | (j + 1 < width ? code(j + 1) << 4 : 0));
  }
};

/// Row i of `to` from such a code: l + q_j s.
template <class T>
struct decoded_row {
  row_encoding how;
  const std::uint8_t* from;
  local_index width;
  T* to;

  constexpr void operator()(std::int64_t i) const {
    const std::uint8_t* const in = from + i * sent_of_row(how, width);
    T* const x = to + i * width;
    if (how == row_encoding::bf16) {
      for (local_index j = 0; j < width; ++j) x[j] = detail::get(in + 2 * j);
      return;
    }
    const float low = detail::get(in), step = detail::get(in + 2);
    if (how == row_encoding::int8) {
      for (local_index j = 0; j < width; ++j) x[j] = low + static_cast<float>(in[4 + j]) * step;
      return;
    }
    for (local_index j = 0; j < width; ++j) {
      const int q = j % 2 == 0 ? in[4 + j / 2] & 0xf : in[4 + j / 2] >> 4;
      x[j] = low + static_cast<float>(q) * step;
    }
  }
};

}  // namespace partita::local
