// SPDX-License-Identifier: Apache-2.0
// Errors: one base for all, and each kind caught as itself.
#include "partita/base/error.hpp"

#include <doctest/doctest.h>
#include <type_traits>

namespace test_error {

using namespace partita;

static_assert(std::is_base_of_v<std::runtime_error, error>);
static_assert(std::is_base_of_v<communication_error, poisoned_error>);

TEST_CASE_TEMPLATE("errors: caught as partita::error, with their message", E, shape_error, mesh_error,
                   communication_error, poisoned_error, device_error, input_error) {
  std::string said;
  try {
    throw E("3 x 4 and 5 x 6 do not fit");
  } catch (const error& e) {
    said = e.what();
  }
  CHECK(said == "3 x 4 and 5 x 6 do not fit");
}

}  // namespace test_error
