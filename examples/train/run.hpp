#pragma once
/// The parts of `train` that are translation units of their own.

#include <functional>

#include "command.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/memory/host.hpp"

/// A policy and the mesh it runs on.
struct arrangement {
  std::string policy;
  partita::mesh_shape mesh;
};

/// The policy and mesh that the command names for `ranks` ranks; no mesh when the policy is `auto`.
/// Throws usage_error when they do not fit.
std::optional<arrangement> arrangement_of(const command& c, int ranks);

/// The named policy, on its nearest mesh, whose busiest rank would receive the fewest words. Every rank must
/// call.
template <class T>
arrangement cheapest(const partita::communicator& world, const partita::queue<partita::host>& queue,
                     const partita::dataset& data, const command& c);

/// Trains in precision T. Every rank must call.
template <class T>
partita::training_result train(const partita::communicator& world, const partita::queue<partita::host>& queue,
                               const arrangement& how, const partita::dataset& data, const command& c,
                               const partita::epoch_observer& observe);

/// `body` on every rank of an MPI job, its exit code; a sentence and 1 when this program was built without
/// MPI.
int run_mpi(int argc, char** argv, const std::function<int(partita::communicator)>& body);

/// CBLAS where this program was built with it, otherwise the library's own products.
partita::gemm_backend dense_products();
