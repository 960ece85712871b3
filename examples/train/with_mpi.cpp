#include "arrangement.hpp"
#include "partita/comm/mpi.hpp"

int run_mpi(int argc, char** argv, const std::function<int(partita::communicator)>& body) {
  return partita::mpi::run(argc, argv, body);
}
