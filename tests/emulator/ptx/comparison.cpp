// SPDX-License-Identifier: Apache-2.0
// Comparisons, and choices between operands.
#include <cmath>
#include <limits>

#include "encoder.hpp"
#include "lanes.hpp"

namespace emulator::ptx {

namespace {

enum class relation : std::uint8_t { eq, ne, lt, le, gt, ge };

template <relation R, class T>
bool holds(T a, T b) {
  if constexpr (R == relation::eq) return a == b;
  if constexpr (R == relation::ne) return a != b;
  if constexpr (R == relation::lt) return a < b;
  if constexpr (R == relation::le) return a <= b;
  if constexpr (R == relation::gt) return a > b;
  if constexpr (R == relation::ge) return a >= b;
}
template <class T>
bool unordered(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(a) || std::isnan(b);
  else
    return false;
}

/// One that holds beside numbers only, or, with `u`, where there is none too.
template <relation R, bool Unordered>
struct compared {
  template <class T>
  bool operator()(T a, T b) const {
    return Unordered ? unordered(a, b) || holds<R>(a, b) : !unordered(a, b) && holds<R>(a, b);
  }
};
template <bool Numbers>
struct are_numbers {
  template <class T>
  bool operator()(T a, T b) const {
    return unordered(a, b) != Numbers;
  }
};

template <class F>
struct flushing {
  bool operator()(float a, float b) const { return F{}(flushed(a), flushed(b)); }
  static float flushed(float a) {
    return std::fabs(a) < std::numeric_limits<float>::min() ? std::copysign(0.f, a) : a;
  }
};

using comparer = lane_mask (*)(warp&, const operation&);
template <class F, class T>
lane_mask compare_lanes(warp& w, const operation& o) {
  const auto* const a = w.lanes<T>(o.a);
  const auto* const b = w.lanes<T>(o.b);
  return lanes_where([=](unsigned l) { return F{}(T{a[l]}, T{b[l]}); });
}

/// How the relation is joined with a predicate, in `offset`.
enum class joined : std::uint8_t { alone, both, either, one_of };

template <class F, class T>
void set_predicate(warp& w, const operation& o, lane_mask active) {
  const lane_mask found = compare_lanes<F, T>(w, o), other = w.mask(o.c) ^ (o.count == 0 ? every_lane : 0);
  const auto join = [&](lane_mask m) {
    switch (static_cast<joined>(o.offset)) {
      case joined::both:
        return m & other;
      case joined::either:
        return m | other;
      case joined::one_of:
        return m ^ other;
      default:
        return m;
    }
  };
  w.set(o.d, active, join(found));
  if (o.second != always) w.set(o.second, active, join(~found));
}
template <class F>
handler of_type(scalar type, bool ftz) {
  if (ftz && type == scalar::f32) return set_predicate<flushing<F>, float>;
  return visit_number(type, []<class T>(T) -> handler {
    if constexpr (sizeof(T) == 1)
      return nullptr;
    else
      return set_predicate<F, T>;
  });
}
handler of_relation(std::string_view name, scalar type, bool ftz) {
  const auto make = [&]<class F>(F) { return of_type<F>(type, ftz); };
  using enum relation;
  if (name == "eq") return make(compared<eq, false>{});
  if (name == "ne") return make(compared<ne, false>{});
  if (name == "lt" || (name == "lo" && is_integer(type))) return make(compared<lt, false>{});
  if (name == "le" || (name == "ls" && is_integer(type))) return make(compared<le, false>{});
  if (name == "gt" || (name == "hi" && is_integer(type))) return make(compared<gt, false>{});
  if (name == "ge" || (name == "hs" && is_integer(type))) return make(compared<ge, false>{});
  if (!is_real(type)) return nullptr;
  if (name == "equ") return make(compared<eq, true>{});
  if (name == "neu") return make(compared<ne, true>{});
  if (name == "ltu") return make(compared<lt, true>{});
  if (name == "leu") return make(compared<le, true>{});
  if (name == "gtu") return make(compared<gt, true>{});
  if (name == "geu") return make(compared<ge, true>{});
  if (name == "num") return make(are_numbers<true>{});
  if (name == "nan") return make(are_numbers<false>{});
  return nullptr;
}

/// `setp.lt.and.s32 p|q, a, b, !r`
void decode_setp(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  std::string_view result = i.operands.at(0);
  if (const auto bar = result.find('|'); bar != std::string_view::npos) {
    o.second = e.destination(trimmed(result.substr(bar + 1)), 0);
    result = trimmed(result.substr(0, bar));
  }
  o.d = e.destination(result, 0);
  o.a = e.source(i.operands.at(1), size_of(type));
  o.b = e.source(i.operands.at(2), size_of(type));
  if (i.operands.size() > 3) {
    const bool inverse = i.operands[3].starts_with('!');
    o.c = e.predicate(i.operands[3].substr(inverse ? 1 : 0));
    o.count = inverse ? 0 : 1;
    o.offset = static_cast<std::int64_t>(i.has("and")  ? joined::both
                                         : i.has("or") ? joined::either
                                                       : joined::one_of);
  }
  o.run = of_relation(i.words.at(1), type, i.has("ftz"));
}
template <class T>
void select(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<T>(o.a);
  const auto* const b = w.lanes<T>(o.b);
  const lane_mask chosen = w.mask(o.c);
  for_lanes(active, w.lanes<T>(o.d), [=](unsigned l) { return (chosen >> l & 1) != 0 ? T{a[l]} : T{b[l]}; });
}
void decode_selp(encoder& e, const instruction& i, operation& o) {
  const std::size_t bytes = size_of(type_of(i));
  e.take(i, o, {bytes, bytes, bytes});
  o.c = e.predicate(i.operands.at(3));
  o.run = visit_bits(bytes, []<class T>(T) -> handler { return select<T>; });
}

}  // namespace

std::span<const opcode> comparison_opcodes() {
  static constexpr opcode known[] = {{"setp", decode_setp}, {"selp", decode_selp}};
  return known;
}

}  // namespace emulator::ptx
