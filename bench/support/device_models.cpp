// SPDX-License-Identifier: Apache-2.0
#include "device_models.hpp"

#include "partita/compiled/cuda.hpp"
#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/conv/sage.hpp"
#include "partita/nn/conv/sage_max.hpp"
#include "partita/nn/models.hpp"

partita::nn::model<float, bench::cuda_device> bench::model_on_device(
    const partita::mesh<cuda_device>& m, const partita::policy& p, const graph_counts& counts, bool rmat,
    const std::vector<global_index>& widths, const partita::nn::training_options& options,
    std::int64_t& nonzeros) {
  const bool mean = options.model == "sage";
  const auto a = matrix_on_device(m, p, counts, rmat, mean, nonzeros);
  const partita::nn::model_options how = partita::nn::options_of_model(options);
  if (mean && options.aggregation == partita::nn::aggregation::max)
    return partita::nn::convolutions<partita::nn::sage_max_conv>(a, widths, how);
  if (mean) return partita::nn::convolutions<partita::nn::sage_conv>(a, widths, how);
  if (options.model == "gat")
    return partita::nn::gat<float, cuda_device>(a, widths, options.heads, options.last_heads,
                                                partita::nn::builder<float, cuda_device>(a, how));
  return partita::nn::convolutions<partita::nn::gcn_conv>(a, widths, how);
}
