// What communicators send and receive, decided by type.
#include "partita/comm/element_range.hpp"

#include <array>
#include <doctest/doctest.h>
#include <list>
#include <vector>

namespace test_element_range {

using namespace partita;
using numbers = std::vector<double>;

static_assert(transferable<float> && transferable<std::uint8_t> && !transferable<bool> &&
              !transferable<char*>);
static_assert(element_range<numbers> && element_range<const std::array<float, 3>> && element_range<int[4]>);
static_assert(!element_range<std::list<double>> && !element_range<std::vector<std::vector<double>>>);
// An object with a name lasts, and a span; a temporary vector does not.
static_assert(lasting_range<numbers&> && lasting_range<std::span<double>> && !lasting_range<numbers>);
static_assert(writable_range<numbers&> && !writable_range<const numbers&> &&
              !writable_range<std::span<const double>>);
static_assert(writable_range_of<numbers&, double> && !writable_range_of<numbers&, float>);
static_assert(count_range<std::vector<global_index>> && !count_range<std::vector<std::int32_t>>);

TEST_CASE("ranges: elements as they lie in memory") {
  numbers x{1, 2, 3};
  CHECK(detail::input_of(x).data() == x.data());
  CHECK(detail::input_of(std::as_const(x)).size() == 3);
  detail::output_of(x)[1] = 5;
  CHECK(x[1] == 5);
}

}  // namespace test_element_range
