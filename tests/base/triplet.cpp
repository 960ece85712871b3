// SPDX-License-Identifier: Apache-2.0
// Entries of sparse matrices.
#include "partita/base/triplet.hpp"

#include <doctest/doctest.h>

namespace test_triplet {

using namespace partita;

TEST_CASE_TEMPLATE("triplets: equal in place and value", T, float, double) {
  CHECK(triplet<T>{} == triplet<T>{0, 0, T(0)});
  CHECK(triplet<T>{1, 2, T(3)} == triplet<T>{1, 2, T(3)});
  CHECK_FALSE(triplet<T>{1, 2, T(3)} == triplet<T>{2, 1, T(3)});
  CHECK_FALSE(triplet<T>{1, 2, T(3)} == triplet<T>{1, 2, T(4)});
}

}  // namespace test_triplet
