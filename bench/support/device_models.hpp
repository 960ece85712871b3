// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Models over graphs generated on the device (device_graphs.hpp).

#include "device_graphs.hpp"
#include "partita/nn/model.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/options.hpp"

namespace bench {

/// The adjacency matrix of a graph generated on the device, normalised as in GCN or as SAGE's mean. Sets
/// `nonzeros` to its number of entries. Throws error for a policy that partitions A's columns.
partita::sparse<float, partita::dynamic_layout, cuda_device> matrix_on_device(
    const partita::mesh<cuda_device>& m, const partita::policy& p, const graph_counts& counts, bool rmat,
    bool mean, std::int64_t& nonzeros);

/// The GCN, GAT, or SAGE of either aggregation, named by `options`, over such a graph; widths as from
/// layer_widths, GAT's hidden ones per head.
partita::nn::model<float, cuda_device> model_on_device(const partita::mesh<cuda_device>& m,
                                                       const partita::policy& p, const graph_counts& counts,
                                                       bool rmat, const std::vector<global_index>& widths,
                                                       const partita::nn::training_options& options,
                                                       std::int64_t& nonzeros);

}  // namespace bench
