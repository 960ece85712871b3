// SPDX-License-Identifier: Apache-2.0
// Conversions, moves, and addresses from one space to another.
#include <cfenv>
#include <cmath>
#include <limits>

#include "encoder.hpp"
#include "lanes.hpp"

namespace emulator::ptx {

namespace {

enum class round_to : std::uint8_t { none, nearest, zero, down, up };

/// What `count` lanes of a conversion need to know; kept in `target` of an operation.
struct conversion_mode {
  round_to round = round_to::none;
  bool saturates = false;

  std::uint32_t packed() const { return static_cast<std::uint32_t>(round) * 2 + (saturates ? 1 : 0); }
  static conversion_mode of(const operation& o) {
    return {static_cast<round_to>(o.target / 2), o.target % 2 != 0};
  }
};

template <class T>
T integral(T x, round_to r) {
  if (r == round_to::nearest) return std::nearbyint(x);
  if (r == round_to::zero) return std::trunc(x);
  if (r == round_to::down) return std::floor(x);
  if (r == round_to::up) return std::ceil(x);
  return x;
}

/// The nearest of the limits where there is none. What is no number is 0, or the highest bit alone where one
/// of the types has 64 bits.
template <class To, class From>
To clamped(From x) {
  constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(x))
      return sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(std::uint64_t{1} << (8 * sizeof(To) - 1))
                                                  : To{0};
    // The highest integer may not be a number of From: from the power of two behind it on, all are too large.
    constexpr From beyond = static_cast<From>(high / 2 + 1) * 2;
    if (x < static_cast<From>(low)) return low;
    return x >= beyond ? high : static_cast<To>(x);
  } else {
    if (std::cmp_less(x, low)) return low;
    return std::cmp_greater(x, high) ? high : static_cast<To>(x);
  }
}

/// When one floating-point number is wider than the other, or a number is made of an integer.
template <class To, class From>
To rounded(From x, round_to r) {
  if (r == round_to::none || r == round_to::nearest) return static_cast<To>(x);
  std::fesetround(r == round_to::zero ? FE_TOWARDZERO : r == round_to::down ? FE_DOWNWARD : FE_UPWARD);
  volatile From kept = x;
  volatile To made = static_cast<To>(kept);
  std::fesetround(FE_TONEAREST);
  return made;
}

template <class To, class From>
To converted(From x, conversion_mode mode) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return clamped<To>(integral(x, mode.round));
  } else if constexpr (std::is_floating_point_v<To>) {
    To y;
    if constexpr (std::is_same_v<To, From>)
      y = integral(x, mode.round);
    else
      y = rounded<To>(x, mode.round);
    return mode.saturates ? (y > 0 ? (y < 1 ? y : To{1}) : To{0}) : y;
  } else {
    return mode.saturates ? clamped<To>(x) : static_cast<To>(x);
  }
}

/// Registers may be wider than the types: that of the result has `count` bytes, that of the operand `offset`.
template <class To, class From>
void convert(warp& w, const operation& o, lane_mask active) {
  const conversion_mode mode = conversion_mode::of(o);
  const auto* const a = w.lanes<std::byte>(o.a);
  auto* const d = w.lanes<std::byte>(o.d);
  for_each_lane(active, [&](unsigned l) {
    From x;
    std::memcpy(&x, a + l * static_cast<std::size_t>(o.offset), sizeof(From));
    const To y = converted<To>(x, mode);
    std::uint64_t bits = 0;
    if constexpr (std::is_signed_v<To> && std::is_integral_v<To>)
      bits = static_cast<std::uint64_t>(std::int64_t{y});
    else
      std::memcpy(&bits, &y, sizeof(To));
    std::memcpy(d + std::size_t{l} * o.count, &bits, o.count);
  });
}
/// Integers in registers of their own sizes, which are most.
template <class To>
struct cast {
  template <class From>
  To operator()(From x) const {
    return static_cast<To>(x);
  }
};

handler conversion(scalar to, scalar from) {
  return visit_number(to, [&]<class To>(To) -> handler {
    return visit_number(from, []<class From>(From) -> handler { return convert<To, From>; });
  });
}
handler plain_conversion(scalar to, scalar from) {
  return visit_integer(to, [&]<class To>(To) -> handler {
    return visit_integer(from, []<class From>(From) -> handler {
      if constexpr (sizeof(To) == 1 || sizeof(From) == 1)
        return nullptr;
      else
        return unary<cast<To>, From>;
    });
  });
}

round_to rounding_of(const instruction& i) {
  if (i.has("rni") || i.has("rn")) return round_to::nearest;
  if (i.has("rzi") || i.has("rz")) return round_to::zero;
  if (i.has("rmi") || i.has("rm")) return round_to::down;
  if (i.has("rpi") || i.has("rp")) return round_to::up;
  return round_to::none;
}

void decode_cvt(encoder& e, const instruction& i, operation& o) {
  const scalar from = type_of(i), to = scalar_named(i.words[i.words.size() - 2]);
  if (i.operands.size() != 2) e.refuse("this form of the instruction");
  const auto register_bytes = [&](std::string_view name, scalar type) {
    const std::size_t there = e.width(name), least = std::max<std::size_t>(size_of(type), 2);
    if (there != 0 && (there < least || (is_real(type) && there != least)))
      e.refuse("a register that is too small");
    return there != 0 ? there : least;
  };
  o.count = static_cast<std::uint8_t>(register_bytes(i.operands[0], to));
  o.offset = static_cast<std::int64_t>(register_bytes(i.operands[1], from));
  e.take(i, o, {o.count, static_cast<std::size_t>(o.offset)});
  if (i.has("ftz")) e.refuse("flushing in a conversion");
  o.target = conversion_mode{rounding_of(i), i.has("sat")}.packed();
  const bool plain =
      o.target == 0 && o.count == size_of(to) && static_cast<std::size_t>(o.offset) == size_of(from);
  o.run = plain ? plain_conversion(to, from) : nullptr;
  if (o.run == nullptr) o.run = conversion(to, from);
}

template <class T>
void copy(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<T>(o.a);
  for_lanes(active, w.lanes<T>(o.d), [=](unsigned l) { return T{a[l]}; });
}
/// A value as parts, the lowest first, and back.
template <class Whole, class Part>
void unpack(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<Whole>(o.a);
  std::array<Whole, warp_size> whole;  // one of the parts may lie where it does
  for (unsigned l = 0; l < warp_size; ++l) whole[l] = a[l];
  for (unsigned n = 0; n < sizeof(Whole) / sizeof(Part); ++n)
    for_lanes(active, w.lanes<Part>(o.elements[n]),
              [&](unsigned l) { return static_cast<Part>(whole[l] >> 8 * sizeof(Part) * n); });
}
template <class Whole, class Part>
void pack(warp& w, const operation& o, lane_mask active) {
  constexpr unsigned parts = sizeof(Whole) / sizeof(Part);
  for_lanes(active, w.lanes<Whole>(o.d), [&](unsigned l) {
    Whole y = 0;
    for (unsigned n = 0; n < parts; ++n)
      y = static_cast<Whole>(y | Whole{w.lanes<Part>(o.elements[n])[l]} << 8 * sizeof(Part) * n);
    return y;
  });
}

void copy_predicate(warp& w, const operation& o, lane_mask active) { w.set(o.d, active, w.mask(o.a)); }

template <template <class, class> class Mover>
handler of_parts(std::size_t whole, std::size_t parts) {
  if (whole == 8 && parts == 2) return Mover<std::uint64_t, std::uint32_t>::run;
  if (whole == 8 && parts == 4) return Mover<std::uint64_t, std::uint16_t>::run;
  if (whole == 4 && parts == 2) return Mover<std::uint32_t, std::uint16_t>::run;
  return nullptr;
}
template <class W, class P>
struct unpacker {
  static constexpr handler run = unpack<W, P>;
};
template <class W, class P>
struct packer {
  static constexpr handler run = pack<W, P>;
};

void decode_mov(encoder& e, const instruction& i, operation& o) {
  const std::size_t bytes = size_of(type_of(i));
  const std::string_view to = i.operands.at(0), from = i.operands.at(1);
  if (type_of(i) == scalar::pred) {
    o.d = e.destination(to, 0);
    o.a = e.predicate(from);
    o.run = copy_predicate;
  } else if (to.starts_with('{') || from.starts_with('{')) {
    const bool unpacks = to.starts_with('{');
    const std::string_view list = unpacks ? to : from;
    const auto names = split_list(list.substr(1, list.size() - 2));
    if (names.size() != 2 && names.size() != 4) e.refuse("another number of parts");
    for (std::size_t n = 0; n < names.size(); ++n)
      o.elements[n] =
          unpacks ? e.destination(names[n], bytes / names.size()) : e.source(names[n], bytes / names.size());
    if (unpacks)
      o.a = e.source(from, bytes);
    else
      o.d = e.destination(to, bytes);
    o.run = unpacks ? of_parts<unpacker>(bytes, names.size()) : of_parts<packer>(bytes, names.size());
  } else {
    o.d = e.destination(to, bytes);
    o.a = e.source(from, bytes);
    o.run = visit_bits(bytes, []<class T>(T) -> handler { return copy<T>; });
  }
}

/// Where a space begins for a lane; addresses of other spaces are the same everywhere.
template <space S>
std::uint64_t begin_of(warp& w, unsigned lane) {
  if constexpr (S == space::shared) return w.block().shared.begin();
  if constexpr (S == space::local) return w.local_begin(lane);
  if constexpr (S == space::param) return reinterpret_cast<std::uint64_t>(w.what().parameters.data());
  return 0;
}
template <space S, bool To>
void change_space(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<std::uint64_t>(o.a);
  auto* const d = w.lanes<std::uint64_t>(o.d);
  for_each_lane(active, [&](unsigned l) { d[l] = To ? a[l] - begin_of<S>(w, l) : a[l] + begin_of<S>(w, l); });
}
void decode_cvta(encoder& e, const instruction& i, operation& o) {
  if (size_of(type_of(i)) != 8) e.refuse("addresses of 32 bits");
  const bool to = i.has("to");
  e.take(i, o, {8, 8});
  if (i.has("shared"))
    o.run = to ? handler(change_space<space::shared, true>) : change_space<space::shared, false>;
  else if (i.has("local"))
    o.run = to ? handler(change_space<space::local, true>) : change_space<space::local, false>;
  else if (i.has("param"))
    o.run = to ? handler(change_space<space::param, true>) : change_space<space::param, false>;
  else
    o.run = copy<std::uint64_t>;
}

template <space S>
void is_in_space(warp& w, const operation& o, lane_mask active) {
  const auto* const a = w.lanes<std::uint64_t>(o.a);
  const auto& memory = S == space::shared ? w.block().shared : w.local();
  const auto inside = [&](std::uint64_t address, const marked_memory& m) {
    return m.as_window().holds(address, 1);
  };
  w.set(o.d, active, lanes_where([&](unsigned l) {
          if constexpr (S == space::global)
            return !inside(a[l], w.block().shared) && !inside(a[l], w.local());
          else
            return inside(a[l], memory);
        }));
}
void decode_isspacep(encoder& e, const instruction& i, operation& o) {
  e.take(i, o, {0, 8});
  if (i.has("shared")) o.run = is_in_space<space::shared>;
  if (i.has("local")) o.run = is_in_space<space::local>;
  if (i.has("global")) o.run = is_in_space<space::global>;
}

}  // namespace

std::span<const opcode> conversion_opcodes() {
  static constexpr opcode known[] = {
      {"cvt", decode_cvt}, {"mov", decode_mov}, {"cvta", decode_cvta}, {"isspacep", decode_isspacep}};
  return known;
}

}  // namespace emulator::ptx
