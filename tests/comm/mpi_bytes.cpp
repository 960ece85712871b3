// SPDX-License-Identifier: Apache-2.0
// The bytes of the ledger are the bytes that MPI was asked to bring from other ranks.

#include "laws/communicator_laws.hpp"
#include "partita/comm/mpi.hpp"
#include "support/mpi_byte_counter.hpp"
#include "support/mpi_world.hpp"

namespace laws = test_support::laws;
using partita::communicator, partita::global_index;

namespace {

global_index ledger_bytes(const communicator& c) {
  global_index bytes = 0;
  for (const partita::comm::ledger_entry& e : c.ledger().entries()) bytes += e.bytes;
  return bytes;
}

/// Runs `act` and compares the two accounts.
void check_bytes(const communicator& c, auto act) {
  c.ledger().clear();
  const std::int64_t before = test_support::mpi_bytes_received();
  act();
  CHECK(test_support::mpi_bytes_received() - before == ledger_bytes(c));
}

/// The laws clear the ledger before each operation, so the two accounts are compared for each one alone.
template <class T>
void check_operations(const communicator& c) {
  using partita::reduction;
  const laws::host_fixture fixture{c};
  for (int pattern = 0; pattern < laws::patterns; ++pattern) {
    check_bytes(c, [&] { laws::broadcast<T>(fixture, pattern, true); });
    check_bytes(c, [&] { laws::all_gather<T>(fixture, pattern, true); });
    check_bytes(c, [&] { laws::reduce_scatter<T>(fixture, pattern, true, reduction::sum); });
    check_bytes(c, [&] { laws::all_reduce<T>(fixture, pattern, true, reduction::max); });
    check_bytes(c, [&] { laws::all_to_all<T>(fixture, pattern, true); });
    check_bytes(c, [&] { laws::ring<T>(fixture, pattern); });
  }
}

void check_world(const communicator& world) {
  check_operations<std::uint8_t>(world);
  check_operations<std::int64_t>(world);
  check_operations<float>(world);
  const laws::host_fixture fixture{world};
  check_bytes(world, [&] { laws::several_in_flight(fixture); });
  check_bytes(world, [&] { laws::many_broadcasts(fixture); });
  check_bytes(world, [&] { laws::message_order(fixture); });
  check_bytes(world, [&] { world.split(world.rank() % 2, 0, "half"); });
  const communicator part = world.split(world.rank() == 0 ? 0 : 1, -world.rank(), "part");
  check_operations<double>(part);
  check_bytes(world, [&] {
    laws::several_in_flight(fixture.with(part));
    laws::several_in_flight(fixture);
  });
}

}  // namespace

TEST_CASE("the wrappers see what travels") {
  const communicator world = partita::mpi::world(MPI_COMM_WORLD, {.checked = false});
  const std::int64_t before = test_support::mpi_bytes_received();
  std::vector<double> data(12);
  world.broadcast(std::span(data), 0);
  CHECK(test_support::mpi_bytes_received() - before == (world.rank() == 0 ? 0 : 96));
}

TEST_CASE("broadcasts in pieces") {
  const communicator& world = test_support::mpi_world();
  std::vector<double> data(100'000);
  for (int root = 0; root < world.size(); ++root) check_bytes(world, [&] { world.broadcast(data, root); });
}

TEST_CASE("unchecked communicators") { check_world(partita::mpi::world(MPI_COMM_WORLD, {.checked = false})); }

TEST_CASE("checked communicators") { check_world(partita::mpi::world(MPI_COMM_WORLD, {.checked = true})); }
