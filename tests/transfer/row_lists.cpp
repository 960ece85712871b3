// SPDX-License-Identifier: Apache-2.0
// Which rows ranks want of each other.
#include "partita/transfer/row_lists.hpp"

#include "partita/memory/host.hpp"
#include "support/matrices.hpp"

namespace test_row_lists {

using namespace test_support;

/// How many rows rank p wants of rank q in batch b, and the i-th of all that it wants of q.
global_index wanted_rows(int p, int q, int b) { return p == q ? 0 : (p + 2 * q + b) % 3; }
template <class Index>
Index wanted_row(int p, int q, global_index i) {
  return static_cast<Index>(100 * p + 10 * q + i);
}

template <class Index>
void check_lists(const communicator& world, int batches, Index first_row) {
  const int me = world.rank(), size = world.size();
  transfer::row_lists<Index> lists;
  std::vector<Index> wanted, expected;
  std::vector<global_index> sent;
  traffic moved{(size - 1) * batches, size - 1};
  for (int q = 0; q < size; ++q) {
    global_index to_me = 0, from_me = 0;
    for (int b = 0; b < batches; ++b) {
      lists.received.push_back(wanted_rows(me, q, b));
      for (global_index i = lists.received.back(); i > 0; --i)
        wanted.push_back(wanted_row<Index>(me, q, to_me++));
      sent.push_back(wanted_rows(q, me, b));
      for (global_index i = sent.back(); i > 0; --i)
        expected.push_back(static_cast<Index>(wanted_row<Index>(q, me, from_me++) + first_row));
    }
    moved += {from_me, from_me > 0};
  }
  const std::vector<global_index> received = lists.received;
  for (int again = 0; again < 2; ++again) {
    world.ledger().clear();
    lists.exchange(world, wanted, first_row);
    CHECK(lists.received == received);
    CHECK(lists.sent == sent);
    CHECK(lists.rows == expected);
    CHECK(world.ledger().total() == moved);
  }
}

TEST_CASE("row lists: every rank learns which of its rows the others want, in batches or not") {
  on_every_rank_count([](const communicator& world) {
    for (const int batches : {1, 2, 5}) {
      check_lists<local_index>(world, batches, 0);
      check_lists<local_index>(world, batches, 7);
      check_lists<global_index>(world, batches, -1000);
    }
  });
}

TEST_CASE("row lists: numbers of elements, and what arrives") {
  const std::vector<global_index> rows = {2, 0, 5};
  CHECK(transfer::elements_of(rows, 3) == std::vector<global_index>{6, 0, 15});
  CHECK(transfer::received_rows(rows) == traffic{7, 2});
  CHECK(transfer::received_rows(rows, 3) == traffic{21, 2});
  CHECK(transfer::received_rows(rows, 3, 2) == traffic{6, 1});
  CHECK(transfer::received_rows(rows, 0) == traffic{});
}

TEST_CASE("row lists: a list is copied to memory that is kept") {
  const device_queue<host> q;
  buffer<local_index, host> to;
  for (const std::size_t size : {3, 1, 0, 9}) {
    const std::vector<local_index> list(size, static_cast<local_index>(size));
    transfer::upload(q, list, to);
    CHECK(std::vector<local_index>(to.data(), to.data() + to.size()) == list);
  }
}

}  // namespace test_row_lists
