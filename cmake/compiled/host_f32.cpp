// SPDX-License-Identifier: Apache-2.0
#include "partita/compiled/host.hpp"

namespace partita {

template class dense<float, vertex_rows, host>;
template class dense<float, replicated, host>;
template class dense<float, dynamic_layout, host>;
template class sparse<float, dynamic_layout, host>;
template std::pair<detail::shared_tiles<float, host>, detail::shared_tiles<float, host>>
detail::distribute_tiles(const mesh<host>&, layout, const blocking&, const blocking&,
                         const std::span<const triplet<float>>&, symmetry, transfer::sharing);
template class detail::spmm_schedule<float, host>;
template class spmm_plan<float, host>;
template class redistribution<float, host>;
template class gemm_plan<float, host>;

template class nn::parameters<float, host>;
template class nn::builder<float, host>;
template class nn::adam<float, host>;
template class nn::model<float, host>;
template class nn::sequential<float, host>;
template class nn::activation_layer<nn::relu, float, host>;
template class nn::linear<float, host>;
template class nn::gcn_conv<float, host>;
template class nn::sage_conv<float, host>;
template class nn::graph_operators<float, host>;
template class nn::trainer<float, host>;
template nn::model<float, host> nn::make_model<float>(const mesh<host>&, const io::dataset&,
                                                      const nn::training_options&, const policy&);
template nn::training_result nn::train_model(const mesh<host>&, const io::dataset&,
                                             const nn::training_options&, nn::model<float, host>,
                                             const nn::epoch_observer&);
template nn::training_result nn::train_model<float>(const mesh<host>&, const io::dataset&,
                                                    const nn::training_options&, const policy&,
                                                    const nn::epoch_observer&);
template nn::over_ranks nn::predict_words<float>(const mesh<host>&, const io::dataset&,
                                                 const nn::training_options&, const policy&);
template nn::policy_cost nn::predict_cost<float>(const mesh<host>&, const io::dataset&,
                                                 const nn::training_options&, const policy&);

}  // namespace partita
