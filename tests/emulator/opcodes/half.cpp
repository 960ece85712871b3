// SPDX-License-Identifier: Apache-2.0
// Conversions of halves: IEEE's f16, and bf16.
#include <limits>

#include "opcode_case.hpp"

using opcodes::bits, opcodes::check, opcodes::row;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(),
                no_number = std::numeric_limits<float>::quiet_NaN();

struct pair {
  float wide;
  std::uint64_t half;
};
std::vector<row> rows(const std::vector<pair>& pairs, bool widens) {
  std::vector<row> all;
  for (const auto& [wide, half] : pairs)
    all.push_back(widens ? row{half, 0, 0, bits(wide)} : row{bits(wide), 0, 0, half});
  return all;
}

/// What both hold exactly.
const std::vector<pair> exact_halves = {{0.f, 0},           {-0.f, 0x8000},        {1.f, 0x3c00},
                                        {-2.5f, 0xc100},    {65504.f, 0x7bff},     {0x1p-14f, 0x0400},
                                        {0x1p-24f, 0x0001}, {-0x3p-24f, 0x8003},   {inf, 0x7c00},
                                        {-inf, 0xfc00},     {0x1.ff8p-15f, 0x03ff}};
const std::vector<pair> exact_brain_halves = {
    {0.f, 0},       {-0.f, 0x8000},      {1.f, 0x3f80},       {-2.5f, 0xc020},      {inf, 0x7f80},
    {-inf, 0xff80}, {0x1p-126f, 0x0080}, {0x1p-133f, 0x0001}, {0x1.fep127f, 0x7f7f}};

}  // namespace

TEST_CASE("f16 and f32 become each other exactly where both can") {
  check("cvt.rn.f16.f32 %x16, %a32;", 16, rows(exact_halves, false));
  check("cvt.f32.f16 %x32, %a16;", 32, rows(exact_halves, true));
}

TEST_CASE("f32 becomes the nearest f16, the even one of two, or infinite") {
  check("cvt.rn.f16.f32 %x16, %a32;", 16,
        rows({{1 + 0x1p-11f, 0x3c00},
              {1 + 0x3p-11f, 0x3c02},
              {1 + 0x1.002p-11f, 0x3c01},
              {1 + 0x1.ffep-12f, 0x3c00},
              {65519.f, 0x7bff},
              {65520.f, 0x7c00},
              {-65520.f, 0xfc00},
              {1e10f, 0x7c00},
              {0x1.ffcp0f + 0x1p-11f, 0x4000}},
             false));
}

TEST_CASE("small f32 become subnormal f16, or zero of their sign") {
  check("cvt.rn.f16.f32 %x16, %a32;", 16,
        rows({{0x1p-25f, 0},
              {0x1.002p-25f, 1},
              {0x3p-25f, 2},
              {-0x1p-25f, 0x8000},
              {-0x1p-30f, 0x8000},
              {0x1p-149f, 0},
              {0x1.ffep-15f, 0x0400},
              {0x1.ffcp-15f, 0x0400},
              {0x1.ffbp-15f, 0x03ff}},
             false));
}

TEST_CASE("bf16 and f32 become each other exactly where both can") {
  check("cvt.rn.bf16.f32 %x16, %a32;", 16, rows(exact_brain_halves, false));
}

TEST_CASE("f32 becomes the nearest bf16, the even one of two, or infinite") {
  check("cvt.rn.bf16.f32 %x16, %a32;", 16,
        rows({{1 + 0x1p-8f, 0x3f80},
              {1 + 0x3p-8f, 0x3f82},
              {1 + 0x1.0002p-8f, 0x3f81},
              {-1 - 0x3p-8f, 0xbf82},
              {0x1.fefffep127f, 0x7f7f},
              {0x1.ffp127f, 0x7f80},
              {0x1p-134f, 0},
              {0x3p-134f, 2},
              {0x1p-149f, 0}},
             false));
}

TEST_CASE("no number becomes the canonical one") {
  check("cvt.rn.f16.f32 %x16, %a32;", 16, rows({{no_number, 0x7fff}, {-no_number, 0x7fff}}, false));
  check("cvt.rn.bf16.f32 %x16, %a32;", 16, rows({{no_number, 0x7fff}, {-no_number, 0x7fff}}, false));
  check("cvt.f32.f16 %x32, %a16; testp.notanumber.f32 %xp, %x32;", 1, {0x7e00, 0, 0, 1}, {0xfc01, 0, 0, 1},
        {0x7c00, 0, 0, 0});
}

TEST_CASE("two f32 become a pair of halves, the first one the upper") {
  check("cvt.rn.f16x2.f32 %x32, %a32, %b32;", 32, {bits(1.f), bits(-2.5f), 0, 0x3c00c100},
        {bits(1e10f), bits(0x1p-25f), 0, 0x7c000000});
  check("cvt.rn.bf16x2.f32 %x32, %a32, %b32;", 32, {bits(1.f), bits(-2.5f), 0, 0x3f80c020},
        {bits(no_number), bits(1 + 0x3p-8f), 0, 0x7fff3f82});
}

TEST_CASE("a card of compute capability 9.0 widens bf16") {
  const std::string module =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry test(.param .u64 words) {\n.reg .b64 %d;\n.reg .b16 %h;\n.reg .f32 %f;\nld.param.u64 "
      "%d, [words];\n"
      "ld.global.u16 %h, [%d];\ncvt.f32.bf16 %f, %h;\nst.global.f32 [%d], %f;\nret;\n}\n";
  for (const auto& [wide, half] : exact_brain_halves)
    CHECK(opcodes::run_module(module, {half}, 1, 1)[0] == bits(wide));
}

TEST_CASE("other conversions of halves are refused") {
  for (const char* text :
       {"cvt.rz.f16.f32 %x16, %a32", "cvt.rn.relu.f16.f32 %x16, %a32", "cvt.rn.f16.s32 %x16, %a32",
        "cvt.f64.f16 %x64, %a16", "cvt.sat.f32.f16 %x32, %a16", "cvt.rni.s32.f16 %x32, %a16"})
    opcodes::check_refused(text);
}
