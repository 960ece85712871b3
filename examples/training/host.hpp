#pragma once
/// Training on the host: compiled once, one precision a translation unit, for all programs and tests that
/// train.

#include "partita/memory/host.hpp"
#include "partita/train/models.hpp"

namespace partita {

extern template class trainer<float, host>;
extern template nn::model<float, host> make_model<float>(const mesh<host>&, const dataset&,
                                                         const training_options&, const policy&);
extern template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                            nn::model<float, host>, const epoch_observer&);
extern template training_result train_model<float>(const mesh<host>&, const dataset&, const training_options&,
                                                   const policy&, const epoch_observer&);
extern template over_ranks predict_words<float>(const mesh<host>&, const dataset&, const training_options&,
                                                const policy&);

extern template class trainer<double, host>;
extern template nn::model<double, host> make_model<double>(const mesh<host>&, const dataset&,
                                                           const training_options&, const policy&);
extern template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                            nn::model<double, host>, const epoch_observer&);
extern template training_result train_model<double>(const mesh<host>&, const dataset&,
                                                    const training_options&, const policy&,
                                                    const epoch_observer&);
extern template over_ranks predict_words<double>(const mesh<host>&, const dataset&, const training_options&,
                                                 const policy&);

}  // namespace partita
