// SPDX-License-Identifier: Apache-2.0
// Where lanes of a warp, and threads of a block, meet: shuffles, votes, matches, reductions, barriers.
#include "encoder.hpp"
#include "lanes.hpp"

namespace emulator::ptx {

namespace {

/// What the lanes bring and get, by their own operations.
struct gathering {
  warp& w;
  lane_mask lanes;
  const std::array<const operation*, warp_size>& operations;

  /// Bit l: the predicate of lane l holds there.
  lane_mask yes() const {
    lane_mask m = 0;
    for_each_lane(lanes, [&](unsigned l) {
      const operation& o = *operations[l];
      m |= (w.mask(o.a) ^ (o.count == 0 ? every_lane : 0)) & lane_mask{1} << l;
    });
    return m;
  }
  std::uint64_t brought(unsigned l) const {
    const operation& o = *operations[l];
    return o.count == 8 ? w.lanes<std::uint64_t>(o.a)[l] : w.lanes<std::uint32_t>(o.a)[l];
  }
  void give_word(lane_mask value) const {
    for_each_lane(lanes, [&](unsigned l) { w.lanes<std::uint32_t>(operations[l]->d)[l] = value; });
  }
  void give_predicate(bool value) const {
    for_each_lane(lanes,
                  [&](unsigned l) { w.set(operations[l]->d, lane_mask{1} << l, value ? every_lane : 0); });
  }
};

/// The lane whose value lane l gets, and whether that is in its segment.
std::pair<unsigned, bool> partner(meeting how, unsigned l, std::uint32_t by, std::uint32_t limits) {
  by &= 31;
  const unsigned segment = limits >> 8 & 31, clamp = limits & 31;
  const unsigned last = (l & segment) | (clamp & ~segment), first = l & segment;
  if (how == meeting::shuffle_up)
    return {l - by, static_cast<int>(l) - static_cast<int>(by) >= static_cast<int>(last)};
  if (how == meeting::shuffle_down) return {l + by, l + by <= last};
  if (how == meeting::shuffle_butterfly) return {l ^ by, (l ^ by) <= last};
  return {first | (by & ~segment), (first | (by & ~segment)) <= last};
}

void shuffle(const gathering& g) {
  std::array<std::uint32_t, warp_size> brought{};
  for_each_lane(g.lanes, [&](unsigned l) { brought[l] = static_cast<std::uint32_t>(g.brought(l)); });
  for_each_lane(g.lanes, [&](unsigned l) {
    const operation& o = *g.operations[l];
    auto [from, inside] =
        partner(o.meets, l, g.w.lanes<std::uint32_t>(o.b)[l], g.w.lanes<std::uint32_t>(o.c)[l]);
    if (!inside) from = l;
    if ((g.lanes >> from & 1) == 0)
      throw lane_fault(l, "takes the value of lane " + std::to_string(from) + ", which does not take part");
    g.w.lanes<std::uint32_t>(o.d)[l] = brought[from];
    if (o.second != always) g.w.set(o.second, lane_mask{1} << l, inside ? every_lane : 0);
  });
}

void match(const gathering& g, bool all) {
  bool equal = true;
  const std::uint64_t first = g.brought(static_cast<unsigned>(std::countr_zero(g.lanes)));
  for_each_lane(g.lanes, [&](unsigned l) { equal &= g.brought(l) == first; });
  for_each_lane(g.lanes, [&](unsigned l) {
    lane_mask same = 0;
    for_each_lane(g.lanes, [&](unsigned m) { same |= g.brought(m) == g.brought(l) ? lane_mask{1} << m : 0; });
    const operation& o = *g.operations[l];
    g.w.lanes<std::uint32_t>(o.d)[l] = !all ? same : equal ? g.lanes : 0;
    if (all && o.second != always) g.w.set(o.second, lane_mask{1} << l, equal ? every_lane : 0);
  });
}

enum class reduction : std::uint8_t {
  add,
  smallest,
  largest,
  smallest_signed,
  largest_signed,
  both,
  either,
  one_of
};

void reduce(const gathering& g) {
  const auto how =
      static_cast<reduction>(g.operations[static_cast<unsigned>(std::countr_zero(g.lanes))]->offset);
  std::uint32_t total = 0;
  bool begun = false;
  for_each_lane(g.lanes, [&](unsigned l) {
    const auto x = static_cast<std::uint32_t>(g.brought(l));
    const auto join = [&]() -> std::uint32_t {
      const auto sx = static_cast<std::int32_t>(x), st = static_cast<std::int32_t>(total);
      if (how == reduction::add) return total + x;
      if (how == reduction::smallest) return std::min(total, x);
      if (how == reduction::largest) return std::max(total, x);
      if (how == reduction::smallest_signed) return static_cast<std::uint32_t>(std::min(st, sx));
      if (how == reduction::largest_signed) return static_cast<std::uint32_t>(std::max(st, sx));
      if (how == reduction::both) return total & x;
      if (how == reduction::either) return total | x;
      return total ^ x;
    };
    total = begun ? join() : x;
    begun = true;
  });
  g.give_word(total);
}

/// `d|p`, where there is a second result.
std::string_view take_second(encoder& e, std::string_view operand, operation& o) {
  const auto bar = operand.find('|');
  if (bar == std::string_view::npos) return operand;
  o.second = e.destination(trimmed(operand.substr(bar + 1)), 0);
  return trimmed(operand.substr(0, bar));
}
void take_voter(encoder& e, std::string_view operand, operation& o) {
  o.count = operand.starts_with('!') ? 0 : 1;
  o.a = e.predicate(operand.substr(operand.starts_with('!') ? 1 : 0));
}
void begin(encoder& e, const instruction& i, operation& o) {
  if (!i.has("sync")) e.refuse("a meeting without .sync");
  o.what = flow::warp_wide;
}

void decode_shfl(encoder& e, const instruction& i, operation& o) {
  begin(e, i, o);
  o.d = e.destination(take_second(e, i.operands.at(0), o), 4);
  o.a = e.source(i.operands.at(1), 4);
  o.b = e.source(i.operands.at(2), 4);
  o.c = e.source(i.operands.at(3), 4);
  o.e = e.source(i.operands.at(4), 4);
  o.meets = i.has("up")     ? meeting::shuffle_up
            : i.has("down") ? meeting::shuffle_down
            : i.has("bfly") ? meeting::shuffle_butterfly
                            : meeting::shuffle_index;
}
void decode_vote(encoder& e, const instruction& i, operation& o) {
  begin(e, i, o);
  const bool ballot = i.has("ballot");
  o.d = e.destination(i.operands.at(0), ballot ? 4 : 0);
  take_voter(e, i.operands.at(1), o);
  o.e = e.source(i.operands.at(2), 4);
  o.meets = ballot         ? meeting::ballot
            : i.has("any") ? meeting::any
            : i.has("all") ? meeting::all
                           : meeting::uniform;
}
void decode_match(encoder& e, const instruction& i, operation& o) {
  begin(e, i, o);
  const std::size_t bytes = size_of(type_of(i));
  o.d = e.destination(take_second(e, i.operands.at(0), o), 4);
  o.a = e.source(i.operands.at(1), bytes);
  o.count = static_cast<std::uint8_t>(bytes);
  o.e = e.source(i.operands.at(2), 4);
  o.meets = i.has("all") ? meeting::match_all : meeting::match_any;
}
void decode_redux(encoder& e, const instruction& i, operation& o) {
  begin(e, i, o);
  const scalar type = type_of(i);
  if (size_of(type) != 4 || type == scalar::f32) e.refuse("a reduction of this type");
  e.take(i, o, {4, 4});
  o.e = e.source(i.operands.at(2), 4);
  o.meets = meeting::reduce;
  const bool s = is_signed(type);
  o.offset = static_cast<std::int64_t>(i.has("add")   ? reduction::add
                                       : i.has("min") ? (s ? reduction::smallest_signed : reduction::smallest)
                                       : i.has("max") ? (s ? reduction::largest_signed : reduction::largest)
                                       : i.has("and") ? reduction::both
                                       : i.has("or")  ? reduction::either
                                                      : reduction::one_of);
}
void decode_activemask(encoder& e, const instruction& i, operation& o) {
  o.d = e.destination(i.operands.at(0), 4);
  o.run = [](warp& w, const operation& op, lane_mask active) {
    for_lanes(active, w.lanes<std::uint32_t>(op.d), [=](unsigned) { return active; });
  };
}
/// bar.sync 0, bar.red.or.pred p, 0, q, barrier.sync 0, bar.warp.sync mask
void decode_barrier(encoder& e, const instruction& i, operation& o) {
  if (i.has("warp")) {
    begin(e, i, o);
    o.e = e.source(i.operands.at(0), 4);
    o.meets = meeting::synchronize;
    return;
  }
  o.what = flow::barrier;
  const bool reduces = i.has("red");
  const std::size_t number = reduces ? 1 : 0;
  if (i.has("arrive") || i.has("cluster") || i.operands.size() != (reduces ? 3u : 1u) ||
      i.operands[number] != "0")
    e.refuse("a barrier of some threads");
  if (!reduces) return;
  take_voter(e, i.operands[2], o);
  o.d = e.destination(i.operands[0], i.has("popc") ? 4 : 0);
  o.meets = i.has("popc") ? meeting::count : i.has("or") ? meeting::any : meeting::all;
}

void decode_trap(encoder&, const instruction&, operation& o) {
  o.run = [](warp&, const operation&, lane_mask active) {
    throw lane_fault(static_cast<unsigned>(std::countr_zero(active)), "traps");
  };
}

}  // namespace

void perform_meeting(warp& w, lane_mask lanes, const std::array<const operation*, warp_size>& operations) {
  const gathering g{w, lanes, operations};
  switch (operations[static_cast<unsigned>(std::countr_zero(lanes))]->meets) {
    case meeting::shuffle_up:
    case meeting::shuffle_down:
    case meeting::shuffle_butterfly:
    case meeting::shuffle_index:
      return shuffle(g);
    case meeting::ballot:
      return g.give_word(g.yes());
    case meeting::any:
      return g.give_predicate(g.yes() != 0);
    case meeting::all:
      return g.give_predicate(g.yes() == lanes);
    case meeting::uniform:
      return g.give_predicate(g.yes() == 0 || g.yes() == lanes);
    case meeting::match_any:
      return match(g, false);
    case meeting::match_all:
      return match(g, true);
    case meeting::reduce:
      return reduce(g);
    default:
      return;
  }
}

std::span<const opcode> meeting_opcodes() {
  static constexpr opcode known[] = {{"shfl", decode_shfl},
                                     {"vote", decode_vote},
                                     {"match", decode_match},
                                     {"redux", decode_redux},
                                     {"activemask", decode_activemask},
                                     {"bar", decode_barrier},
                                     {"barrier", decode_barrier},
                                     {"trap", decode_trap},
                                     {"brkpt", decode_trap}};
  return known;
}

}  // namespace emulator::ptx
