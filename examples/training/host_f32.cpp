#include "host.hpp"

namespace partita {

template class trainer<float, host>;
template std::unique_ptr<model<float, host>> make_model(const mesh<host>&, const dataset&,
                                                        const training_options&,
                                                        const operator_maker<float, host>&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     const operator_maker<float, host>&, const epoch_observer&);

}  // namespace partita
