// SPDX-License-Identifier: Apache-2.0
// Consecutive numbers of ids.
#include "partita/base/numbering.hpp"

#include <doctest/doctest.h>
#include <map>

#include "partita/base/random.hpp"

namespace test_numbering {

using namespace partita;

TEST_CASE_TEMPLATE("ids are numbered in the order in which they occur, whatever was numbered before", Id,
                   local_index, global_index) {
  base::numbering<Id> numbers;
  for (const int count : {5, 20000, 0, 300, 33}) {
    numbers.clear();
    CHECK(numbers.size() == 0);
    std::map<Id, local_index> expected;
    std::size_t faults = 0;
    for (int i = 0; i < count; ++i) {
      const auto v = static_cast<Id>(base::random_bits(1, i, count) % (i % 2 == 0 ? 1u << 31 : 997u));
      const auto [place, is_new] = expected.emplace(v, static_cast<local_index>(expected.size()));
      numbers.prefetch(v);
      faults += numbers.contains(v) == is_new;
      faults += numbers(v) != std::pair(place->second, is_new);
    }
    CHECK(faults == 0);
    CHECK(numbers.size() == static_cast<local_index>(expected.size()));
  }
}

}  // namespace test_numbering
