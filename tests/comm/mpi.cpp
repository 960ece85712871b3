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
