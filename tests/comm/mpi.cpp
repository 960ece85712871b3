// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over MPI, checked or not.
#include "partita/comm/mpi.hpp"

#include <doctest/doctest.h>

#include "laws/on_the_host.hpp"
#include "support/mpi_world.hpp"

namespace laws = test_support::laws;

TEST_CASE("mpi") { laws::on_the_host(test_support::mpi_world()); }

TEST_CASE("mpi, checked") { laws::on_the_host(partita::mpi::world(MPI_COMM_WORLD, {.checked = true})); }

TEST_CASE("mpi, unchecked") { laws::on_the_host(partita::mpi::world(MPI_COMM_WORLD, {.checked = false})); }

TEST_CASE("ranks bound to one core outnumber it") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(partita::mpi::detail::outnumber_cores(MPI_COMM_WORLD) == (test_support::mpi_world().size() > 1));
  CHECK(!partita::mpi::detail::outnumber_cores(MPI_COMM_SELF));
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("a wait that yields ends when the message is there") {
  const int rank = test_support::mpi_world().rank(), ranks = test_support::mpi_world().size();
  for (const bool yields : {true, false}) {
    int sent = rank, received = -1;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(&received, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[1]);
    CHECK(partita::mpi::detail::wait(&requests[0], &status, yields) == MPI_SUCCESS);
    CHECK(partita::mpi::detail::wait(&requests[1], MPI_STATUS_IGNORE, yields) == MPI_SUCCESS);
    CHECK(received == (rank + ranks - 1) % ranks);
    CHECK(status.MPI_SOURCE == received);
  }
}
