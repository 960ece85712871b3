// SPDX-License-Identifier: Apache-2.0
#include "device_models.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/conv/sage.hpp"

partita::nn::model<float, bench::cuda_device> bench::model_on_device(
    const partita::mesh<cuda_device>& m, const partita::policy& p, const graph_counts& counts, bool rmat,
    const std::vector<global_index>& widths, const partita::nn::training_options& options,
    std::int64_t& nonzeros) {
  const bool mean = options.model == "sage";
  const auto a = matrix_on_device(m, p, counts, rmat, mean, nonzeros);
  const partita::nn::model_options how = partita::nn::options_of_model(options);
  if (mean) return partita::nn::convolutions<partita::nn::sage_conv>(a, widths, how);
  return partita::nn::convolutions<partita::nn::gcn_conv>(a, widths, how);
}
