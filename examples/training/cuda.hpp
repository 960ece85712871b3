#pragma once
/// Training on CUDA devices: compiled once, one precision a translation unit, for all programs and tests that
/// train.

#include "partita/memory/cuda.hpp"
#include "partita/train/trainer.hpp"

namespace partita {

extern template class trainer<float, cuda>;
extern template std::unique_ptr<model<float, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                               const training_options&,
                                                               const operator_maker<float, cuda>&);
extern template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                            const operator_maker<float, cuda>&, const epoch_observer&);

extern template class trainer<double, cuda>;
extern template std::unique_ptr<model<double, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                                const training_options&,
                                                                const operator_maker<double, cuda>&);
extern template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                            const operator_maker<double, cuda>&, const epoch_observer&);

}  // namespace partita
