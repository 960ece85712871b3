// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

namespace partita {

template class nn::trainer<double, host>;
template nn::model<double, host> nn::make_model<double>(const mesh<host>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);
template nn::training_result nn::train_model(const mesh<host>&, const io::dataset&,
                                             const nn::training_options&, nn::model<double, host>,
                                             const nn::epoch_observer&);
template nn::training_result nn::train_model<double>(const mesh<host>&, const io::dataset&,
                                                     const nn::training_options&, const policy&,
                                                     const nn::epoch_observer&);
template nn::over_ranks nn::predict_words<double>(const mesh<host>&, const io::dataset&,
                                                  const nn::training_options&, const policy&);
template nn::policy_cost nn::predict_cost<double>(const mesh<host>&, const io::dataset&,
                                                  const nn::training_options&, const policy&);

}  // namespace partita
