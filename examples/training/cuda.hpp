#pragma once
/// Training on CUDA devices: compiled once, one precision a translation unit, for all programs and tests that
/// train.

#include "partita/memory/cuda.hpp"
#include "partita/train/models.hpp"

namespace partita {

extern template class trainer<float, cuda_device>;
extern template nn::model<float, cuda_device> make_model<float>(const mesh<cuda_device>&, const dataset&,
                                                                const training_options&, const policy&);
extern template training_result train_model(const mesh<cuda_device>&, const dataset&, const training_options&,
                                            nn::model<float, cuda_device>, const epoch_observer&);
extern template training_result train_model<float>(const mesh<cuda_device>&, const dataset&,
                                                   const training_options&, const policy&,
                                                   const epoch_observer&);
extern template over_ranks predict_words<float>(const mesh<cuda_device>&, const dataset&,
                                                const training_options&, const policy&);
extern template double cross_entropy(const dense<float, vertex_rows, cuda_device>&,
                                     const vertex_labels<cuda_device>&,
                                     dense<float, vertex_rows, cuda_device>&);
extern template double logistic_loss(const dense<float, vertex_rows, cuda_device>&,
                                     const dense<float, vertex_rows, cuda_device>&, global_index,
                                     dense<float, vertex_rows, cuda_device>&);
extern template std::vector<float> collect(const dense<float, vertex_rows, cuda_device>&);

extern template class trainer<double, cuda_device>;
extern template nn::model<double, cuda_device> make_model<double>(const mesh<cuda_device>&, const dataset&,
                                                                  const training_options&, const policy&);
extern template training_result train_model(const mesh<cuda_device>&, const dataset&, const training_options&,
                                            nn::model<double, cuda_device>, const epoch_observer&);
extern template training_result train_model<double>(const mesh<cuda_device>&, const dataset&,
                                                    const training_options&, const policy&,
                                                    const epoch_observer&);
extern template over_ranks predict_words<double>(const mesh<cuda_device>&, const dataset&,
                                                 const training_options&, const policy&);
extern template double cross_entropy(const dense<double, vertex_rows, cuda_device>&,
                                     const vertex_labels<cuda_device>&,
                                     dense<double, vertex_rows, cuda_device>&);
extern template double logistic_loss(const dense<double, vertex_rows, cuda_device>&,
                                     const dense<double, vertex_rows, cuda_device>&, global_index,
                                     dense<double, vertex_rows, cuda_device>&);
extern template std::vector<double> collect(const dense<double, vertex_rows, cuda_device>&);

}  // namespace partita
