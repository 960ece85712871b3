#pragma once
/// Graph operators from graphs that are made on the device (device_graphs.hpp).

#include "device_graphs.hpp"
#include "partita/train/graph_data.hpp"

namespace bench {

/// Makes the operator of GCN, or of SAGE's mean, from a graph made on the device, whatever entries it is
/// given, under layouts that cut no columns of A. `nonzeros` becomes the graph's number of entries. Throws
/// error for other layouts.
partita::operator_maker<float, cuda_device> operators_on_device(const partita::mesh<cuda_device>& m,
                                                                partita::cut sparse, partita::cut dense,
                                                                const graph_counts& counts, bool rmat,
                                                                bool mean, std::int64_t& nonzeros);

}  // namespace bench
