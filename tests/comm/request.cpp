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

TEST_CASE("operations in flight are limited") {
  expect_error<communication_error>(2, "has more than 8 operations in flight at broadcast of f64",
                                    [](const communicator& c) {
                                      std::array<double, 9> data{};
                                      std::vector<request> requests;
                                      for (double& x : data)
                                        requests.push_back(c.start_broadcast(std::span(&x, 1), 0));
                                      for (request& r : requests) r.wait();
                                    });
}

}  // namespace test_request
