// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled_cuda: training in float and double on CUDA
/// devices. Sources that include this header and link that target do not need nvcc.

#include "partita/memory/cuda.hpp"
#include "partita/train/models.hpp"

namespace partita {

extern template void nn::model<float, cuda_device>::backward(const matrix&);
extern template class nn::trainer<float, cuda_device>;
extern template nn::model<float, cuda_device> nn::make_model<float>(const mesh<cuda_device>&,
                                                                    const io::dataset&,
                                                                    const nn::training_options&,
                                                                    const policy&);
extern template nn::training_result nn::train_model(const mesh<cuda_device>&, const io::dataset&,
                                                    const nn::training_options&,
                                                    nn::model<float, cuda_device>, const nn::epoch_observer&);
extern template nn::training_result nn::train_model<float>(const mesh<cuda_device>&, const io::dataset&,
                                                           const nn::training_options&, const policy&,
                                                           const nn::epoch_observer&);
extern template nn::over_ranks nn::predict_words<float>(const mesh<cuda_device>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);
extern template nn::policy_cost nn::predict_cost<float>(const mesh<cuda_device>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);
extern template double nn::cross_entropy(const dense<float, vertex_rows, cuda_device>&,
                                         const nn::vertex_labels<cuda_device>&,
                                         dense<float, vertex_rows, cuda_device>&);
extern template double nn::logistic_loss(const dense<float, vertex_rows, cuda_device>&,
                                         const dense<float, vertex_rows, cuda_device>&, global_index,
                                         dense<float, vertex_rows, cuda_device>&);
extern template std::vector<float> collect(const dense<float, vertex_rows, cuda_device>&,
                                           std::source_location);

extern template nn::model<float, cuda_device> nn::convolutions<nn::gcn_conv>(
    const sparse<float, dynamic_layout, cuda_device>&, const std::vector<global_index>&,
    const nn::model_options&);
extern template nn::model<float, cuda_device> nn::convolutions<nn::sage_conv>(
    const sparse<float, dynamic_layout, cuda_device>&, const std::vector<global_index>&,
    const nn::model_options&);

extern template void nn::model<double, cuda_device>::backward(const matrix&);
extern template class nn::trainer<double, cuda_device>;
extern template nn::model<double, cuda_device> nn::make_model<double>(const mesh<cuda_device>&,
                                                                      const io::dataset&,
                                                                      const nn::training_options&,
                                                                      const policy&);
extern template nn::training_result nn::train_model(const mesh<cuda_device>&, const io::dataset&,
                                                    const nn::training_options&,
                                                    nn::model<double, cuda_device>,
                                                    const nn::epoch_observer&);
extern template nn::training_result nn::train_model<double>(const mesh<cuda_device>&, const io::dataset&,
                                                            const nn::training_options&, const policy&,
                                                            const nn::epoch_observer&);
extern template nn::over_ranks nn::predict_words<double>(const mesh<cuda_device>&, const io::dataset&,
                                                         const nn::training_options&, const policy&);
extern template nn::policy_cost nn::predict_cost<double>(const mesh<cuda_device>&, const io::dataset&,
                                                         const nn::training_options&, const policy&);
extern template double nn::cross_entropy(const dense<double, vertex_rows, cuda_device>&,
                                         const nn::vertex_labels<cuda_device>&,
                                         dense<double, vertex_rows, cuda_device>&);
extern template double nn::logistic_loss(const dense<double, vertex_rows, cuda_device>&,
                                         const dense<double, vertex_rows, cuda_device>&, global_index,
                                         dense<double, vertex_rows, cuda_device>&);
extern template std::vector<double> collect(const dense<double, vertex_rows, cuda_device>&,
                                            std::source_location);

}  // namespace partita
