#pragma once
// Running a body on several ranks inside a test case, and expecting errors in time.
//
// CHECK may be used in the body: doctest counts it on every thread. SUBCASE may not. A REQUIRE that fails
// leaves its rank with an exception, which fails the run, which ends the test case.
#include <array>
#include <chrono>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <string_view>
#include <typeinfo>

#include "partita/comm/threads.hpp"

namespace test_support {

/// Square or not, prime or not, a power of two or not.
inline constexpr std::array<int, 10> rank_counts = {1, 2, 3, 4, 6, 8, 9, 12, 16, 27};

/// body(communicator) on as many threads.
template <class Body>
void on_threads(int ranks, Body body) {
  partita::threads::run(ranks, std::move(body));
}

/// body(communicator) on threads, for every number of ranks in rank_counts.
template <class Body>
void on_every_rank_count(Body body) {
  for (int ranks : rank_counts) on_threads(ranks, std::ref(body));
}

/// Checks that `act` throws exactly an `Error` whose message contains `part`, within one second.
template <class Error, class Act>
void expect_error(std::string_view part, Act act) {
  const auto begin = std::chrono::steady_clock::now();
  std::string what = "nothing was thrown";
  bool right_type = false;
  try {
    act();
  } catch (const Error& e) {
    what = e.what();
    right_type = typeid(e) == typeid(Error);
  } catch (const std::exception& e) {
    what = std::string(typeid(e).name()) + ": " + e.what();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  CHECK_MESSAGE(right_type, "not the expected exception: ", what);
  CHECK_MESSAGE(what.find(part) != std::string::npos, "expected '", std::string(part), "' in: ", what);
  CHECK(taken.count() < 1.0);
}

}  // namespace test_support
