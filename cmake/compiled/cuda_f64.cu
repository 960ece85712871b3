// SPDX-License-Identifier: Apache-2.0
#include "partita/comm/cuda_memory.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

template void nn::model<double, cuda_device>::backward(const matrix&);
template class nn::trainer<double, cuda_device>;
template nn::model<double, cuda_device> nn::make_model<double>(const mesh<cuda_device>&, const io::dataset&,
                                                               const nn::training_options&, const policy&);
template nn::training_result nn::train_model(const mesh<cuda_device>&, const io::dataset&,
                                             const nn::training_options&, nn::model<double, cuda_device>,
                                             const nn::epoch_observer&);
template nn::training_result nn::train_model<double>(const mesh<cuda_device>&, const io::dataset&,
                                                     const nn::training_options&, const policy&,
                                                     const nn::epoch_observer&);
template nn::over_ranks nn::predict_words<double>(const mesh<cuda_device>&, const io::dataset&,
                                                  const nn::training_options&, const policy&);
template nn::policy_cost nn::predict_cost<double>(const mesh<cuda_device>&, const io::dataset&,
                                                  const nn::training_options&, const policy&);
template double nn::cross_entropy(const dense<double, vertex_rows, cuda_device>&,
                                  const nn::vertex_labels<cuda_device>&,
                                  dense<double, vertex_rows, cuda_device>&);
template double nn::logistic_loss(const dense<double, vertex_rows, cuda_device>&,
                                  const dense<double, vertex_rows, cuda_device>&, global_index,
                                  dense<double, vertex_rows, cuda_device>&);
template std::vector<double> collect(const dense<double, vertex_rows, cuda_device>&, std::source_location);

}  // namespace partita
