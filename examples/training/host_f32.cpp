#include "host.hpp"

namespace partita {

template class trainer<float, host>;
template nn::model<float, host> make_model<float>(const mesh<host>&, const dataset&, const training_options&,
                                                  const policy&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     nn::model<float, host>, const epoch_observer&);
template training_result train_model<float>(const mesh<host>&, const dataset&, const training_options&,
                                            const policy&, const epoch_observer&);
template over_ranks predict_words<float>(const mesh<host>&, const dataset&, const training_options&,
                                         const policy&);

}  // namespace partita
