// SPDX-License-Identifier: Apache-2.0
// The 16-bit format: every number of it, and what floats are rounded to, against the nearest of all of them.
#include "partita/base/bfloat16.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "partita/base/random.hpp"

namespace test_bfloat16 {

using namespace partita;
using base::bfloat16;

static_assert(bfloat16(1.0F) == 1.0F && bfloat16(-0.0F).bits() == 0x8000);
static_assert(!std::is_convertible_v<float, bfloat16> && std::is_convertible_v<bfloat16, float>);

TEST_CASE("every bfloat16 is a float, and is rounded to itself") {
  std::size_t faults = 0;
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const auto x = bfloat16::from_bits(static_cast<std::uint16_t>(b));
    faults += x.bits() != b;
    if (std::isnan(float{x}))
      faults += bfloat16(float{x}).bits() != (b | 0x40U);
    else
      faults += bfloat16(float{x}).bits() != b;
  }
  CHECK(faults == 0);
}

TEST_CASE("a float becomes the nearest bfloat16, of two that are equally near the even one") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::size_t faults = 0;
  for (std::uint64_t n = 0; n < 400000; ++n) {
    auto bits =
        static_cast<std::uint32_t>(base::random_bits(3, static_cast<std::int64_t>(n), 0)) & 0x7fffffffU;
    if (n % 2 == 0) bits = (bits & 0xffff0000U) | (0x7fffU + n / 2 % 3);  // beside and between two of them
    const float x = std::bit_cast<float>(bits);
    const bfloat16 found(x);
    faults += bfloat16(-x).bits() != (found.bits() | 0x8000U);
    if (std::isnan(x)) {
      faults += !std::isnan(float{found});
      continue;
    }
    const auto below = static_cast<std::uint16_t>(bits >> 16);
    const auto above = static_cast<std::uint16_t>(below + 1);
    const double low = float{bfloat16::from_bits(below)};
    double high = float{bfloat16::from_bits(above)};
    if (high == double{infinity}) high = 0x1p128;
    const double down = double{x} - low, up = high - double{x};
    const bool rounds_up = x != infinity && (up < down || (up == down && below % 2 == 1));
    faults += found.bits() != (rounds_up ? above : below);
  }
  CHECK(faults == 0);
  CHECK(float{bfloat16(infinity)} == infinity);
  CHECK(float{bfloat16(std::numeric_limits<float>::max())} == infinity);
  CHECK(std::isnan(float{bfloat16(std::bit_cast<float>(0x7f800001U))}));
}

}  // namespace test_bfloat16
