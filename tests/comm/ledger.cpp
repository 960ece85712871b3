// SPDX-License-Identifier: Apache-2.0
// Accounts of what a rank received: the convention, by hand, and how entries are grouped.
#include "partita/comm/ledger.hpp"

#include <doctest/doctest.h>

namespace test_ledger {

using namespace partita;

comm::collective of(operation kind, global_index count, std::span<const global_index> outputs = {},
                    int peer = 0) {
  comm::collective op;
  op.kind = kind;
  op.type = comm::element_type::f32;
  op.count = count;
  op.peer = peer;
  op.output_counts = outputs;
  return op;
}

TEST_CASE("ledger: what rank 1 of 3 receives") {
  const std::vector<global_index> counts{4, 5, 0};
  CHECK(received(of(operation::broadcast, 7), 1, 3) == traffic{7, 1});
  CHECK(received(of(operation::broadcast, 7, {}, 1), 1, 3) == traffic{});
  CHECK(received(of(operation::broadcast, 0), 1, 3) == traffic{});
  CHECK(received(of(operation::all_gather, 5, counts), 1, 3) == traffic{4, 1});
  CHECK(received(of(operation::all_to_all, 0, counts), 1, 3) == traffic{4, 1});
  CHECK(received(of(operation::reduce_scatter, 6), 1, 3) == traffic{12, 2});
  // Shares of 4, 3 and 3: twice its own, and those of the others.
  CHECK(received(of(operation::all_reduce, 10), 1, 3) == traffic{2 * 3 + 4 + 3, 4});
  CHECK(received(of(operation::all_reduce, 1), 1, 3) == traffic{1, 1});
  CHECK(received(of(operation::send, 9), 1, 3) == traffic{});
  CHECK(received(of(operation::receive, 9), 1, 3) == traffic{9, 1});
}

TEST_CASE("ledger: one entry for every phase, operation and axis") {
  ledger account;
  const comm::collective sum = of(operation::all_reduce, 10), block = of(operation::broadcast, 3);
  account.enter(sum, "row", {3, 1}, 0.5);
  account.enter(sum, "row", {4, 2}, 0.25);
  account.enter(sum, "col", {5, 1}, 0);
  {
    const comm::phase_scope forward(account, "forward");
    account.enter(block, "row", {3, 1}, 0);
  }
  account.enter(block, "row", {1, 1}, 0);
  CHECK(account.phase() == "setup");
  REQUIRE(account.entries().size() == 4);
  const comm::ledger_entry& first = account.entries().front();
  CHECK(first.received == traffic{7, 3});
  CHECK(first.bytes == 28);
  CHECK(first.seconds == 0.75);
  CHECK(account.total() == traffic{16, 6});
  CHECK(account.total([](const comm::ledger_entry& e) { return e.phase == "forward"; }) == traffic{3, 1});
  account.clear();
  CHECK(account.total() == traffic{});
}

TEST_CASE("ledger: events, of which it keeps as many as it was asked for") {
  ledger account;
  { const comm::span unkept(account, "nothing"); }
  CHECK(account.events().empty());
  account.keep_events(3);
  {
    const comm::phase_scope phase(account, "forward");
    const comm::span layer(account, "layer 1");
    account.keep({account.phase(), operation::all_reduce, "row", 1, 2, 3, 40});
  }
  account.clear();
  { const comm::span one_too_many(account, "backward"); }
  REQUIRE(account.events().size() == 3);
  const auto &sum = account.events()[0], &layer = account.events()[1], &phase = account.events()[2];
  CHECK(sum.name == "forward");
  CHECK(sum.kind == operation::all_reduce);
  CHECK(layer.name == "layer 1");
  CHECK(!layer.kind);
  CHECK(phase.name == "forward");
  CHECK(phase.begin <= layer.begin);
  CHECK(layer.end <= phase.end);
}

TEST_CASE("ledger: the time in the scopes of a phase") {
  ledger account;
  CHECK(account.seconds_in("forward") == 0);
  { const comm::phase_scope forward(account, "forward"); }
  const double once = account.seconds_in("forward");
  CHECK(once >= 0);
  {
    const comm::phase_scope forward(account, "forward");
    const comm::phase_scope inner(account, "inner");
    account.add_seconds("inner", 100);
  }
  CHECK(account.seconds_in("forward") >= once);
  CHECK(account.seconds_in("inner") >= 100);
  CHECK(account.seconds_in("setup") == 0);
  CHECK(account.entries().empty());
  account.clear();
  CHECK(account.seconds_in("forward") == 0);
  CHECK(account.seconds_in("inner") == 0);
}

}  // namespace test_ledger
