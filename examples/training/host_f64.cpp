#include "host.hpp"

namespace partita {

template class trainer<double, host>;
template operator_maker<double, host> operators_of(const mesh<host>&, const std::string&);
template std::unique_ptr<model<double, host>> make_model(const mesh<host>&, const dataset&,
                                                         const training_options&,
                                                         const operator_maker<double, host>&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     const operator_maker<double, host>&, const epoch_observer&);
template training_result train_model<double>(const mesh<host>&, const dataset&, const training_options&,
                                             const std::string&, const epoch_observer&);
template over_ranks predict_words<double>(const mesh<host>&, const dataset&, const training_options&,
                                          const std::string&);

}  // namespace partita
