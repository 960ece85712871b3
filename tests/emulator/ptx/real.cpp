// SPDX-License-Identifier: Apache-2.0
// Arithmetic of floating-point numbers. What a device approximates is more exact here.
#include <cfenv>
#include <cmath>
#include <limits>

#include "encoder.hpp"
#include "lanes.hpp"

namespace emulator::ptx {

namespace {

using plus = decltype([]<class T>(T a, T b) -> T { return a + b; });
using minus = decltype([]<class T>(T a, T b) -> T { return a - b; });
using times = decltype([]<class T>(T a, T b) -> T { return a * b; });
using over = decltype([]<class T>(T a, T b) -> T { return a / b; });
using fused = decltype([]<class T>(T a, T b, T c) -> T { return std::fma(a, b, c); });
/// What a device gives where there is no number.
template <class T>
T canonical_nan() {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<float>(0x7fffffffu);
  else
    return std::bit_cast<double>(0x7fffffffffffffffull);
}
/// The one that is a number, where one is; -0 is less than +0.
struct smaller {
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return std::isnan(b) ? canonical_nan<T>() : b;
    if (std::isnan(b)) return a;
    return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
  }
};
struct larger {
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return std::isnan(b) ? canonical_nan<T>() : b;
    if (std::isnan(b)) return a;
    return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
  }
};
/// No number where one is none.
template <class F>
struct strict {
  template <class T>
  T operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b) ? canonical_nan<T>() : F{}(a, b);
  }
};
using negated = decltype([]<class T>(T a) -> T { return -a; });
using magnitude = decltype([]<class T>(T a) -> T { return std::fabs(a); });
using root = decltype([]<class T>(T a) -> T { return std::sqrt(a); });
using reciprocal = decltype([]<class T>(T a) -> T { return 1 / a; });
using reciprocal_root = decltype([]<class T>(T a) -> T { return 1 / std::sqrt(a); });
using power_of_two = decltype([]<class T>(T a) -> T { return std::exp2(a); });
using binary_logarithm = decltype([]<class T>(T a) -> T { return std::log2(a); });
using sine = decltype([]<class T>(T a) -> T { return std::sin(a); });
using cosine = decltype([]<class T>(T a) -> T { return std::cos(a); });
using hyperbolic_tangent = decltype([]<class T>(T a) -> T { return std::tanh(a); });

template <class T>
T flushed(T a) {
  return std::fabs(a) < std::numeric_limits<T>::min() ? std::copysign(T{0}, a) : a;
}
/// Subnormal operands and results count as zero.
template <class F>
struct flushing {
  template <class... T>
  auto operator()(T... a) const {
    return flushed(F{}(flushed(a)...));
  }
};
/// Between 0 and 1; 0 where there is no number.
template <class F>
struct clamping {
  template <class... T>
  auto operator()(T... a) const {
    const auto y = F{}(a...);
    using R = std::remove_const_t<decltype(y)>;
    return y > 0 ? (y < 1 ? y : R{1}) : R{0};
  }
};
/// The numbers go through memory, so that the compiler cannot compute with them before the mode is set.
template <class F>
struct unguessed {
  template <class... T>
  auto operator()(T... a) const {
    return F{}(hidden(a)...);
  }
  template <class T>
  static T hidden(T a) {
    volatile T kept = a;
    return kept;
  }
};
/// Under a rounding mode of its own.
template <handler Run, int Mode>
void rounding(warp& w, const operation& o, lane_mask active) {
  std::fesetround(Mode);
  Run(w, o, active);
  std::fesetround(FE_TONEAREST);
}

template <class F, int Operands>
handler of_type(scalar type) {
  return visit_real(type, []<class T>(T) -> handler {
    if constexpr (Operands == 3)
      return ternary<F, T>;
    else if constexpr (Operands == 2)
      return binary<F, T>;
    else
      return unary<F, T>;
  });
}
template <class F, int Operands, int Mode>
handler rounded(scalar type) {
  return visit_real(type, []<class T>(T) -> handler {
    if constexpr (Operands == 3)
      return rounding<ternary<unguessed<F>, T>, Mode>;
    else if constexpr (Operands == 2)
      return rounding<binary<unguessed<F>, T>, Mode>;
    else
      return rounding<unary<unguessed<F>, T>, Mode>;
  });
}
template <class F, int Operands>
handler with_modifiers(const instruction& i) {
  const scalar type = type_of(i);
  const bool ftz = i.has("ftz") && type == scalar::f32;
  if (i.has("sat"))
    return ftz ? of_type<clamping<flushing<F>>, Operands>(type) : of_type<clamping<F>, Operands>(type);
  return ftz ? of_type<flushing<F>, Operands>(type) : of_type<F, Operands>(type);
}

template <int Operands>
void take(encoder& e, const instruction& i, operation& o) {
  if (i.operands.size() != Operands + 1) e.refuse("another number of operands");
  const std::size_t bytes = size_of(type_of(i));
  e.take(i, o, {bytes, bytes});
  if (Operands > 1) o.b = e.source(i.operands[2], bytes);
  if (Operands > 2) o.c = e.source(i.operands[3], bytes);
}

/// What is rounded as the instruction says.
template <class F, int Operands>
void decode_rounded(encoder& e, const instruction& i, operation& o) {
  take<Operands>(e, i, o);
  const scalar type = type_of(i);
  const bool directed = i.has("rz") || i.has("rm") || i.has("rp");
  if (directed && (i.has("ftz") || i.has("sat"))) e.refuse("rounding in a direction with .ftz or .sat");
  if (i.has("rz"))
    o.run = rounded<F, Operands, FE_TOWARDZERO>(type);
  else if (i.has("rm"))
    o.run = rounded<F, Operands, FE_DOWNWARD>(type);
  else if (i.has("rp"))
    o.run = rounded<F, Operands, FE_UPWARD>(type);
  else
    o.run = with_modifiers<F, Operands>(i);
}
template <class F, int Operands>
void decode_exact(encoder& e, const instruction& i, operation& o) {
  take<Operands>(e, i, o);
  o.run = with_modifiers<F, Operands>(i);
}
template <class F>
void decode_extremum(encoder& e, const instruction& i, operation& o) {
  if (i.has("xorsign")) e.refuse("the sign of a product");
  take<2>(e, i, o);
  o.run = i.has("NaN") ? with_modifiers<strict<F>, 2>(i) : with_modifiers<F, 2>(i);
}

/// Of f64 the upper half alone, the lower one is zero.
template <class F>
void approximate_upper_half(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<double>(o.a);
  for_lanes(active, w.lanes<std::uint64_t>(o.d), [=](unsigned l) {
    return std::bit_cast<std::uint64_t>(flushing<F>{}(double{a[l]})) & ~std::uint64_t{0xffffffff};
  });
}
template <class F>
void decode_reciprocal(encoder& e, const instruction& i, operation& o) {
  decode_rounded<F, 1>(e, i, o);
  if (i.has("approx") && i.has("ftz") && type_of(i) == scalar::f64) o.run = approximate_upper_half<F>;
}

constexpr opcode known[] = {{"add", decode_rounded<plus, 2>},
                            {"sub", decode_rounded<minus, 2>},
                            {"mul", decode_rounded<times, 2>},
                            {"div", decode_rounded<over, 2>},
                            {"fma", decode_rounded<fused, 3>},
                            {"mad", decode_rounded<fused, 3>},
                            {"sqrt", decode_rounded<root, 1>},
                            {"rcp", decode_reciprocal<reciprocal>},
                            {"rsqrt", decode_reciprocal<reciprocal_root>},
                            {"min", decode_extremum<smaller>},
                            {"max", decode_extremum<larger>},
                            {"neg", decode_exact<negated, 1>},
                            {"abs", decode_exact<magnitude, 1>},
                            {"ex2", decode_exact<power_of_two, 1>},
                            {"lg2", decode_exact<binary_logarithm, 1>},
                            {"sin", decode_exact<sine, 1>},
                            {"cos", decode_exact<cosine, 1>},
                            {"tanh", decode_exact<hyperbolic_tangent, 1>}};

}  // namespace

std::span<const opcode> real_opcodes() { return known; }

}  // namespace emulator::ptx
