#include "cuda.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

template class trainer<double, cuda>;
template std::unique_ptr<model<double, cuda>> make_model(const mesh<cuda>&, const dataset&,
                                                         const training_options&,
                                                         const operator_maker<double, cuda>&);
template training_result train_model(const mesh<cuda>&, const dataset&, const training_options&,
                                     const operator_maker<double, cuda>&, const epoch_observer&);

}  // namespace partita
