#pragma once
/// Training on the host: compiled once, one precision a translation unit, for all programs and tests that
/// train.

#include "partita/memory/host.hpp"
#include "partita/train/trainer.hpp"

namespace partita {

extern template class trainer<float, host>;
extern template operator_maker<float, host> operators_of(const mesh<host>&, const std::string&);
extern template std::unique_ptr<model<float, host>> make_model(const mesh<host>&, const dataset&,
                                                               const training_options&,
                                                               const operator_maker<float, host>&);
extern template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                            const operator_maker<float, host>&, const epoch_observer&);
extern template training_result train_model<float>(const mesh<host>&, const dataset&, const training_options&,
                                                   const std::string&, const epoch_observer&);
extern template over_ranks predict_words<float>(const mesh<host>&, const dataset&, const training_options&,
                                                const std::string&);

extern template class trainer<double, host>;
extern template operator_maker<double, host> operators_of(const mesh<host>&, const std::string&);
extern template std::unique_ptr<model<double, host>> make_model(const mesh<host>&, const dataset&,
                                                                const training_options&,
                                                                const operator_maker<double, host>&);
extern template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                            const operator_maker<double, host>&, const epoch_observer&);
extern template training_result train_model<double>(const mesh<host>&, const dataset&,
                                                    const training_options&, const std::string&,
                                                    const epoch_observer&);
extern template over_ranks predict_words<double>(const mesh<host>&, const dataset&, const training_options&,
                                                 const std::string&);

}  // namespace partita
