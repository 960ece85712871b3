// SPDX-License-Identifier: Apache-2.0
// Operations in flight.
#include "partita/comm/request.hpp"

#include <doctest/doctest.h>

#include "support/ranks.hpp"

namespace test_request {

using namespace test_support;

static_assert(!std::is_copy_constructible_v<request> && std::is_nothrow_move_constructible_v<request>);

TEST_CASE("a request is pending until it has been waited for, wherever it was moved") {
  on_threads(2, [](const communicator& c) {
    std::vector<double> x(3, 1);
    request first = c.start_all_reduce(x);
    CHECK(first.pending());
    CHECK(c.ledger().entries().empty());
    request second = std::move(first);
    CHECK_FALSE(first.pending());
    first.wait();
    second.wait();
    CHECK_FALSE(second.pending());
    CHECK(c.ledger().entries().size() == 1);
    second.wait();
    CHECK(c.ledger().entries().size() == 1);
    CHECK(x == std::vector<double>(3, 2));
  });
  CHECK_FALSE(request().pending());
}

TEST_CASE("any number of operations may be in flight, and be waited for in any order") {
  for (const std::size_t each : {1, 5000})
    for (const bool backwards : {false, true})
      on_threads(3, [&](const communicator& c) {
        constexpr std::size_t operations = 20;
        std::vector<double> sums(each, 1.0 + c.rank());
        std::vector<std::vector<double>> data(operations, std::vector<double>(each));
        request first = c.start_all_reduce(std::span(sums));  // over all others
        std::vector<request> requests;
        for (std::size_t k = 0; k < operations; ++k) {
          const int root = static_cast<int>(k % 3);
          if (c.rank() == root) data[k].assign(each, static_cast<double>(k));
          requests.push_back(c.start_broadcast(std::span(data[k]), root));
        }
        if (backwards) std::ranges::reverse(requests);
        for (request& r : requests) r.wait();
        first.wait();
        CHECK(sums == std::vector<double>(each, 6));
        for (std::size_t k = 0; k < operations; ++k)
          CHECK(data[k] == std::vector<double>(each, static_cast<double>(k)));
      });
}

}  // namespace test_request
