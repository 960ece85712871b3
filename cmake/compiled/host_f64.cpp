// SPDX-License-Identifier: Apache-2.0
#include "partita/compiled/host.hpp"

namespace partita {

template void threads::detail::run_ranks<void>(int, const std::function<void(const communicator&)>&);

template class dense<double, vertex_rows, host>;
template class dense<double, replicated, host>;
template class dense<double, dynamic_layout, host>;
template class sparse<double, dynamic_layout, host>;
template std::pair<detail::shared_tiles<double, host>, detail::shared_tiles<double, host>>
detail::distribute_tiles(const mesh<host>&, layout, const blocking&, const blocking&,
                         const std::span<const triplet<double>>&, symmetry, transfer::sharing);
template class detail::spmm_schedule<double, host>;
template class spmm_plan<double, host>;
template class redistribution<double, host>;
template class gemm_plan<double, host>;

template class nn::parameters<double, host>;
template class nn::builder<double, host>;
template class nn::adam<double, host>;
template class nn::model<double, host>;
template class nn::sequential<double, host>;
template class nn::activation_layer<nn::relu, double, host>;
template class nn::linear<double, host>;
template class nn::gcn_conv<double, host>;
template class nn::sage_conv<double, host>;
template class nn::graph_operators<double, host>;
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
