#include "host.hpp"

namespace partita {

template class trainer<float, host>;
template operator_maker<float, host> operators_of(const mesh<host>&, const std::string&);
template std::unique_ptr<model<float, host>> make_model(const mesh<host>&, const dataset&,
                                                        const training_options&,
                                                        const operator_maker<float, host>&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     const operator_maker<float, host>&, const epoch_observer&);
template training_result train_model<float>(const mesh<host>&, const dataset&, const training_options&,
                                            const std::string&, const epoch_observer&);
template over_ranks predict_words<float>(const mesh<host>&, const dataset&, const training_options&,
                                         const std::string&);

}  // namespace partita
