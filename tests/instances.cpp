// See support/instances.hpp.
#include "partita/memory/host.hpp"
#include "partita/train/trainer.hpp"

namespace partita {

template class trainer<float, host>;
template class trainer<double, host>;
template std::unique_ptr<model<float, host>> make_model(const mesh<host>&, const dataset&,
                                                        const training_options&,
                                                        const operator_maker<float, host>&);
template std::unique_ptr<model<double, host>> make_model(const mesh<host>&, const dataset&,
                                                         const training_options&,
                                                         const operator_maker<double, host>&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     const operator_maker<float, host>&, const epoch_observer&);
template training_result train_model(const mesh<host>&, const dataset&, const training_options&,
                                     const operator_maker<double, host>&, const epoch_observer&);

}  // namespace partita
