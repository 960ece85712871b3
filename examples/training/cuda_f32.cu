#include "cuda.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

template class trainer<float, cuda_device>;
template nn::model<float, cuda_device> make_model<float>(const mesh<cuda_device>&, const dataset&,
                                                         const training_options&, const policy&);
template training_result train_model(const mesh<cuda_device>&, const dataset&, const training_options&,
                                     nn::model<float, cuda_device>, const epoch_observer&);
template training_result train_model<float>(const mesh<cuda_device>&, const dataset&, const training_options&,
                                            const policy&, const epoch_observer&);
template over_ranks predict_words<float>(const mesh<cuda_device>&, const dataset&, const training_options&,
                                         const policy&);
template double cross_entropy(const dense<float, vertex_rows, cuda_device>&,
                              const vertex_labels<cuda_device>&, dense<float, vertex_rows, cuda_device>&);
template double logistic_loss(const dense<float, vertex_rows, cuda_device>&,
                              const dense<float, vertex_rows, cuda_device>&, global_index,
                              dense<float, vertex_rows, cuda_device>&);
template std::vector<float> collect(const dense<float, vertex_rows, cuda_device>&);

}  // namespace partita
