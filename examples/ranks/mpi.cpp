// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "arrangement.hpp"
#include "ending.hpp"
#ifdef PARTITA_WITH_MPI
#include "partita/comm/mpi.hpp"

int run_mpi(int argc, char** argv, std::optional<double> timeout, bool native,
            const std::function<int(partita::communicator)>& body) {
  partita::mpi::options o;
  o.device_pointers = std::getenv("PARTITA_MPI_DEVICE_POINTERS") != nullptr;
  if (native) o.collectives = partita::mpi::collectives::native;
  o.time_limit = time_limit(timeout).value_or(o.time_limit);
  const auto in_sentences = [&](const partita::communicator& world) {
    try {
      return body(world);
    } catch (const partita::error&) {
      throw;
    } catch (const std::exception& e) {
      throw partita::error(sentence_of(e));
    }
  };
  return partita::mpi::run(argc, argv, in_sentences, o);
}
#else

int run_mpi(int, char**, std::optional<double>, bool, const std::function<int(partita::communicator)>&) {
  std::fputs("this program was built without MPI; install libopenmpi-dev and build again\n", stderr);
  return 1;
}
#endif
