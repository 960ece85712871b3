// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Models over graphs that are made on the device (device_graphs.hpp).

#include "device_graphs.hpp"
#include "partita/nn/model.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/options.hpp"

namespace bench {

/// The adjacency matrix of a graph made on the device, normalised as GCN has it or SAGE's mean. `nonzeros`
/// becomes its number of entries. Throws error for a policy that cuts columns of A.
partita::sparse<float, partita::dynamic_layout, cuda_device> matrix_on_device(
    const partita::mesh<cuda_device>& m, const partita::policy& p, const graph_counts& counts, bool rmat,
    bool mean, std::int64_t& nonzeros);

/// The GCN, or the SAGE with mean, that `options` name, over such a graph; widths as layer_widths gives them.
partita::nn::model<float, cuda_device> model_on_device(const partita::mesh<cuda_device>& m,
                                                       const partita::policy& p, const graph_counts& counts,
                                                       bool rmat, const std::vector<global_index>& widths,
                                                       const partita::nn::training_options& options,
                                                       std::int64_t& nonzeros);

}  // namespace bench
