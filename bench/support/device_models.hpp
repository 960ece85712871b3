#pragma once
/// Models over graphs that are made on the device (device_graphs.hpp).

#include "device_graphs.hpp"
#include "partita/train/models.hpp"

namespace bench {

/// The GCN, or the SAGE with mean, that `options` name, over a graph made on the device. `nonzeros` becomes
/// its number of entries. Throws error for a policy that cuts columns of A.
std::unique_ptr<partita::model<float, cuda_device>> model_on_device(
    const partita::mesh<cuda_device>& m, const partita::policy& p, const graph_counts& counts, bool rmat,
    const partita::dataset& data, const partita::training_options& options, std::int64_t& nonzeros);

}  // namespace bench
