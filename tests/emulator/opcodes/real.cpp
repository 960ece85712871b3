// SPDX-License-Identifier: Apache-2.0
// Arithmetic of floating-point numbers where the result is exact or rounded.
#include <limits>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

constexpr double wide_inf = std::numeric_limits<double>::infinity();
constexpr float least = 0x1p-126f;

row reals(float a, float b, float c, float expected) { return {bits(a), bits(b), bits(c), bits(expected)}; }
row reals(double a, double b, double c, double expected) {
  return {bits(a), bits(b), bits(c), bits(expected)};
}

/// One instruction under the four rounding modes.
template <class T>
struct rounding_case {
  std::string name, operands;
  T a, b, c, nearest, to_zero, down, up;
};
template <class T>
void check_rounding(const std::vector<rounding_case<T>>& cases) {
  const std::string type = sizeof(T) == 4 ? ".f32 " : ".f64 ";
  for (const auto& one : cases)
    for (const auto& [mode, expected] :
         {std::pair{".rn", one.nearest}, {".rz", one.to_zero}, {".rm", one.down}, {".rp", one.up}})
      check(one.name + mode + type + one.operands, 8 * sizeof(T), reals(one.a, one.b, one.c, expected));
}

/// That there is no number, whose bits the manual leaves open.
void check_no_number(const std::string& text, const std::string& type, const std::vector<row>& operands) {
  std::vector<row> rows = operands;
  for (row& r : rows) r.expected = 1;
  check(text + " setp.nan." + type + " %xp, %x" + type.substr(1) + ", %x" + type.substr(1) + ";", 1, rows);
}

constexpr const char *two = "%x32, %a32, %b32;", *three = "%x32, %a32, %b32, %c32;", *one = "%x32, %a32;";
constexpr const char *wide_two = "%x64, %a64, %b64;", *wide_three = "%x64, %a64, %b64, %c64;",
                     *wide_one = "%x64, %a64;";

}  // namespace

TEST_CASE("f32 is rounded to the nearest, to zero, down or up") {
  constexpr float e = 0x1p-23f, x = 1 + e, y = 1 + 2 * e;
  check_rounding<float>(
      {{"add", two, 1, e / 2, 0, 1, 1, 1, x},
       {"add", two, -1, -e / 2, 0, -1, -1, -x, -1},
       {"add", two, x, e / 2, 0, y, x, x, y},
       {"sub", two, 1, -e / 2, 0, 1, 1, 1, x},
       {"sub", two, 1, e / 8, 0, 1, 1 - e / 2, 1 - e / 2, 1},
       {"mul", two, x, x, 0, y, y, y, y + e},
       {"mul", two, x, -x, 0, -y, -y, -y - e, -y},
       {"fma", three, x, x, -y, 0x1p-46f, 0x1p-46f, 0x1p-46f, 0x1p-46f},
       {"fma", three, 1, 1, e / 2, 1, 1, 1, x},
       {"mad", three, x, x, 0, y, y, y, y + e},
       {"div", two, 1, 3, 0, 0x1.555556p-2f, 0x1.555554p-2f, 0x1.555554p-2f, 0x1.555556p-2f},
       {"div", two, -1, 3, 0, -0x1.555556p-2f, -0x1.555554p-2f, -0x1.555556p-2f, -0x1.555554p-2f},
       {"sqrt", one, 2, 0, 0, 0x1.6a09e6p0f, 0x1.6a09e6p0f, 0x1.6a09e6p0f, 0x1.6a09e8p0f},
       {"rcp", one, 3, 0, 0, 0x1.555556p-2f, 0x1.555554p-2f, 0x1.555554p-2f, 0x1.555556p-2f}});
}

TEST_CASE("f64 is rounded to the nearest, to zero, down or up") {
  constexpr double e = 0x1p-52, x = 1 + e, y = 1 + 2 * e, third = 0x1.5555555555555p-2,
                   above = 0x1.5555555555556p-2;
  check_rounding<double>({{"add", wide_two, 1, e / 2, 0, 1, 1, 1, x},
                          {"add", wide_two, -1, -e / 2, 0, -1, -1, -x, -1},
                          {"sub", wide_two, 1, e / 8, 0, 1, 1 - e / 2, 1 - e / 2, 1},
                          {"mul", wide_two, x, x, 0, y, y, y, y + e},
                          {"fma", wide_three, x, x, -y, 0x1p-104, 0x1p-104, 0x1p-104, 0x1p-104},
                          {"mad", wide_three, x, -x, 0, -y, -y, -y - e, -y},
                          {"div", wide_two, 1, 3, 0, third, third, third, above},
                          {"sqrt", wide_one, 2, 0, 0, 0x1.6a09e667f3bcdp0, 0x1.6a09e667f3bccp0,
                           0x1.6a09e667f3bccp0, 0x1.6a09e667f3bcdp0},
                          {"rcp", wide_one, 3, 0, 0, third, third, third, above}});
}

TEST_CASE("what rounds without a mode rounds to the nearest, and keeps subnormal numbers") {
  check("add.f32 %x32, %a32, %b32;", 32, reals(1.f, 0x1p-24f, 0.f, 1.f), reals(tiny, tiny, 0.f, 2 * tiny),
        reals(0.f, -0.f, 0.f, 0.f));
  check("sub.f32 %x32, %a32, %b32;", 32, reals(least, tiny, 0.f, least - tiny), reals(-0.f, 0.f, 0.f, -0.f));
  check("mul.f32 %x32, %a32, %b32;", 32, reals(least, .5f, 0.f, least / 2), reals(tiny, .5f, 0.f, 0.f),
        reals(-tiny, .5f, 0.f, -0.f));
  check("add.f64 %x64, %a64, %b64;", 64, reals(0x1p-1074, 0x1p-1074, 0., 0x1p-1073));
  check("sub.f64 %x64, %a64, %b64;", 64, reals(3., 5., 0., -2.));
  check("mul.f64 %x64, %a64, %b64;", 64, reals(3., -5., 0., -15.));
  check("div.rn.f32 %x32, %a32, %b32;", 32, reals(1.f, 0.f, 0.f, inf), reals(-1.f, 0.f, 0.f, -inf),
        reals(1.f, -inf, 0.f, -0.f));
  check("sqrt.rn.f32 %x32, %a32;", 32, reals(-0.f, 0.f, 0.f, -0.f), reals(inf, 0.f, 0.f, inf),
        reals(9.f, 0.f, 0.f, 3.f));
  check("rcp.rn.f64 %x64, %a64;", 64, reals(-0., 0., 0., -wide_inf), reals(wide_inf, 0., 0., 0.),
        reals(4., 0., 0., .25));
}

TEST_CASE("there is no number where no number is right") {
  check_no_number("add.f32 %x32, %a32, %b32;", "f32",
                  {reals(inf, -inf, 0.f, 0.f), reals(no_number, 1.f, 0.f, 0.f)});
  check_no_number("mul.f64 %x64, %a64, %b64;", "f64",
                  {reals(wide_inf, 0., 0., 0.), reals(1., wide_no_number, 0., 0.)});
  check_no_number("fma.rn.f32 %x32, %a32, %b32, %c32;", "f32",
                  {reals(inf, 0.f, 1.f, 0.f), reals(inf, 1.f, -inf, 0.f)});
  check_no_number("div.rn.f32 %x32, %a32, %b32;", "f32",
                  {reals(0.f, 0.f, 0.f, 0.f), reals(inf, inf, 0.f, 0.f)});
  check_no_number("sqrt.rn.f64 %x64, %a64;", "f64", {reals(-1., 0., 0., 0.), reals(-wide_inf, 0., 0., 0.)});
}

TEST_CASE(".ftz takes subnormal operands and results for zeros of their sign") {
  check("add.ftz.f32 %x32, %a32, %b32;", 32, reals(tiny, 0.f, 0.f, 0.f),
        reals(least, -least - tiny, 0.f, -0.f), reals(1.f, tiny, 0.f, 1.f));
  check("sub.ftz.f32 %x32, %a32, %b32;", 32, reals(1.5f * least, least, 0.f, 0.f),
        reals(-0.f, tiny, 0.f, -0.f));
  check("mul.ftz.f32 %x32, %a32, %b32;", 32, reals(least, .5f, 0.f, 0.f), reals(-least, .5f, 0.f, -0.f),
        reals(tiny, 0x1p100f, 0.f, 0.f));
  check("fma.rn.ftz.f32 %x32, %a32, %b32, %c32;", 32, reals(tiny, 0x1p100f, 1.f, 1.f),
        reals(1.f, least, -.5f * least, least));
  check("div.rn.ftz.f32 %x32, %a32, %b32;", 32, reals(least, 2.f, 0.f, 0.f), reals(1.f, tiny, 0.f, inf));
  check("sqrt.rn.ftz.f32 %x32, %a32;", 32, reals(tiny, 0.f, 0.f, 0.f), reals(-tiny, 0.f, 0.f, -0.f));
  check("rcp.rn.ftz.f32 %x32, %a32;", 32, reals(-0x1p127f, 0.f, 0.f, -0.f), reals(tiny, 0.f, 0.f, inf));
  check("min.ftz.f32 %x32, %a32, %b32;", 32, reals(tiny, 1.f, 0.f, 0.f));
  check("abs.ftz.f32 %x32, %a32;", 32, reals(-tiny, 0.f, 0.f, 0.f), reals(-1.f, 0.f, 0.f, 1.f));
  check("neg.ftz.f32 %x32, %a32;", 32, reals(tiny, 0.f, 0.f, -0.f), reals(1.f, 0.f, 0.f, -1.f));
}

TEST_CASE(".sat keeps results between 0 and 1, and makes 0 of no number") {
  check("add.sat.f32 %x32, %a32, %b32;", 32, reals(.75f, .75f, 0.f, 1.f), reals(-1.f, .5f, 0.f, 0.f),
        reals(no_number, 1.f, 0.f, 0.f), reals(.25f, .5f, 0.f, .75f));
  check("sub.sat.f32 %x32, %a32, %b32;", 32, reals(1.f, 3.f, 0.f, 0.f), reals(inf, 1.f, 0.f, 1.f));
  check("mul.sat.f32 %x32, %a32, %b32;", 32, reals(2.f, 3.f, 0.f, 1.f), reals(.5f, .5f, 0.f, .25f));
  check("fma.rn.sat.f32 %x32, %a32, %b32, %c32;", 32, reals(2.f, 3.f, -5.5f, .5f), reals(2.f, 3.f, 4.f, 1.f));
  check("add.ftz.sat.f32 %x32, %a32, %b32;", 32, reals(tiny, 0.f, 0.f, 0.f), reals(1.f, 1.f, 0.f, 1.f));
}

TEST_CASE("min and max prefer numbers, and order zeros by sign") {
  check("min.f32 %x32, %a32, %b32;", 32, reals(1.f, 2.f, 0.f, 1.f), reals(no_number, 2.f, 0.f, 2.f),
        reals(1.f, no_number, 0.f, 1.f), reals(0.f, -0.f, 0.f, -0.f), reals(-inf, 0.f, 0.f, -inf),
        {bits(no_number), bits(no_number), 0, 0x7fffffff});
  check("max.f32 %x32, %a32, %b32;", 32, reals(1.f, 2.f, 0.f, 2.f), reals(no_number, 2.f, 0.f, 2.f),
        reals(-inf, no_number, 0.f, -inf), reals(-0.f, 0.f, 0.f, 0.f), reals(0.f, -0.f, 0.f, 0.f),
        {bits(no_number), bits(no_number), 0, 0x7fffffff});
  check("min.f64 %x64, %a64, %b64;", 64, reals(wide_no_number, 2., 0., 2.), reals(-0., 0., 0., -0.),
        reals(3., 2., 0., 2.));
  check("max.f64 %x64, %a64, %b64;", 64, reals(2., wide_no_number, 0., 2.), reals(-0., 0., 0., 0.),
        reals(3., 2., 0., 3.));
  check_no_number("min.f64 %x64, %a64, %b64;", "f64", {reals(wide_no_number, wide_no_number, 0., 0.)});
}

TEST_CASE("min.NaN and max.NaN give no number beside none") {
  for (const char* name : {"min", "max"})
    check(name + std::string(".NaN.f32 %x32, %a32, %b32;"), 32, {bits(no_number), bits(1.f), 0, 0x7fffffff},
          {bits(1.f), bits(no_number), 0, 0x7fffffff}, reals(1.f, 1.f, 0.f, 1.f));
  check("min.NaN.f32 %x32, %a32, %b32;", 32, reals(1.f, -2.f, 0.f, -2.f));
  check("max.NaN.f32 %x32, %a32, %b32;", 32, reals(1.f, -2.f, 0.f, 1.f));
}

TEST_CASE("neg and abs change the sign alone") {
  check("neg.f32 %x32, %a32;", 32, reals(0.f, 0.f, 0.f, -0.f), reals(-inf, 0.f, 0.f, inf),
        reals(tiny, 0.f, 0.f, -tiny));
  check("neg.f64 %x64, %a64;", 64, reals(1.5, 0., 0., -1.5), reals(-0., 0., 0., 0.));
  check("abs.f32 %x32, %a32;", 32, reals(-0.f, 0.f, 0.f, 0.f), reals(-inf, 0.f, 0.f, inf),
        reals(-tiny, 0.f, 0.f, tiny));
  check("abs.f64 %x64, %a64;", 64, reals(-1.5, 0., 0., 1.5), reals(2., 0., 0., 2.));
}

TEST_CASE("arithmetic of halves, and directions with .ftz or .sat, are refused") {
  for (const char* text :
       {"add.f16 %x16, %a16, %b16", "copysign.f32 %x32, %a32, %b32", "fma.rn.bf16 %x16, %a16, %b16, %c16",
        "mul.f16x2 %x32, %a32, %b32", "add.rz.ftz.f32 %x32, %a32, %b32", "mul.rp.sat.f32 %x32, %a32, %b32",
        "min.xorsign.abs.f32 %x32, %a32, %b32", "add.f32 %x32, %a32"})
    opcodes::check_refused(text);
}
