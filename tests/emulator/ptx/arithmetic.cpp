// SPDX-License-Identifier: Apache-2.0
// Arithmetic of integers.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "encoder.hpp"
#include "lanes.hpp"

namespace emulator::ptx {

namespace {

using plus = decltype([]<class T>(T a, T b) -> T {
  return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
});
using minus = decltype([]<class T>(T a, T b) -> T {
  return static_cast<T>(static_cast<wrapping_t<T>>(a) - static_cast<wrapping_t<T>>(b));
});
/// The wide result, cut off at the limits of T.
template <class F>
struct saturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    const std::int64_t wide = F{}(std::int64_t{a}, std::int64_t{b});
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(wide, std::numeric_limits<std::int32_t>::min(),
                                                              std::numeric_limits<std::int32_t>::max()));
  }
};

template <class T>
struct twice;
template <>
struct twice<std::uint16_t> : std::type_identity<std::uint32_t> {};
template <>
struct twice<std::int16_t> : std::type_identity<std::int32_t> {};
template <>
struct twice<std::uint32_t> : std::type_identity<std::uint64_t> {};
template <>
struct twice<std::int32_t> : std::type_identity<std::int64_t> {};
template <>
struct twice<std::uint64_t> {
  __extension__ typedef unsigned __int128 type;
};
template <>
struct twice<std::int64_t> {
  __extension__ typedef __int128 type;
};
/// The type that holds every product.
template <class T>
using twice_t = typename twice<T>::type;

using low_product = decltype([]<class T>(T a, T b) -> T {
  return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
});
using high_product = decltype([]<class T>(T a, T b) -> T {
  return static_cast<T>(static_cast<twice_t<T>>(static_cast<twice_t<T>>(a) * b) >> 8 * sizeof(T));
});
struct wide_product {
  template <class T>
  twice_t<T> operator()(T a, T b) const {
    return static_cast<twice_t<T>>(a) * b;
  }
};
/// Product(a, b) + c.
template <class Product>
struct multiply_add {
  template <class T, class C>
  C operator()(T a, T b, C c) const {
    return plus{}(static_cast<C>(Product{}(a, b)), c);
  }
};

using negated = decltype([]<class T>(T a) -> T { return minus{}(T{0}, a); });
using magnitude = decltype([]<class T>(T a) -> T { return a < 0 ? minus{}(T{0}, a) : a; });
using smaller = decltype([]<class T>(T a, T b) -> T { return b < a ? b : a; });
using larger = decltype([]<class T>(T a, T b) -> T { return b > a ? b : a; });

/// Quotient, or remainder with the sign of the dividend. A device gives some number when it divides by zero.
template <class T, bool Remainder>
void divide(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<T>(o.a);
  const auto* const b = w.lanes<T>(o.b);
  auto* const d = w.lanes<T>(o.d);
  for_each_lane(active, [&](unsigned l) {
    if (b[l] == 0) throw lane_fault(l, "divides an integer by zero");
    const bool flips = std::is_signed_v<T> && b[l] == static_cast<T>(-1);  // the smallest number overflows
    const T quotient = flips ? minus{}(T{0}, T{a[l]}) : static_cast<T>(a[l] / b[l]);
    d[l] = Remainder ? minus{}(T{a[l]}, low_product{}(quotient, T{b[l]})) : quotient;
  });
}

void take(encoder& e, const instruction& i, operation& o, std::size_t bytes, std::size_t operands) {
  if (i.operands.size() != operands + 1) e.refuse("another number of operands");
  o.d = e.destination(i.operands[0], bytes);
  if (operands > 0) o.a = e.source(i.operands[1], bytes);
  if (operands > 1) o.b = e.source(i.operands[2], bytes);
  if (operands > 2) o.c = e.source(i.operands[3], bytes);
}
template <class F>
void decode_unary(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  take(e, i, o, size_of(type), 1);
  o.run = visit_integer(type, []<class T>(T) -> handler { return unary<F, T>; });
}
template <class F>
void decode_binary(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  take(e, i, o, size_of(type), 2);
  o.run = visit_integer(type, []<class T>(T) -> handler { return binary<F, T>; });
}
template <class F>
void decode_sum(encoder& e, const instruction& i, operation& o) {
  if (i.has("cc")) e.refuse("a carry");
  decode_binary<F>(e, i, o);
  if (!i.has("sat")) return;
  if (type_of(i) != scalar::s32) e.refuse("saturation of this type");
  o.run = binary<saturated<F>, std::int32_t>;
}
template <bool Remainder>
void decode_division(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  take(e, i, o, size_of(type), 2);
  o.run = visit_integer(type, []<class T>(T) -> handler { return divide<T, Remainder>; });
}

void decode_product(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  const bool adds = i.name() == "mad";
  if (i.has("sat") || i.has("cc")) e.refuse("saturation or a carry of a product");
  const std::size_t bytes = size_of(type), result = i.has("wide") ? 2 * bytes : bytes;
  if (i.operands.size() != (adds ? 4u : 3u)) e.refuse("another number of operands");
  e.take(i, o, {result, bytes, bytes});
  if (adds) o.c = e.source(i.operands[3], result);
  const bool wide = i.has("wide"), high = i.has("hi");
  o.run = visit_integer(type, [&]<class T>(T) -> handler {
    if constexpr (sizeof(T) == 1) {
      return nullptr;
    } else {
      if (!wide && high)
        return adds ? handler(ternary<multiply_add<high_product>, T>) : binary<high_product, T>;
      if (!wide) return adds ? handler(ternary<multiply_add<low_product>, T>) : binary<low_product, T>;
      if constexpr (sizeof(T) == 8)
        return nullptr;
      else
        return adds ? handler(ternary<multiply_add<wide_product>, T, T, twice_t<T>>)
                    : binary<wide_product, T>;
    }
  });
}

/// Calls `reals` for real types, else `integers`.
template <auto Integers>
void or_real(encoder& e, const instruction& i, operation& o) {
  if (is_integer(type_of(i))) return Integers(e, i, o);
  for (const opcode& real : real_opcodes())
    if (real.name == i.name()) return real.decode(e, i, o);
}

}  // namespace

std::span<const opcode> arithmetic_opcodes() {
  static constexpr opcode known[] = {
      {"add", or_real<decode_sum<plus>>},       {"sub", or_real<decode_sum<minus>>},
      {"mul", or_real<decode_product>},         {"mad", or_real<decode_product>},
      {"div", or_real<decode_division<false>>}, {"rem", decode_division<true>},
      {"min", or_real<decode_binary<smaller>>}, {"max", or_real<decode_binary<larger>>},
      {"neg", or_real<decode_unary<negated>>},  {"abs", or_real<decode_unary<magnitude>>}};
  return known;
}

}  // namespace emulator::ptx
