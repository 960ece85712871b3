// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over MPI and memory of a device, which is staged.

#include "laws/communicator_laws.hpp"
#include "laws/on_the_device.hpp"
#include "partita/comm/mpi.hpp"
#include "support/mpi_byte_counter.hpp"

namespace laws = test_support::laws;
using partita::communicator;

TEST_CASE("mpi, checked") {
  laws::on_the_device(laws::on_a_device(partita::mpi::world(MPI_COMM_WORLD, {.checked = true})));
}

TEST_CASE("mpi, unchecked") {
  laws::on_the_device(laws::on_a_device(partita::mpi::world(MPI_COMM_WORLD, {.checked = false})));
}

TEST_CASE("what travels is what travels for memory of the host") {
  const laws::device_fixture fixture =
      laws::on_a_device(partita::mpi::world(MPI_COMM_WORLD, {.checked = false}));
  const communicator& c = fixture.c;
  for (int pattern = 0; pattern < laws::patterns; ++pattern) {
    c.ledger().clear();
    const std::int64_t before = test_support::mpi_bytes_received();
    laws::all_reduce<float>(fixture, pattern, true, partita::reduction::sum);
    partita::global_index entered = 0;
    for (const partita::comm::ledger_entry& e : c.ledger().entries()) entered += e.bytes;
    CHECK(test_support::mpi_bytes_received() - before == entered);
  }
}
