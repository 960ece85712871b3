// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training on the host: compiled once, one precision a translation unit, for all programs and tests that
/// train.

#include "partita/memory/host.hpp"
#include "partita/train/models.hpp"

namespace partita {

extern template class nn::trainer<float, host>;
extern template nn::model<float, host> nn::make_model<float>(const mesh<host>&, const io::dataset&,
                                                             const nn::training_options&, const policy&);
extern template nn::training_result nn::train_model(const mesh<host>&, const io::dataset&,
                                                    const nn::training_options&, nn::model<float, host>,
                                                    const nn::epoch_observer&);
extern template nn::training_result nn::train_model<float>(const mesh<host>&, const io::dataset&,
                                                           const nn::training_options&, const policy&,
                                                           const nn::epoch_observer&);
extern template nn::over_ranks nn::predict_words<float>(const mesh<host>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);
extern template nn::policy_cost nn::predict_cost<float>(const mesh<host>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);

extern template class nn::trainer<double, host>;
extern template nn::model<double, host> nn::make_model<double>(const mesh<host>&, const io::dataset&,
                                                               const nn::training_options&, const policy&);
extern template nn::training_result nn::train_model(const mesh<host>&, const io::dataset&,
                                                    const nn::training_options&, nn::model<double, host>,
                                                    const nn::epoch_observer&);
extern template nn::training_result nn::train_model<double>(const mesh<host>&, const io::dataset&,
                                                            const nn::training_options&, const policy&,
                                                            const nn::epoch_observer&);
extern template nn::over_ranks nn::predict_words<double>(const mesh<host>&, const io::dataset&,
                                                         const nn::training_options&, const policy&);
extern template nn::policy_cost nn::predict_cost<double>(const mesh<host>&, const io::dataset&,
                                                         const nn::training_options&, const policy&);

}  // namespace partita
