#pragma once
/// The parts of `train` that are translation units of their own.

#include "arrangement.hpp"
#include "command.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/memory/host.hpp"

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

/// CBLAS where this program was built with it, otherwise the library's own products.
partita::gemm_backend dense_products();
