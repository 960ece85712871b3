// SPDX-License-Identifier: Apache-2.0
// What a communicator asks of its arguments before any rank is told. Its operations are in laws/.
#include "partita/comm/communicator.hpp"

#include <doctest/doctest.h>

#include "partita/comm/self.hpp"
#include "support/ranks.hpp"

namespace test_communicator {

using namespace test_support;

TEST_CASE("buffers that do not fit their counts") {
  const communicator c = partita::self::world();
  const std::vector<double> in(1);
  std::vector<double> out(1);
  const std::vector<global_index> one = {1}, two_ranks = {1, 1}, two_elements = {2};
  std::vector<double> pair(2);
  expect_error<communication_error>("2 counts for 1 ranks", [&] { c.all_gather(in, two_ranks, pair); });
  expect_error<communication_error>("the gathered buffer has 2 elements, the counts say 1",
                                    [&] { c.all_gather(in, one, pair); });
  expect_error<communication_error>("the block of rank 0 has 1 elements, the counts say 2",
                                    [&] { c.all_gather(in, two_elements, pair); });
  expect_error<communication_error>("expects 1 elements in all_to_all of f64",
                                    [&] { c.all_to_all(pair, two_elements, out, one); });
  expect_error<communication_error>("point-to-point messages need at least two ranks",
                                    [&] { c.send(in, 0); });
  expect_error<communication_error>(2, ": 3 elements cannot be divided evenly among 2 ranks",
                                    [](const communicator& two) {
                                      static_cast<void>(two.all_to_all(std::array{1, 2, 3}));
                                    });
  expect_error<communication_error>(2, "ranks disagree: rank ", [](const communicator& two) {
    static_cast<void>(two.all_gather(std::vector<double>(two.rank() == 0 ? 1 : 2)));
  });
}

}  // namespace test_communicator
