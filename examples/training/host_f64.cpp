#include "host.hpp"

namespace partita {

template class trainer<double, host>;
template nn::model<double, host> make_model<double>(const mesh<host>&, const dataset&,
                                                    const training_options&, const policy&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     nn::model<double, host>, const epoch_observer&);
template training_result train_model<double>(const mesh<host>&, const dataset&, const training_options&,
                                             const policy&, const epoch_observer&);
template over_ranks predict_words<double>(const mesh<host>&, const dataset&, const training_options&,
                                          const policy&);

}  // namespace partita
