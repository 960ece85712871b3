#include "cuda.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

template class trainer<double, cuda>;
template operator_maker<double, cuda> operators_of(const mesh<cuda>&, const std::string&);
template std::unique_ptr<model<double, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                         const training_options&,
                                                         const operator_maker<double, cuda>&);
template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                     const operator_maker<double, cuda>&, const epoch_observer&);
template training_result train_model<double>(const mesh<cuda>&, const dataset&, const training_options&,
                                             const std::string&, const epoch_observer&);
template over_ranks predict_words<double>(const mesh<cuda>&, const dataset&, const training_options&,
                                          const std::string&);
template double cross_entropy(const dense<double, vertex_rows, cuda>&, const vertex_labels<cuda>&,
                              dense<double, vertex_rows, cuda>&);
template double logistic_loss(const dense<double, vertex_rows, cuda>&,
                              const dense<double, vertex_rows, cuda>&, global_index,
                              dense<double, vertex_rows, cuda>&);
template std::vector<double> collect(const dense<double, vertex_rows, cuda>&);

}  // namespace partita
