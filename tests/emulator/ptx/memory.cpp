// SPDX-License-Identifier: Apache-2.0
// Loads, stores, and atomic operations.
#include <algorithm>
#include <span>

#include "encoder.hpp"
#include "reach.hpp"

namespace emulator::ptx {

namespace {

/// `elements` of T at `from` to all lanes; registers may be wider.
template <class T>
void broadcast(warp& w, const operation& o, lane_mask active, const std::byte* from) {
  for (unsigned n = 0; n < o.count; ++n) {
    T value;
    std::memcpy(&value, from + n * sizeof(T), sizeof(T));
    const auto store = [&]<class R>(R wide) {
      for_lanes(active, w.lanes<R>(o.elements[n]), [=](unsigned) { return wide; });
    };
    if (o.b == 8)
      store(static_cast<std::uint64_t>(value));
    else if (o.b == 4)
      store(static_cast<std::uint32_t>(value));
    else
      store(static_cast<std::uint16_t>(value));
  }
}

/// One access of the host's memory, up to 16 bytes: others see all of it or nothing, as of a card's vectors,
/// where CUB publishes a flag and a value together.
template <std::size_t Bytes>
void move_at_once(void* to, const void* from) {
  using whole [[gnu::vector_size(Bytes), gnu::may_alias]] = unsigned char;
  *static_cast<volatile whole*>(to) = *static_cast<const volatile whole*>(from);
}
/// As many elements as a vector may have, aligned as it is.
template <class T>
struct alignas(4 * sizeof(T)) vector_of {
  std::array<T, 4> elements;
};
template <class T>
void move_vector(void* to, const void* from, unsigned count) {
  if (count == 1) return move_at_once<sizeof(T)>(to, from);
  if (count == 2) return move_at_once<2 * sizeof(T)>(to, from);
  move_at_once<4 * sizeof(T)>(to, from);
}

/// Whether the lanes have one value, the first one's.
template <class T>
bool same_in_lanes(const T* values, lane_mask active) {
  const T first = values[std::countr_zero(active)];
  lane_mask differ = 0;
  for (unsigned l = 0; l < warp_size; ++l) differ |= static_cast<lane_mask>(values[l] != first) << l;
  return (differ & active) == 0;
}

/// Notes the sectors that a warp touches in one instruction. Addresses of neighbouring lanes come in order,
/// as a rule.
void count_sectors(warp& w, const std::uint64_t* base, const operation& o, std::size_t bytes,
                   lane_mask active, bool writes) {
  constexpr std::uint64_t sector = 32;
  std::array<std::uint64_t, 2 * warp_size> touched;
  std::size_t count = 0;
  for_each_lane(active, [&](unsigned l) {
    const std::uint64_t begin = base[l] + static_cast<std::uint64_t>(o.offset);
    for (std::uint64_t s = begin / sector; s <= (begin + bytes - 1) / sector; ++s)
      if (count == 0 || touched[count - 1] != s) touched[count++] = s;
  });
  std::sort(touched.begin(), touched.begin() + count);
  const auto end = std::unique(touched.begin(), touched.begin() + count);
  block_state& b = w.block();
  b.sectors.insert(touched.begin(), end);
  const auto different = static_cast<std::uint64_t>(end - touched.begin());
  (writes ? b.moved.store_sectors : b.moved.load_sectors) += different;
  b.moved.loads += writes ? 0 : 1;
  b.moved.wide_loads += !writes && bytes >= 16 ? 1 : 0;
}
template <space S>
bool counts_sectors(warp& w) {
  return S == space::generic && w.what().counts_sectors;
}

/// `elements` of T in memory at the address in `a`. An address that all lanes share is looked up once, unless
/// a detector of races wants to know of each of them.
template <space S, class T>
void load(warp& w, const operation& o, lane_mask active) {
  const auto* const base = w.lanes<std::uint64_t>(o.a);
  const access how = access_of(o);
  if (counts_sectors<S>(w)) count_sectors(w, base, o, sizeof(T) * o.count, active, false);
  if (S != space::local && w.what().races == nullptr && same_in_lanes(base, active)) {
    const auto lane = static_cast<unsigned>(std::countr_zero(active));
    vector_of<T> all;
    move_vector<T>(
        &all, reach<S>(w, lane, base[lane] + static_cast<std::uint64_t>(o.offset), sizeof(T) * o.count, how),
        o.count);
    return broadcast<T>(w, o, active, std::as_bytes(std::span(all.elements)).data());
  }
  std::array<const std::byte*, warp_size> from{};
  const auto find = [&](std::size_t bytes) {
    for_each_lane(active, [&](unsigned l) {
      from[l] = reach<S>(w, l, base[l] + static_cast<std::uint64_t>(o.offset), bytes, how);
    });
  };
  std::array<vector_of<T>, warp_size> vectors;
  if (o.count == 1) {
    find(sizeof(T));
  } else {
    find(sizeof(T) * o.count);
    for_each_lane(active, [&](unsigned l) {
      move_vector<T>(&vectors[l], from[l], o.count);
      from[l] = std::as_bytes(std::span(vectors[l].elements)).data();
    });
  }
  for (unsigned n = 0; n < o.count; ++n) {
    const auto store = [&]<class R>(R) {
      auto* const to = w.lanes<R>(o.elements[n]);
      for_each_lane(active, [&](unsigned l) {
        T value;
        std::memcpy(&value, from[l] + n * sizeof(T), sizeof(T));
        to[l] = static_cast<R>(value);
      });
    };
    if (o.b == 8)
      store(std::uint64_t{});
    else if (o.b == 4)
      store(std::uint32_t{});
    else
      store(std::uint16_t{});
  }
}
/// A parameter at a place that the text names.
template <class T>
void load_parameter(warp& w, const operation& o, lane_mask active) {
  broadcast<T>(w, o, active, w.what().parameters.data() + o.offset);
}
template <space S, class T>
void store(warp& w, const operation& o, lane_mask active) {
  const std::size_t bytes = sizeof(T) * o.count;
  const auto* const base = w.lanes<std::uint64_t>(o.a);
  const auto* const registers = w.lanes<unsigned char>(0);
  if (counts_sectors<S>(w)) count_sectors(w, base, o, bytes, active, true);
  for_each_lane(active, [&](unsigned l) {
    std::byte* const to = reach<S>(w, l, base[l] + static_cast<std::uint64_t>(o.offset), bytes, access_of(o));
    vector_of<T> all;
    for (unsigned n = 0; n < std::min<unsigned>(o.count, 4); ++n)
      std::memcpy(&all.elements[n], registers + o.elements[n] + std::size_t{l} * o.b, sizeof(T));
    move_vector<T>(to, &all, o.count);
  });
}

space space_said(const instruction& i) {
  for (const std::string_view w : i.words) {
    if (w == "global") return space::global;
    if (w == "shared" || w == "shared::cta") return space::shared;
    if (w == "local") return space::local;
    if (w == "param" || w == "param::entry" || w == "param::func") return space::param;
    if (w == "const") return space::constant;
  }
  return space::generic;
}

/// Sets base and offset, and says in which space they are. A parameter of a function lies in local memory.
space take_address(encoder& e, const instruction& i, std::string_view operand, operation& o) {
  const space said = space_said(i);
  if (i.has("shared::cluster")) e.refuse("memory of a cluster");
  const encoder::address at = e.address_in(operand, said);
  o.offset = at.offset;
  o.a = at.base;
  if (at.where == space::reg) {  // a register of 32 bits
    operation widen;
    widen.source = &i;
    widen.guard = o.guard;
    widen.unless = o.unless;
    widen.a = at.base;
    widen.d = o.a = e.scratch(8);
    widen.run = [](warp& w, const operation& wide, lane_mask active) {
      const auto* const a = w.lanes<std::uint32_t>(wide.a);
      for_lanes(active, w.lanes<std::uint64_t>(wide.d), [=](unsigned l) { return std::uint64_t{a[l]}; });
    };
    e.append(widen);
  }
  if (said == space::param && at.where == space::local) return space::local;
  if (said == space::param && at.where == space::generic && e.depth() > 1) return space::local;
  return said == space::global || said == space::constant ? space::generic : said;
}
bool is_strong(const instruction& i) {
  for (const char* word : {"volatile", "relaxed", "acquire", "release", "mmio"})
    if (i.has(word)) return true;
  return false;
}
std::vector<std::string_view> elements_of(std::string_view operand) {
  if (!operand.starts_with('{')) return {operand};
  return split_list(operand.substr(1, operand.size() - 2));
}

void decode_load(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  const space s = take_address(e, i, i.operands.at(1), o);
  const auto names = elements_of(i.operands[0]);
  if (names.size() > 4) e.refuse("a vector of more than four elements");
  o.count = static_cast<std::uint8_t>(names.size());
  o.target = static_cast<std::uint32_t>(is_strong(i) ? access::strong_read : access::read);
  std::size_t bytes = std::max<std::size_t>(size_of(type), 2);
  for (const std::string_view name : names) bytes = std::max(bytes, e.width(name));
  o.b = static_cast<slot>(bytes);
  for (std::size_t n = 0; n < names.size(); ++n) o.elements[n] = e.destination(names[n], bytes);
  const auto place = e.parameter_at(o.a, o.offset, o.count * size_of(type));
  const auto make = [&]<class T>(T) -> handler {
    if (s == space::param && place) return load_parameter<T>;
    return for_space(s, []<space S>() -> handler { return load<S, T>; });
  };
  o.run = is_integer(type) ? visit_integer(type, make) : visit_bits(size_of(type), make);
  if (s == space::param && place) o.offset = *place;
}
void decode_store(encoder& e, const instruction& i, operation& o) {
  const scalar type = type_of(i);
  const space s = take_address(e, i, i.operands.at(0), o);
  const auto names = elements_of(i.operands.at(1));
  if (names.size() > 4) e.refuse("a vector of more than four elements");
  o.count = static_cast<std::uint8_t>(names.size());
  o.target = static_cast<std::uint32_t>(is_strong(i) ? access::strong_write : access::write);
  std::size_t bytes = std::max<std::size_t>(size_of(type), 2);
  for (const std::string_view name : names) bytes = std::max(bytes, e.width(name));
  o.b = static_cast<slot>(bytes);
  for (std::size_t n = 0; n < names.size(); ++n) o.elements[n] = e.source(names[n], bytes);
  if (s == space::param) e.refuse("a store to a parameter");
  o.run = visit_bits(size_of(type), [&]<class T>(T) {
    return for_space(s, []<space S>() -> handler { return store<S, T>; });
  });
}

using plus = decltype([]<class T>(T old, T b, T) -> T {
  return static_cast<T>(static_cast<wrapping_t<T>>(old) + static_cast<wrapping_t<T>>(b));
});
using smallest = decltype([]<class T>(T old, T b, T) -> T { return b < old ? b : old; });
using largest = decltype([]<class T>(T old, T b, T) -> T { return b > old ? b : old; });
using exchange = decltype([]<class T>(T, T b, T) -> T { return b; });
using compare_and_swap = decltype([]<class T>(T old, T b, T c) -> T { return old == b ? c : old; });
struct both {
  template <class T>
  requires std::is_integral_v<T> T operator()(T old, T b, T) const { return old & b; }
};
struct either {
  template <class T>
  requires std::is_integral_v<T> T operator()(T old, T b, T) const { return old | b; }
};
struct one_of {
  template <class T>
  requires std::is_integral_v<T> T operator()(T old, T b, T) const { return old ^ b; }
};
/// Counts up to b and begins anew, or down from it.
struct increment {
  template <class T>
  requires std::is_integral_v<T> T operator()(T old, T b, T) const { return old >= b ? T{0} : old + 1; }
};
struct decrement {
  template <class T>
  requires std::is_integral_v<T> T operator()(T old, T b, T) const {
    return old == 0 || old > b ? b : old - 1;
  }
};

template <space S, class T, class F>
void update(warp& w, const operation& o, lane_mask active) {
  using bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  const auto* const base = w.lanes<std::uint64_t>(o.a);
  const auto* const b = w.lanes<T>(o.b);
  const auto* const c = w.lanes<T>(o.c);
  auto* const d = w.lanes<T>(o.d);
  for_each_lane(active, [&](unsigned l) {
    const std::uint64_t address = base[l] + static_cast<std::uint64_t>(o.offset);
    auto* const at =
        reinterpret_cast<lane_of<bits>*>(reach<S>(w, l, address, sizeof(T), access::strong_read));
    reach<S>(w, l, address, sizeof(T), access::strong_write);
    bits old = __atomic_load_n(at, __ATOMIC_SEQ_CST), made = 0;
    do made = std::bit_cast<bits>(F{}(std::bit_cast<T>(old), T{b[l]}, T{c[l]}));
    while (!__atomic_compare_exchange_n(at, &old, made, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    d[l] = std::bit_cast<T>(old);
  });
}

template <class F>
handler updates(space s, scalar type) {
  return visit_number(type, [&]<class T>(T) -> handler {
    if constexpr (sizeof(T) >= 4 && requires { F{}(T{}, T{}, T{}); })
      return for_space(s, []<space S>() -> handler { return update<S, T, F>; });
    else
      return nullptr;
  });
}

/// `atom` gives the old value, `red` does not.
void decode_atomic(encoder& e, const instruction& i, operation& o) {
  const bool gives = i.name() == "atom";
  const scalar type = type_of(i);
  const std::size_t bytes = size_of(type), first = gives ? 1 : 0;
  const space s = take_address(e, i, i.operands.at(first), o);
  o.d = gives ? e.destination(i.operands[0], bytes) : e.scratch(bytes);
  o.b = o.c = e.source(i.operands.at(first + 1), bytes);
  if (i.has("cas")) o.c = e.source(i.operands.at(first + 2), bytes);
  if (s == space::param || s == space::local) e.refuse("an atomic operation in this space");
  if (i.has("add")) o.run = updates<plus>(s, type);
  if (i.has("min")) o.run = updates<smallest>(s, type);
  if (i.has("max")) o.run = updates<largest>(s, type);
  if (i.has("exch")) o.run = updates<exchange>(s, type);
  if (i.has("cas")) o.run = updates<compare_and_swap>(s, type);
  if (i.has("and")) o.run = updates<both>(s, type);
  if (i.has("or")) o.run = updates<either>(s, type);
  if (i.has("xor")) o.run = updates<one_of>(s, type);
  if (i.has("inc")) o.run = updates<increment>(s, type);
  if (i.has("dec")) o.run = updates<decrement>(s, type);
}

void decode_fence(encoder&, const instruction&, operation& o) {
  o.run = [](warp&, const operation&, lane_mask) { __atomic_thread_fence(__ATOMIC_SEQ_CST); };
}
void decode_nothing(encoder&, const instruction&, operation& o) {
  o.run = [](warp&, const operation&, lane_mask) {};
}

constexpr opcode known[] = {{"ld", decode_load},
                            {"ldu", decode_load},
                            {"st", decode_store},
                            {"atom", decode_atomic},
                            {"red", decode_atomic},
                            {"membar", decode_fence},
                            {"fence", decode_fence},
                            {"prefetch", decode_nothing},
                            {"prefetchu", decode_nothing},
                            {"nanosleep", decode_nothing},
                            {"griddepcontrol", decode_nothing}};

}  // namespace

std::span<const opcode> memory_opcodes() { return known; }

}  // namespace emulator::ptx
