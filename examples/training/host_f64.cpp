#include "host.hpp"

namespace partita {

template class trainer<double, host>;
template std::unique_ptr<model<double, host>> make_model(const mesh<host>&, const dataset&,
                                                         const training_options&,
                                                         const operator_maker<double, host>&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     const operator_maker<double, host>&, const epoch_observer&);

}  // namespace partita
