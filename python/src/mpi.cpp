// SPDX-License-Identifier: Apache-2.0
/// Ranks as processes of an MPI job, for a communicator of mpi4py: an extension of its own, so that the other
/// one needs no MPI.

#include "partita/comm/mpi.hpp"

#include <cstdint>
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_mpi, m) {
  using namespace nb::literals;
  nb::module_::import_("partita._core");
  m.def(
      "world",
      [](std::uintptr_t address) { return partita::mpi::world(*reinterpret_cast<const MPI_Comm*>(address)); },
      "address"_a,
      "The ranks of the MPI_Comm at this address, as mpi4py.MPI._addressof(comm) says. Every process of it\n"
      "must call. What travels: a duplicate of the communicator. Throws CommunicationError.");
}
