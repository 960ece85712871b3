// SPDX-License-Identifier: Apache-2.0
#include "partita/comm/cuda_memory.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

template void nn::model<float, cuda_device>::backward(const matrix&);
template class nn::trainer<float, cuda_device>;
template nn::model<float, cuda_device> nn::make_model<float>(const mesh<cuda_device>&, const io::dataset&,
                                                             const nn::training_options&, const policy&);
template nn::training_result nn::train_model(const mesh<cuda_device>&, const io::dataset&,
                                             const nn::training_options&, nn::model<float, cuda_device>,
                                             const nn::epoch_observer&);
template nn::training_result nn::train_model<float>(const mesh<cuda_device>&, const io::dataset&,
                                                    const nn::training_options&, const policy&,
                                                    const nn::epoch_observer&);
template nn::over_ranks nn::predict_words<float>(const mesh<cuda_device>&, const io::dataset&,
                                                 const nn::training_options&, const policy&);
template nn::policy_cost nn::predict_cost<float>(const mesh<cuda_device>&, const io::dataset&,
                                                 const nn::training_options&, const policy&);
template double nn::cross_entropy(const dense<float, vertex_rows, cuda_device>&,
                                  const nn::vertex_labels<cuda_device>&,
                                  dense<float, vertex_rows, cuda_device>&);
template double nn::logistic_loss(const dense<float, vertex_rows, cuda_device>&,
                                  const dense<float, vertex_rows, cuda_device>&, global_index,
                                  dense<float, vertex_rows, cuda_device>&);
template std::vector<float> collect(const dense<float, vertex_rows, cuda_device>&, std::source_location);

template nn::model<float, cuda_device> nn::convolutions<nn::gcn_conv>(
    const sparse<float, dynamic_layout, cuda_device>&, const std::vector<global_index>&,
    const nn::model_options&);
template nn::model<float, cuda_device> nn::convolutions<nn::sage_conv>(
    const sparse<float, dynamic_layout, cuda_device>&, const std::vector<global_index>&,
    const nn::model_options&);

}  // namespace partita
