// SPDX-License-Identifier: Apache-2.0
// What ranks compare before an operation.
#include "partita/comm/signature.hpp"

#include <doctest/doctest.h>

#include "support/ranks.hpp"

namespace test_signature {

using namespace partita;

TEST_CASE("signatures: ranks agree on what they must share, and on nothing else") {
  comm::collective op;
  op.kind = operation::reduce_scatter;
  const std::vector<global_index> counts{1, 2}, others{2, 1};
  op.input_counts = counts;
  op.count = 1;
  const comm::detail::signature mine = comm::detail::signature_of(op);
  op.count = 2;  // each rank's own
  CHECK(mine.agrees_with(comm::detail::signature_of(op)));
  CHECK(mine.hash() == comm::detail::signature_of(op).hash());
  op.input_counts = others;
  CHECK_FALSE(mine.agrees_with(comm::detail::signature_of(op)));
  CHECK(mine.hash() != comm::detail::signature_of(op).hash());
  op.kind = operation::all_to_all;
  CHECK_FALSE(mine.agrees_with(comm::detail::signature_of(op)));
  CHECK(mine.hash() != comm::detail::signature_of(op).hash());
}

TEST_CASE("signatures: the rank that disagrees is named") {
  comm::collective op;
  op.kind = operation::broadcast;
  op.type = comm::element_type::f32;
  const comm::detail::signature mine = comm::detail::signature_of(op);
  const int names[] = {2, 5, 7};
  using list = std::vector<comm::detail::signature>;
  comm::detail::require_agreement(list{mine, mine, mine}, names);
  op.type = comm::element_type::f64;
  test_support::expect_error<communication_error>("ranks disagree: rank 7 calls broadcast of f64", [&] {
    comm::detail::require_agreement(list{mine, mine, comm::detail::signature_of(op)}, names);
  });
}

}  // namespace test_signature
