// SPDX-License-Identifier: Apache-2.0
// Conversions between integers and floating-point numbers, moves, and addresses of spaces.
#include <limits>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

/// What a rounding to an integral number makes of a half and of its neighbours.
struct integral_case {
  const char* mode;
  int of_2_5, of_3_5, of_minus_2_5, of_0_7, of_minus_0_7;
};
constexpr integral_case integral_cases[] = {
    {"rni", 2, 4, -2, 1, -1}, {"rzi", 2, 3, -2, 0, 0}, {"rmi", 2, 3, -3, 0, -1}, {"rpi", 3, 4, -2, 1, 0}};

/// Rows for operands of type T, with `of` from the integer expected to the bits of the result.
template <class T, class F>
std::vector<row> integral_rows(const integral_case& c, F of) {
  return {{bits(T{2.5}), 0, 0, of(c.of_2_5)},
          {bits(T{3.5}), 0, 0, of(c.of_3_5)},
          {bits(T{-2.5}), 0, 0, of(c.of_minus_2_5)},
          {bits(T{.75}), 0, 0, of(c.of_0_7)}};
}

}  // namespace

TEST_CASE("cvt cuts integers off, or extends them by their sign") {
  check("cvt.u64.u32 %x64, %a32;", 64, {0xffffffff, 0, 0, 0xffffffff});
  check("cvt.s64.s32 %x64, %a32;", 64, {0xffffffff, 0, 0, all}, {0x7fffffff, 0, 0, 0x7fffffff});
  check("cvt.u32.u64 %x32, %a64;", 32, {0x123456789, 0, 0, 0x23456789});
  check("cvt.s32.s64 %x32, %a64;", 32, {top + 5, 0, 0, 5});
  check("cvt.s32.s16 %x32, %a16;", 32, {0x8000, 0, 0, 0xffff8000});
  check("cvt.u32.u16 %x32, %a16;", 32, {0x8000, 0, 0, 0x8000});
  check("cvt.u16.u32 %x16, %a32;", 16, {0x18001, 0, 0, 0x8001});
  check("cvt.s64.s16 %x64, %a16;", 64, {0xfffe, 0, 0, all - 1});
}

TEST_CASE("cvt takes and gives bytes in wider registers") {
  check("cvt.s32.s8 %x32, %a32;", 32, {0x180, 0, 0, 0xffffff80}, {0x17f, 0, 0, 0x7f});
  check("cvt.u32.u8 %x32, %a32;", 32, {0x180, 0, 0, 0x80});
  check("cvt.s64.s8 %x64, %a64;", 64, {0xff, 0, 0, all});
  check("cvt.u8.u32 %x16, %a32;", 16, {0x1234, 0, 0, 0x34});
  check("cvt.s8.s32 %x16, %a32;", 16, {0x12f4, 0, 0, 0xfff4});
  check("cvt.u16.u32 %x32, %a32;", 32, {0x12345, 0, 0, 0x2345});
  check("cvt.s16.s64 %x32, %a64;", 32, {0x18000, 0, 0, 0xffff8000});
}

TEST_CASE("cvt.sat keeps integers within the limits of the result") {
  check("cvt.sat.u8.s32 %x32, %a32;", 32, {300, 0, 0, 255}, {0xffffffff, 0, 0, 0}, {77, 0, 0, 77});
  check("cvt.sat.s8.s32 %x32, %a32;", 32, {300, 0, 0, 127}, {0xffffff00, 0, 0, 0xffffff80});
  check("cvt.sat.s16.s32 %x16, %a32;", 16, {40000, 0, 0, 0x7fff}, {0x80000000, 0, 0, 0x8000});
  check("cvt.sat.s32.u32 %x32, %a32;", 32, {0xffffffff, 0, 0, 0x7fffffff}, {5, 0, 0, 5});
  check("cvt.sat.u32.s32 %x32, %a32;", 32, {0xffffffff, 0, 0, 0}, {5, 0, 0, 5});
  check("cvt.sat.u32.u64 %x32, %a64;", 32, {1ull << 32, 0, 0, 0xffffffff});
  check("cvt.sat.s32.s64 %x32, %a64;", 32, {top, 0, 0, 0x80000000}, {1ull << 31, 0, 0, 0x7fffffff});
}

TEST_CASE("cvt rounds reals to integers in four ways") {
  for (const integral_case& c : integral_cases) {
    const std::string mode = c.mode;
    const auto word = [](int n) { return std::uint64_t{static_cast<std::uint32_t>(n)}; };
    const auto wide = [](int n) { return static_cast<std::uint64_t>(std::int64_t{n}); };
    check("cvt." + mode + ".s32.f32 %x32, %a32;", 32, integral_rows<float>(c, word));
    check("cvt." + mode + ".s64.f64 %x64, %a64;", 64, integral_rows<double>(c, wide));
    check("cvt." + mode + ".s64.f32 %x64, %a32;", 64, integral_rows<float>(c, wide));
    check("cvt." + mode + ".s32.f64 %x32, %a64;", 32, integral_rows<double>(c, word));
    check("cvt." + mode + ".f32.f32 %x32, %a32;", 32,
          integral_rows<float>(c, [](int n) { return bits(static_cast<float>(n)); }));
    check("cvt." + mode + ".f64.f64 %x64, %a64;", 64,
          integral_rows<double>(c, [](int n) { return bits(static_cast<double>(n)); }));
    check("cvt." + mode + ".s32.f32 %x32, %a32;", 32, {bits(-.7f), 0, 0, word(c.of_minus_0_7)},
          {bits(-0.f), 0, 0, 0});
  }
}

TEST_CASE("cvt from reals stops at the limits of integers") {
  check("cvt.rzi.s32.f32 %x32, %a32;", 32, {bits(3e9f), 0, 0, 0x7fffffff}, {bits(-3e9f), 0, 0, 0x80000000},
        {bits(inf), 0, 0, 0x7fffffff}, {bits(-inf), 0, 0, 0x80000000}, {bits(-0x1p31f), 0, 0, 0x80000000});
  check("cvt.rzi.u32.f32 %x32, %a32;", 32, {bits(-1.f), 0, 0, 0}, {bits(3e9f), 0, 0, 3000000000},
        {bits(5e9f), 0, 0, 0xffffffff}, {bits(-inf), 0, 0, 0});
  check("cvt.rzi.s64.f32 %x64, %a32;", 64, {bits(1e20f), 0, 0, top - 1}, {bits(-1e20f), 0, 0, top});
  check("cvt.rzi.u64.f32 %x64, %a32;", 64, {bits(1e20f), 0, 0, all}, {bits(-1.f), 0, 0, 0},
        {bits(0x1p63f), 0, 0, top});
  check("cvt.rzi.s32.f64 %x32, %a64;", 32, {bits(2147483647.9), 0, 0, 0x7fffffff},
        {bits(1e10), 0, 0, 0x7fffffff}, {bits(-2147483648.9), 0, 0, 0x80000000});
  check("cvt.rzi.u64.f64 %x64, %a64;", 64, {bits(0x1p64), 0, 0, all},
        {bits(0x1.fffffffffffffp63), 0, 0, 0xfffffffffffff800});
  check("cvt.rzi.s16.f32 %x16, %a32;", 16, {bits(40000.f), 0, 0, 0x7fff}, {bits(-40000.f), 0, 0, 0x8000},
        {bits(-3.f), 0, 0, 0xfffd});
  check("cvt.rzi.u8.f32 %x32, %a32;", 32, {bits(300.f), 0, 0, 255}, {bits(-1.f), 0, 0, 0});
}

TEST_CASE("cvt makes 0 of no number, or the highest bit alone where a type has 64 bits") {
  check("cvt.rzi.s32.f32 %x32, %a32;", 32, {bits(no_number), 0, 0, 0});
  check("cvt.rni.u32.f32 %x32, %a32;", 32, {bits(no_number), 0, 0, 0});
  check("cvt.rzi.s32.f64 %x32, %a64;", 32, {bits(wide_no_number), 0, 0, 0x80000000});
  check("cvt.rzi.u32.f64 %x32, %a64;", 32, {bits(wide_no_number), 0, 0, 0x80000000});
  check("cvt.rzi.s64.f32 %x64, %a32;", 64, {bits(no_number), 0, 0, top});
  check("cvt.rzi.u64.f64 %x64, %a64;", 64, {bits(wide_no_number), 0, 0, top});
}

TEST_CASE("cvt rounds integers to reals") {
  struct modes {
    const char* mode;
    std::uint64_t word, minus, wide;  // of 2^24 + 1, its negative, and 2^64 - 1
  };
  for (const modes& m : {modes{"rn", bits(0x1p24f), bits(-0x1p24f), bits(0x1p64f)},
                         {"rz", bits(0x1p24f), bits(-0x1p24f), bits(0x1.fffffep63f)},
                         {"rm", bits(0x1p24f), bits(-0x1.000002p24f), bits(0x1.fffffep63f)},
                         {"rp", bits(0x1.000002p24f), bits(-0x1p24f), bits(0x1p64f)}}) {
    const std::string mode = m.mode;
    check("cvt." + mode + ".f32.s32 %x32, %a32;", 32, {0x1000001, 0, 0, m.word}, {0xfeffffff, 0, 0, m.minus});
    check("cvt." + mode + ".f32.u32 %x32, %a32;", 32, {0x1000001, 0, 0, m.word});
    check("cvt." + mode + ".f32.s64 %x32, %a64;", 32, {0x1000001, 0, 0, m.word},
          {all - 0x1000000, 0, 0, m.minus});
    check("cvt." + mode + ".f32.u64 %x32, %a64;", 32, {all, 0, 0, m.wide});
  }
  check("cvt.rn.f64.s32 %x64, %a32;", 64, {0xffffffff, 0, 0, bits(-1.)}, {0x80000000, 0, 0, bits(-0x1p31)});
  check("cvt.rn.f64.u64 %x64, %a64;", 64, {all, 0, 0, bits(0x1p64)}, {(1ull << 53) + 1, 0, 0, bits(0x1p53)});
  check("cvt.rp.f64.s64 %x64, %a64;", 64, {(1ull << 53) + 1, 0, 0, bits(0x1p53 + 2)});
  check("cvt.rn.f32.u16 %x32, %a16;", 32, {0xffff, 0, 0, bits(65535.f)});
  check("cvt.rn.f32.s8 %x32, %a32;", 32, {0x1ff, 0, 0, bits(-1.f)});
}

TEST_CASE("cvt rounds f64 to f32, and widens f32 exactly") {
  constexpr double x = 1 + 0x1p-24, y = 1 + 3 * 0x1p-24;
  const auto rounded = [](const std::string& mode, float tie, float minus, float above, float huge,
                          float least) {
    check("cvt." + mode + ".f32.f64 %x32, %a64;", 32, {bits(x), 0, 0, bits(tie)},
          {bits(-x), 0, 0, bits(minus)}, {bits(y), 0, 0, bits(above)}, {bits(1e300), 0, 0, bits(huge)},
          {bits(0x1p-151), 0, 0, bits(least)});
  };
  constexpr float e = 0x1p-23f, most = std::numeric_limits<float>::max();
  rounded("rn", 1, -1, 1 + 2 * e, inf, 0);
  rounded("rz", 1, -1, 1 + e, most, 0);
  rounded("rm", 1, -1 - e, 1 + e, most, 0);
  rounded("rp", 1 + e, -1, 1 + 2 * e, inf, 0x1p-149f);
  check("cvt.f64.f32 %x64, %a32;", 64, {bits(1.5f), 0, 0, bits(1.5)}, {bits(0x1p-149f), 0, 0, bits(0x1p-149)},
        {bits(-inf), 0, 0, bits(-1. / 0.)});
  check("cvt.sat.f32.f32 %x32, %a32;", 32, {bits(2.f), 0, 0, bits(1.f)}, {bits(-2.f), 0, 0, 0},
        {bits(.5f), 0, 0, bits(.5f)}, {bits(no_number), 0, 0, 0});
}

TEST_CASE("mov copies, and splits or joins values") {
  check("mov.b16 %x16, %a16;", 16, {0xabcd, 0, 0, 0xabcd});
  check("mov.u32 %x32, 0x1234;", 32, {0, 0, 0, 0x1234});
  check("mov.f32 %x32, 0f3F800000;", 32, {0, 0, 0, bits(1.f)});
  check("mov.f64 %x64, 0d3FF8000000000000;", 64, {0, 0, 0, bits(1.5)});
  check("mov.s64 %x64, -2;", 64, {0, 0, 0, all - 1});
  check("mov.pred %xp, %ap;", 1, {0, 0, 0, 0}, {1, 0, 0, 1});
  check("mov.b64 %x64, {%a32, %b32};", 64, {1, 2, 0, 0x200000001});
  check("mov.b32 %x32, {%a16, %b16};", 32, {0xabcd, 0x1234, 0, 0x1234abcd});
  check("mov.b64 %x64, {%a16, %b16, %c16, %a16};", 64, {1, 2, 3, 0x0001000300020001});
  check("mov.b64 {%x32, %t32_0}, %a64;", 32, {0x123456789abcdef0, 0, 0, 0x9abcdef0});
  check("mov.b64 {_, %x32}, %a64;", 32, {0x123456789abcdef0, 0, 0, 0x12345678});
  check("mov.b32 {%t16_0, %x16}, %a32;", 16, {0xabcd1234, 0, 0, 0xabcd});
  check("mov.b64 {%t16_0, %t16_1, %x16, %t16_2}, %a64;", 16, {0x123456789abcdef0, 0, 0, 0x5678});
  check("mov.b32 {%t16_0, %t16_1}, %a32; mov.b32 %x32, {%t16_1, %t16_0};", 32,
        {0xabcd1234, 0, 0, 0x1234abcd});
}

TEST_CASE("cvta changes between a space and generic addresses, and isspacep tells them") {
  const std::string mine = "mov.u64 %t64_0, shared; cvta.shared.u64 %t64_1, %t64_0; ";
  check(mine + "cvta.to.shared.u64 %t64_2, %t64_1; sub.u64 %x64, %t64_2, %t64_0;", 64, {0, 0, 0, 0});
  check(mine + "st.u32 [%t64_1+4], 7; ld.shared.u32 %x32, [shared+4];", 32, {0, 0, 0, 7});
  check(mine + "isspacep.shared %xp, %t64_1;", 1, {0, 0, 0, 1});
  check(mine + "isspacep.global %xp, %t64_1;", 1, {0, 0, 0, 0});
  check(mine + "isspacep.local %xp, %t64_1;", 1, {0, 0, 0, 0});
  check("isspacep.global %xp, %out;", 1, {0, 0, 0, 1});
  check("isspacep.shared %xp, %out;", 1, {0, 0, 0, 0});
  check("cvta.to.global.u64 %t64_0, %out; cvta.global.u64 %t64_1, %t64_0; sub.u64 %x64, %t64_1, %out;", 64,
        {0, 0, 0, 0});
  check(
      ".local .align 8 .b8 own[16]; mov.u64 %t64_0, own; cvta.local.u64 %t64_1, %t64_0; isspacep.local %xp, "
      "%t64_1;",
      1, {0, 0, 0, 1});
  check(
      ".local .align 8 .b8 own[16]; mov.u64 %t64_0, own; cvta.local.u64 %t64_1, %t64_0; st.u64 [%t64_1+8], "
      "%a64; ld.local.u64 %x64, [own+8];",
      64, {1, 0, 0, 1}, {2, 0, 0, 2});
}

TEST_CASE("flushing conversions, short addresses and unknown types are refused") {
  for (const char* text :
       {"cvt.rn.ftz.f32.f64 %x32, %a64", "cvta.shared.u32 %x32, %a32", "cvt.rna.tf32.f32 %x32, %a32",
        "cvt.u32.u64 %x32, %a32", "cvt.rn.f16.f32 %x16, %a32", "cvt.f32.bf16 %x32, %a16",
        "cvt.pack.sat.s16.s32 %x32, %a32, %b32", "mov.b128 %x64, %a64"})
    opcodes::check_refused(text);
}
