// SPDX-License-Identifier: Apache-2.0
// Functions that a card approximates: their special values, and numbers as near as the manual promises.
#include <bit>
#include <cmath>
#include <limits>

#include "opcode_case.hpp"

using namespace opcodes;

namespace {

struct value {
  float a, expected;
};
/// Of an instruction `name` with one operand: exactly, or where the error may be so large, relative or
/// absolute.
void check_values(const std::string& name, const std::vector<value>& values, float relative = 0,
                  float absolute = 0) {
  std::vector<row> rows;
  for (const value& v : values) rows.push_back({bits(v.a), 0, 0, 0});
  const auto found = opcodes::run(name + " %x32, %a32;", 32, rows);
  INFO(name);
  for (std::size_t n = 0; n < values.size(); ++n) {
    const auto [a, expected] = values[n];
    const float y = std::bit_cast<float>(static_cast<std::uint32_t>(found[n]));
    INFO("a ", a, ", y ", y);
    if (std::isnan(expected))
      CHECK(std::isnan(y));
    else if (relative == 0 && absolute == 0)
      CHECK(bits(y) == bits(expected));
    else
      CHECK(std::fabs(y - expected) <= relative * std::fabs(expected) + absolute);
  }
}
/// Against the function of C++ for some numbers.
void check_near(const std::string& name, auto f, const std::vector<float>& operands, float relative,
                float absolute = 0) {
  std::vector<value> values;
  for (const float a : operands) values.push_back({a, static_cast<float>(f(double{a}))});
  check_values(name, values, relative, absolute);
}

}  // namespace

TEST_CASE("ex2.approx is 2 to the operand") {
  check_values("ex2.approx.f32",
               {{0.f, 1.f}, {-0.f, 1.f}, {-inf, 0.f}, {inf, inf}, {no_number, no_number}, {-0x1p-149f, 1.f}});
  check_values("ex2.approx.ftz.f32", {{0.f, 1.f}, {-inf, 0.f}, {0x1p-149f, 1.f}, {-140.f, 0.f}});
  check_near(
      "ex2.approx.f32", [](double a) { return std::exp2(a); }, {1, 2, -3, .5f, -.3f, 10.7f, 100.25f, -120.5f},
      0x1p-22f);
}

TEST_CASE("lg2.approx is the binary logarithm") {
  check_values(
      "lg2.approx.f32",
      {{0.f, -inf}, {-0.f, -inf}, {inf, inf}, {-1.f, no_number}, {no_number, no_number}, {1.f, 0.f}});
  check_values("lg2.approx.ftz.f32", {{0x1p-149f, -inf}, {1.f, 0.f}});
  check_near(
      "lg2.approx.f32", [](double a) { return std::log2(a); },
      {2, 8, .5f, 3, .7f, 1.3f, 1e20f, 1e-20f, 0x1p-149f}, 0x1p-21f, 0x1p-21f);
}

TEST_CASE("sin.approx and cos.approx are sine and cosine near 0") {
  const std::vector<float> angles = {.1f, -.1f, 1, -1, 1.5707964f, 3, 3.1415927f, 5, -6};
  check_values("sin.approx.f32",
               {{0.f, 0.f}, {-0.f, -0.f}, {inf, no_number}, {-inf, no_number}, {no_number, no_number}});
  check_values("sin.approx.ftz.f32", {{0x1p-149f, 0.f}, {-0x1p-149f, -0.f}});
  check_values("cos.approx.f32",
               {{0.f, 1.f}, {-0.f, 1.f}, {inf, no_number}, {-inf, no_number}, {no_number, no_number}});
  check_near(
      "sin.approx.f32", [](double a) { return std::sin(a); }, angles, 0, 0x1p-20f);
  check_near(
      "cos.approx.ftz.f32", [](double a) { return std::cos(a); }, angles, 0, 0x1p-20f);
}

TEST_CASE("tanh.approx is the hyperbolic tangent") {
  check_values("tanh.approx.f32",
               {{0.f, 0.f}, {-0.f, -0.f}, {inf, 1.f}, {-inf, -1.f}, {no_number, no_number}});
  check_near(
      "tanh.approx.f32", [](double a) { return std::tanh(a); }, {.1f, -.5f, 1, 2, -3, 10}, 0x1p-10f);
}

TEST_CASE("rsqrt, sqrt and rcp are approximated") {
  check_values("rsqrt.approx.f32",
               {{0.f, inf}, {-0.f, -inf}, {inf, 0.f}, {-1.f, no_number}, {no_number, no_number}});
  check_values("rsqrt.approx.ftz.f32", {{0x1p-149f, inf}, {-0x1p-149f, -inf}});
  check_near(
      "rsqrt.approx.f32", [](double a) { return 1 / std::sqrt(a); }, {1, 2, 4, .3f, 1e30f, 1e-30f}, 0x1p-22f);
  check_values("sqrt.approx.f32",
               {{0.f, 0.f}, {-0.f, -0.f}, {inf, inf}, {-1.f, no_number}, {no_number, no_number}});
  check_values("sqrt.approx.ftz.f32", {{0x1p-149f, 0.f}, {-0x1p-149f, -0.f}});
  check_near(
      "sqrt.approx.f32", [](double a) { return std::sqrt(a); }, {1, 2, 4, .3f, 1e30f, 1e-30f}, 0x1p-22f);
  check_values("rcp.approx.f32",
               {{0.f, inf}, {-0.f, -inf}, {inf, 0.f}, {-inf, -0.f}, {no_number, no_number}});
  check_values("rcp.approx.ftz.f32", {{0x1p-149f, inf}, {-0x1p-149f, -inf}});
  check_near(
      "rcp.approx.f32", [](double a) { return 1 / a; }, {1, 3, -7, .3f, 1e30f, 1e-30f}, 0x1p-22f);
}

TEST_CASE("div.approx and div.full divide") {
  for (const std::string name : {"div.approx.f32", "div.full.f32", "div.approx.ftz.f32"}) {
    const auto found = opcodes::run(name + " %x32, %a32, %b32;", 32,
                                    {{bits(1.f), bits(3.f), 0, 0}, {bits(-10.f), bits(4.f), 0, 0}});
    const auto number = [&](int n) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(found[static_cast<std::size_t>(n)]));
    };
    CHECK(std::fabs(number(0) - 1.f / 3) <= 0x1p-22f);
    CHECK(std::fabs(number(1) + 2.5f) <= 0x1p-20f);
  }
}

TEST_CASE("rcp and rsqrt of f64 are approximated in the upper half") {
  const auto check_half = [](const std::string& text, std::vector<double> operands, double (*f)(double)) {
    std::vector<row> rows;
    for (const double a : operands) rows.push_back({bits(a), 0, 0, 0});
    const auto found = opcodes::run(text, 64, rows);
    INFO(text);
    for (std::size_t n = 0; n < operands.size(); ++n) {
      CHECK(std::fabs(std::bit_cast<double>(found[n]) / f(operands[n]) - 1) <= 0x1p-18);
      if (text.find("ftz") != std::string::npos) CHECK((found[n] & 0xffffffff) == 0);
    }
  };
  check_half("rcp.approx.ftz.f64 %x64, %a64;", {1, 3, -7, 1e100}, [](double a) { return 1 / a; });
  check_half("rsqrt.approx.ftz.f64 %x64, %a64;", {1, 3, 7, 1e100}, [](double a) { return 1 / std::sqrt(a); });
  check_half("rsqrt.approx.f64 %x64, %a64;", {1, 3, 7, 1e100}, [](double a) { return 1 / std::sqrt(a); });
  opcodes::check("rcp.approx.ftz.f64 %x64, %a64;", 64, {bits(0.), 0, 0, bits(double{inf})},
                 {bits(-0.), 0, 0, bits(-double{inf})}, {bits(double{inf}), 0, 0, 0},
                 {bits(0x1p-1074), 0, 0, bits(double{inf})});
  opcodes::check("rsqrt.approx.ftz.f64 %x64, %a64;", 64, {bits(0.), 0, 0, bits(double{inf})},
                 {bits(-0.), 0, 0, bits(-double{inf})}, {bits(double{inf}), 0, 0, 0},
                 {bits(0x1p-1074), 0, 0, bits(double{inf})});
}
