// SPDX-License-Identifier: Apache-2.0
// What communicators send and receive, decided by type.
#include "partita/comm/element_range.hpp"

#include <doctest/doctest.h>
#include <list>
#include <vector>

namespace test_element_range {

using namespace partita;
using numbers = std::vector<double>;

static_assert(comm::transferable<float> && comm::transferable<std::uint8_t> && !comm::transferable<bool> &&
              !comm::transferable<char*>);
static_assert(comm::element_range<numbers> && comm::element_range<const std::array<float, 3>> &&
              comm::element_range<int[4]>);
static_assert(!comm::element_range<std::list<double>> &&
              !comm::element_range<std::vector<std::vector<double>>>);
// An object with a name lasts, and a span; a temporary vector does not.
static_assert(comm::lasting_range<numbers&> && comm::lasting_range<std::span<double>> &&
              !comm::lasting_range<numbers>);
static_assert(comm::writable_range<numbers&> && !comm::writable_range<const numbers&> &&
              !comm::writable_range<std::span<const double>>);
static_assert(comm::writable_range_of<numbers&, double> && !comm::writable_range_of<numbers&, float>);
static_assert(comm::count_range<std::vector<global_index>> && !comm::count_range<std::vector<std::int32_t>>);

TEST_CASE("ranges: elements as they lie in memory") {
  numbers x{1, 2, 3};
  CHECK(comm::detail::input_of(x).data() == x.data());
  CHECK(comm::detail::input_of(std::as_const(x)).size() == 3);
  comm::detail::output_of(x)[1] = 5;
  CHECK(x[1] == 5);
}

}  // namespace test_element_range
