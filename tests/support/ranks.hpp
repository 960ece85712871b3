// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running a body on several ranks inside a test case, and expecting errors. What hangs is ended by ctest.
//
// CHECK may be used in the body: doctest counts it on every thread. SUBCASE may not. A REQUIRE that fails
// leaves its rank with an exception, which fails the run, which ends the test case.

#include "partita/comm/communicator.hpp"
#include "support/sanitized.hpp"

namespace test_support {

/// Square or not, prime or not, a power of two or not.
inline constexpr std::array<int, 10> rank_counts = {1, 2, 3, 4, 6, 8, 9, 12, 16, 27};

/// Whether a test runs on so many ranks: on all, or on fewer where it sees fewer meshes.
bool sees(int ranks);

using rank_body = std::function<void(const partita::communicator&)>;

/// The body on as many threads.
void on_threads(int ranks, const rank_body& body);

/// The body on threads, for every number of ranks in rank_counts.
void on_every_rank_count(const rank_body& body);

/// How an act ended that should have thrown.
struct outcome {
  bool right_type = false;
  std::string what = "nothing was thrown";
};
void check_error(std::string_view part, const std::function<outcome()>& act);

/// Checks that `act` throws exactly an `Error` whose message contains `part`.
template <class Error, class Act>
void expect_error(std::string_view part, Act act) {
  check_error(part, [&]() -> outcome {
    try {
      act();
    } catch (const Error& e) {
      return {typeid(e) == typeid(Error), e.what()};
    } catch (const std::exception& e) {
      return {false, std::string(typeid(e).name()) + ": " + e.what()};
    }
    return {};
  });
}
/// The same of what so many ranks do together.
template <class Error>
void expect_error(int ranks, std::string_view part, const rank_body& act) {
  expect_error<Error>(part, [&] { on_threads(ranks, act); });
}

}  // namespace test_support
