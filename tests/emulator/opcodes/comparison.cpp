// SPDX-License-Identifier: Apache-2.0
// Comparisons, and choices between operands.
#include <limits>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

/// Whether a relation holds for a less than b, equal to it, greater, and not comparable.
struct relation {
  const char* name;
  bool less, equal, greater, unordered;
};
constexpr relation ordered[] = {{"eq", false, true, false, false}, {"ne", true, false, true, false},
                                {"lt", true, false, false, false}, {"le", true, true, false, false},
                                {"gt", false, false, true, false}, {"ge", false, true, true, false}};
constexpr relation with_none[] = {{"equ", false, true, false, true}, {"neu", true, false, true, true},
                                  {"ltu", true, false, false, true}, {"leu", true, true, false, true},
                                  {"gtu", false, false, true, true}, {"geu", false, true, true, true},
                                  {"num", true, true, true, false},  {"nan", false, false, false, true}};

std::string comparison(const relation& r, const std::string& type) {
  const std::string n = type.substr(1);
  return "setp." + std::string(r.name) + "." + type + " %xp, %a" + n + ", %b" + n + ";";
}
template <class T>
void check_reals(const relation& r, const std::string& type, T none) {
  check(comparison(r, type), 1, {bits(T{1}), bits(T{2}), 0, r.less}, {bits(T{2}), bits(T{2}), 0, r.equal},
        {bits(T{-0.f}), bits(T{0}), 0, r.equal}, {bits(T{3}), bits(T{-3}), 0, r.greater},
        {bits(T{inf}), bits(T{inf}), 0, r.equal}, {bits(none), bits(T{1}), 0, r.unordered},
        {bits(T{1}), bits(none), 0, r.unordered}, {bits(none), bits(none), 0, r.unordered});
}
void check_integers(const relation& r, unsigned width) {
  const std::uint64_t minus_one = ~0ull >> (64 - width);
  const std::string n = std::to_string(width);
  check(comparison(r, "s" + n), 1, {minus_one, 1, 0, r.less}, {7, 7, 0, r.equal},
        {1, minus_one, 0, r.greater});
  check(comparison(r, "u" + n), 1, {minus_one, 1, 0, r.greater}, {7, 7, 0, r.equal},
        {1, minus_one, 0, r.less});
}

}  // namespace

TEST_CASE("setp of reals compares numbers, and holds without one where it says so") {
  for (const relation& r : ordered) {
    check_reals<float>(r, "f32", no_number);
    check_reals<double>(r, "f64", wide_no_number);
  }
  for (const relation& r : with_none) {
    check_reals<float>(r, "f32", no_number);
    check_reals<double>(r, "f64", wide_no_number);
  }
}

TEST_CASE("setp of integers knows signs") {
  for (const relation& r : ordered)
    for (const unsigned width : {16u, 32u, 64u}) check_integers(r, width);
  for (const relation& r : {relation{"lo", true, false, false, false},
                            {"ls", true, true, false, false},
                            {"hi", false, false, true, false},
                            {"hs", false, true, true, false}})
    check(comparison(r, "u32"), 1, {1, 0xffffffff, 0, r.less}, {5, 5, 0, r.equal},
          {0xffffffff, 1, 0, r.greater});
}

TEST_CASE("setp of bits is equal or not") {
  check("setp.eq.b32 %xp, %a32, %b32;", 1, {0x80000000, 0x80000000, 0, 1}, {0, 0x80000000, 0, 0});
  check("setp.ne.b64 %xp, %a64, 0;", 1, {1ull << 40, 0, 0, 1}, {0, 0, 0, 0});
  check("setp.eq.b16 %xp, %a16, %b16;", 1, {0x1ffff, 0x2ffff, 0, 1});
}

TEST_CASE("setp.ftz takes subnormal numbers for zero") {
  check("setp.eq.f32 %xp, %a32, %b32;", 1, {bits(tiny), bits(0.f), 0, 0}, {bits(-tiny), bits(tiny), 0, 0});
  check("setp.eq.ftz.f32 %xp, %a32, %b32;", 1, {bits(tiny), bits(0.f), 0, 1}, {bits(-tiny), bits(tiny), 0, 1},
        {bits(1.f), bits(tiny), 0, 0});
}

TEST_CASE("setp joins the relation with a predicate") {
  // a < b, and c
  const auto rows = [](unsigned neither, unsigned other, unsigned relation, unsigned both) {
    return std::vector<row>{{2, 1, 0, neither}, {2, 1, 1, other}, {1, 2, 0, relation}, {1, 2, 1, both}};
  };
  check("setp.lt.and.s32 %xp, %a32, %b32, %cp;", 1, rows(0, 0, 0, 1));
  check("setp.lt.or.s32 %xp, %a32, %b32, %cp;", 1, rows(0, 1, 1, 1));
  check("setp.lt.xor.s32 %xp, %a32, %b32, %cp;", 1, rows(0, 1, 1, 0));
  check("setp.lt.and.s32 %xp, %a32, %b32, !%cp;", 1, rows(0, 0, 1, 0));
  check("setp.lt.or.u64 %xp, %a64, %b64, !%cp;", 1, rows(1, 0, 1, 1));
  check("setp.lt.xor.u16 %xp, %a16, %b16, !%cp;", 1, rows(1, 0, 0, 1));
}

TEST_CASE("setp's second result has the opposite relation, joined with the same predicate") {
  check("setp.lt.s32 %tp_0|%xp, %a32, %b32;", 1, {1, 2, 0, 0}, {2, 1, 0, 1});
  check("setp.lt.s32 %xp|%tp_0, %a32, %b32;", 1, {1, 2, 0, 1}, {2, 1, 0, 0});
  check("setp.lt.and.s32 %tp_0|%xp, %a32, %b32, %cp;", 1, {1, 2, 1, 0}, {2, 1, 1, 1}, {2, 1, 0, 0});
  check("setp.lt.f32 %tp_0|%xp, %a32, %b32;", 1, {bits(no_number), bits(1.f), 0, 1});
}

TEST_CASE("selp chooses by a predicate") {
  check("selp.b16 %x16, %a16, %b16, %cp;", 16, {1, 2, 1, 1}, {1, 2, 0, 2});
  check("selp.b32 %x32, %a32, %b32, %cp;", 32, {1, 2, 1, 1}, {1, 2, 0, 2});
  check("selp.f32 %x32, 0f3F800000, 0f40000000, %cp;", 32, {0, 0, 1, bits(1.f)}, {0, 0, 0, bits(2.f)});
  check("selp.u64 %x64, %a64, %b64, %cp;", 64, {~0ull, 2, 1, ~0ull}, {~0ull, 2, 0, 2});
  check("selp.f64 %x64, %a64, %b64, %cp;", 64, {bits(1.), bits(2.), 1, bits(1.)},
        {bits(1.), bits(2.), 0, bits(2.)});
}

TEST_CASE("set, slct, testp, comparisons of halves and unordered integers are refused") {
  for (const char* text :
       {"set.lt.u32.s32 %x32, %a32, %b32", "setp.lt.f16 %xp, %a16, %b16", "setp.ltu.s32 %xp, %a32, %b32",
        "slct.b32.s32 %x32, %a32, %b32, %c32", "testp.finite.f32 %xp, %a32"})
    opcodes::check_refused(text);
}
