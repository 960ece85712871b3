#pragma once
/// Training on CUDA devices: compiled once, one precision a translation unit, for all programs and tests that
/// train.

#include "partita/memory/cuda.hpp"
#include "partita/train/trainer.hpp"

namespace partita {

extern template class trainer<float, cuda>;
extern template operator_maker<float, cuda> operators_of(const mesh<cuda>&, const std::string&);
extern template std::unique_ptr<model<float, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                               const training_options&,
                                                               const operator_maker<float, cuda>&);
extern template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                            const operator_maker<float, cuda>&, const epoch_observer&);
extern template training_result train_model<float>(const mesh<cuda>&, const dataset&, const training_options&,
                                                   const std::string&, const epoch_observer&);
extern template over_ranks predict_words<float>(const mesh<cuda>&, const dataset&, const training_options&,
                                                const std::string&);
extern template double cross_entropy(const dense<float, vertex_rows, cuda>&, const vertex_labels<cuda>&,
                                     dense<float, vertex_rows, cuda>&);
extern template double logistic_loss(const dense<float, vertex_rows, cuda>&,
                                     const dense<float, vertex_rows, cuda>&, global_index,
                                     dense<float, vertex_rows, cuda>&);
extern template std::vector<float> collect(const dense<float, vertex_rows, cuda>&);

extern template class trainer<double, cuda>;
extern template operator_maker<double, cuda> operators_of(const mesh<cuda>&, const std::string&);
extern template std::unique_ptr<model<double, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                                const training_options&,
                                                                const operator_maker<double, cuda>&);
extern template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                            const operator_maker<double, cuda>&, const epoch_observer&);
extern template training_result train_model<double>(const mesh<cuda>&, const dataset&,
                                                    const training_options&, const std::string&,
                                                    const epoch_observer&);
extern template over_ranks predict_words<double>(const mesh<cuda>&, const dataset&, const training_options&,
                                                 const std::string&);
extern template double cross_entropy(const dense<double, vertex_rows, cuda>&, const vertex_labels<cuda>&,
                                     dense<double, vertex_rows, cuda>&);
extern template double logistic_loss(const dense<double, vertex_rows, cuda>&,
                                     const dense<double, vertex_rows, cuda>&, global_index,
                                     dense<double, vertex_rows, cuda>&);
extern template std::vector<double> collect(const dense<double, vertex_rows, cuda>&);

}  // namespace partita
