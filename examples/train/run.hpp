// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of `train` that are translation units of their own.

#include "arrangement.hpp"
#include "command.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/local/host/gemm_backend.hpp"

/// What was trained, and how it went.
struct outcome {
  arrangement how;
  partita::nn::training_result result;
  partita::global_index setup_peak_bytes = 0;  ///< of the busiest rank, the trials of `auto` included
};

/// Trains under `asked`, or under the policy that moves least; every rank must call.
outcome train_on_cpu(const partita::communicator& world, const std::optional<arrangement>& asked,
                     const partita::io::dataset& data, const command& c,
                     const partita::nn::epoch_observer& observe);

/// The same on CUDA devices: the first one for all ranks that are threads, one a rank otherwise. Throws error
/// when this program was built without CUDA.
outcome train_on_cuda(const partita::communicator& world, const std::optional<arrangement>& asked,
                      const partita::io::dataset& data, const command& c,
                      const partita::nn::epoch_observer& observe);

/// CBLAS where this program was built with it, otherwise the library's own products.
partita::on_host::gemm_backend dense_products();
