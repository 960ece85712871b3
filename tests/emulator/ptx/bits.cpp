// SPDX-License-Identifier: Apache-2.0
// Bits: logic, shifts, fields, counts and permutations.

#include "encoder.hpp"
#include "lanes.hpp"

namespace emulator::ptx {

namespace {

using both = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(a & b); });
using either = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(a | b); });
using one_of = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(a ^ b); });
using inverted = decltype([]<class T>(T a) -> T { return static_cast<T>(~a); });
/// Shifts by at most the width.
using left = decltype([]<class T>(T a, std::uint32_t by) -> T {
  return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<wrapping_t<T>>(a) << by);
});
using right = decltype([]<class T>(T a, std::uint32_t by) -> T {
  return by >= 8 * sizeof(T) ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> by);
});
/// The upper or lower half of a pair that is shifted.
template <bool Left, bool Wraps>
struct funnel {
  std::uint32_t operator()(std::uint32_t low, std::uint32_t high, std::uint32_t by) const {
    by = Wraps ? by & 31 : by > 32 ? 32 : by;
    const std::uint64_t pair = std::uint64_t{high} << 32 | low;
    return static_cast<std::uint32_t>(Left ? (pair << by) >> 32 : pair >> by);
  }
};
using population = decltype([]<class T>(T a) -> std::uint32_t {
  return static_cast<std::uint32_t>(std::popcount(a));
});
using leading_zeros = decltype([]<class T>(T a) -> std::uint32_t {
  return static_cast<std::uint32_t>(std::countl_zero(a));
});
struct reversed {
  template <class T>
  T operator()(T a) const {
    T y = 0;
    for (unsigned n = 0; n < 8 * sizeof(T); ++n) y = static_cast<T>(y << 1 | (a >> n & 1));
    return y;
  }
};
/// Where the highest bit is that is not the sign, or how far it must be shifted to the top; all ones where
/// there is none.
template <bool Amount>
struct highest_bit {
  template <class T>
  std::uint32_t operator()(T a) const {
    const auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? ~a : a);
    if (bits == 0) return 0xffffffff;
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(bits));
    return Amount ? zeros : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - zeros;
  }
};
/// `length` bits from `position` on; what lies above the top repeats the sign.
struct field {
  template <class T>
  T operator()(T a, std::uint32_t position, std::uint32_t length) const {
    position &= 255;
    length &= 255;
    T y = 0;
    constexpr unsigned width = 8 * sizeof(T);
    const auto bit = [&](unsigned n) { return n < width ? a >> n & 1 : a < 0 ? 1 : 0; };
    if (length == 0) return 0;
    const bool sign = std::is_signed_v<T> && bit(std::min(position + length - 1, width - 1)) != 0;
    for (unsigned n = 0; n < width; ++n) {
      const bool inside = n < length && position + n < width;
      if (inside ? bit(position + n) != 0 : sign)
        y = static_cast<T>(y | static_cast<T>(wrapping_t<T>{1} << n));
    }
    return y;
  }
};
/// b with `length` bits from `position` on replaced by those of a.
template <class T>
void insert(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<T>(o.a);
  const auto* const b = w.lanes<T>(o.b);
  const auto* const c = w.lanes<std::uint32_t>(o.c);
  const auto* const length = w.lanes<std::uint32_t>(o.e);
  for_lanes(active, w.lanes<T>(o.d), [=](unsigned l) {
    T y = b[l];
    const unsigned position = c[l] & 255;
    for (unsigned n = 0; n < (length[l] & 255) && position + n < 8 * sizeof(T); ++n) {
      const T one = static_cast<T>(T{1} << (position + n));
      y = (a[l] >> n & 1) != 0 ? static_cast<T>(y | one) : static_cast<T>(y & ~one);
    }
    return y;
  });
}
/// `length` ones from `position` on.
template <bool Wraps>
struct ones {
  std::uint32_t operator()(std::uint32_t position, std::uint32_t length) const {
    if (Wraps) {
      position &= 31;
      length &= 31;
    }
    const std::uint64_t run = length >= 32 ? 0xffffffffu : (std::uint64_t{1} << length) - 1;
    return position >= 32 ? 0 : static_cast<std::uint32_t>(run << position);
  }
};
/// Four bytes of the eight of a and b, which the numbers in c choose; their sign alone where bit 3 is set.
struct permuted {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const std::uint64_t pair = std::uint64_t{b} << 32 | a;
    std::uint32_t y = 0;
    for (unsigned n = 0; n < 4; ++n) {
      const unsigned choice = c >> 4 * n & 15;
      auto byte = static_cast<std::uint32_t>(pair >> 8 * (choice & 7) & 255);
      if ((choice & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      y |= byte << 8 * n;
    }
    return y;
  }
};
/// Any function of three bits, as its table.
void any_logic(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<std::uint32_t>(o.a);
  const auto* const b = w.lanes<std::uint32_t>(o.b);
  const auto* const c = w.lanes<std::uint32_t>(o.c);
  const auto table = static_cast<unsigned>(o.offset);
  for_lanes(active, w.lanes<std::uint32_t>(o.d), [=](unsigned l) {
    std::uint32_t y = 0;
    for (unsigned n = 0; n < 8; ++n)
      if ((table >> n & 1) != 0)
        y |= ((n & 4) != 0 ? a[l] : ~a[l]) & ((n & 2) != 0 ? b[l] : ~b[l]) & ((n & 1) != 0 ? c[l] : ~c[l]);
    return y;
  });
}

template <class F>
handler of_bits(std::size_t bytes) {
  return visit_bits(bytes, []<class T>(T) -> handler {
    if constexpr (requires { F{}(T{}, T{}); })
      return binary<F, T>;
    else
      return unary<F, T>;
  });
}
template <class F>
void of_predicates(warp& w, const operation& o, lane_mask active) {
  if constexpr (requires { F{}(active, active); })
    w.set(o.d, active, F{}(w.mask(o.a), w.mask(o.b)));
  else
    w.set(o.d, active, F{}(w.mask(o.a)));
}

template <class F>
void decode_logic(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  const bool two = i.operands.size() == 3;
  if (type == scalar::pred) {
    o.d = e.destination(i.operands.at(0), 0);
    o.a = e.predicate(i.operands.at(1));
    if (two) o.b = e.predicate(i.operands[2]);
    o.run = of_predicates<F>;
    return;
  }
  e.take(i, o, {size_of(type), size_of(type)});
  if (two) o.b = e.source(i.operands[2], size_of(type));
  o.run = of_bits<F>(size_of(type));
}
template <class F>
void decode_shift(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  e.take(i, o, {size_of(type), size_of(type), 4});
  o.run = visit_integer(type, []<class T>(T) -> handler { return binary<F, T, std::uint32_t>; });
}
/// What gives a number of 32 bits.
template <class F>
void decode_count(encoder& e, const instruction& i, operation& o) {
  e.take(i, o, {4, size_of(type_of(i))});
  o.run = of_bits<F>(size_of(type_of(i)));
}
void decode_highest(encoder& e, const instruction& i, operation& o) {
  e.take(i, o, {4, size_of(type_of(i))});
  o.run = visit_integer(type_of(i), [&]<class T>(T) -> handler {
    return i.has("shiftamt") ? handler(unary<highest_bit<true>, T>) : unary<highest_bit<false>, T>;
  });
}
void decode_reversal(encoder& e, const instruction& i, operation& o) {
  e.take(i, o, {size_of(type_of(i)), size_of(type_of(i))});
  o.run = of_bits<reversed>(size_of(type_of(i)));
}
void decode_field(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  e.take(i, o, {size_of(type), size_of(type), 4, 4});
  o.run = visit_integer(
      type, []<class T>(T) -> handler { return ternary<field, T, std::uint32_t, std::uint32_t>; });
}
void decode_insertion(encoder& e, const instruction& i, operation& o) {
  const std::size_t bytes = size_of(type_of(i));
  e.take(i, o, {bytes, bytes, bytes, 4, 4});
  o.run = visit_bits(bytes, []<class T>(T) -> handler { return insert<T>; });
}
void take_words(encoder& e, const instruction& i, operation& o, std::size_t operands) {
  if (i.operands.size() != operands + 1 || size_of(type_of(i)) != 4) e.refuse("this form of the instruction");
  e.take(i, o, {4, 4, 4});
  if (operands > 2) o.c = e.source(i.operands[3], 4);
}
void decode_funnel(encoder& e, const instruction& i, operation& o) {
  take_words(e, i, o, 3);
  using word = std::uint32_t;
  if (i.has("l"))
    o.run = i.has("wrap") ? handler(ternary<funnel<true, true>, word>) : ternary<funnel<true, false>, word>;
  else
    o.run = i.has("wrap") ? handler(ternary<funnel<false, true>, word>) : ternary<funnel<false, false>, word>;
}
void decode_ones(encoder& e, const instruction& i, operation& o) {
  take_words(e, i, o, 2);
  o.run = i.has("wrap") ? handler(binary<ones<true>, std::uint32_t>) : binary<ones<false>, std::uint32_t>;
}
void decode_permutation(encoder& e, const instruction& i, operation& o) {
  if (i.words.size() > 2) e.refuse("a mode of a permutation");
  take_words(e, i, o, 3);
  o.run = ternary<permuted, std::uint32_t>;
}
void decode_any_logic(encoder& e, const instruction& i, operation& o) {
  if (i.operands.size() != 5) e.refuse("this form of the instruction");
  instruction three = i;
  three.operands.pop_back();
  take_words(e, three, o, 3);
  std::uint64_t table = 0;
  if (!read_number(i.operands[4], table)) e.refuse("a table that is no number");
  o.offset = static_cast<std::int64_t>(table);
  o.run = any_logic;
}

}  // namespace

std::span<const opcode> bit_opcodes() {
  static constexpr opcode known[] = {{"and", decode_logic<both>},
                                     {"or", decode_logic<either>},
                                     {"xor", decode_logic<one_of>},
                                     {"not", decode_logic<inverted>},
                                     {"shl", decode_shift<left>},
                                     {"shr", decode_shift<right>},
                                     {"shf", decode_funnel},
                                     {"popc", decode_count<population>},
                                     {"clz", decode_count<leading_zeros>},
                                     {"bfind", decode_highest},
                                     {"brev", decode_reversal},
                                     {"bfe", decode_field},
                                     {"bfi", decode_insertion},
                                     {"bmsk", decode_ones},
                                     {"prmt", decode_permutation},
                                     {"lop3", decode_any_logic}};
  return known;
}

}  // namespace emulator::ptx
