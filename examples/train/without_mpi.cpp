// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "arrangement.hpp"

int run_mpi(int, char**, std::optional<double>, const std::function<int(partita::communicator)>&) {
  std::fputs("this program was built without MPI; install libopenmpi-dev and build again\n", stderr);
  return 1;
}
