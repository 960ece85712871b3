#include "cuda.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

template class trainer<float, cuda>;
template operator_maker<float, cuda> operators_of(const mesh<cuda>&, const std::string&);
template std::unique_ptr<model<float, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                        const training_options&,
                                                        const operator_maker<float, cuda>&);
template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                     const operator_maker<float, cuda>&, const epoch_observer&);
template training_result train_model<float>(const mesh<cuda>&, const dataset&, const training_options&,
                                            const std::string&, const epoch_observer&);
template over_ranks predict_words<float>(const mesh<cuda>&, const dataset&, const training_options&,
                                         const std::string&);
template double cross_entropy(const dense<float, vertex_rows, cuda>&, const vertex_labels<cuda>&,
                              dense<float, vertex_rows, cuda>&);
template double logistic_loss(const dense<float, vertex_rows, cuda>&, const dense<float, vertex_rows, cuda>&,
                              global_index, dense<float, vertex_rows, cuda>&);
template std::vector<float> collect(const dense<float, vertex_rows, cuda>&);

}  // namespace partita
