// SPDX-License-Identifier: Apache-2.0
#pragma once
// The communicator that tests under mpirun get from their main.
#include "partita/comm/communicator.hpp"

namespace test_support {

/// Set by main_mpi.cpp before any test runs.
inline const partita::communicator*& mpi_world_slot() {
  static const partita::communicator* world = nullptr;
  return world;
}
/// All ranks of the MPI job.
inline const partita::communicator& mpi_world() { return *mpi_world_slot(); }

}  // namespace test_support
