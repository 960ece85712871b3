// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled: products, redistributions, layers and training
/// in float and double on the host. Programs that include this header and link that target do not instantiate
/// them again.

#include "partita/comm/threads.hpp"
#include "partita/memory/host.hpp"
#include "partita/train/models.hpp"

namespace partita {

extern template void threads::detail::run_ranks<void>(int, const std::function<void(const communicator&)>&);

extern template class dense<float, vertex_rows, host>;
extern template class dense<float, replicated, host>;
extern template class dense<float, dynamic_layout, host>;
extern template class sparse<float, dynamic_layout, host>;
extern template std::pair<detail::shared_tiles<float, host>, detail::shared_tiles<float, host>>
detail::distribute_tiles(const mesh<host>&, layout, const blocking&, const blocking&,
                         const std::span<const triplet<float>>&, symmetry, transfer::sharing);
extern template class detail::spmm_schedule<float, host>;
extern template class spmm_plan<float, host>;
extern template class redistribution<float, host>;
extern template class gemm_plan<float, host>;

extern template class nn::parameters<float, host>;
extern template class nn::builder<float, host>;
extern template class nn::adam<float, host>;
extern template class nn::model<float, host>;
extern template class nn::sequential<float, host>;
extern template class nn::activation_layer<nn::relu, float, host>;
extern template class nn::linear<float, host>;
extern template class nn::gcn_conv<float, host>;
extern template class nn::sage_conv<float, host>;
extern template class nn::graph_operators<float, host>;
extern template class nn::trainer<float, host>;
extern template nn::model<float, host> nn::make_model<float>(const mesh<host>&, const io::dataset&,
                                                             const nn::training_options&, const policy&);
extern template nn::training_result nn::train_model(const mesh<host>&, const io::dataset&,
                                                    const nn::training_options&, nn::model<float, host>,
                                                    const nn::epoch_observer&);
extern template nn::training_result nn::train_model<float>(const mesh<host>&, const io::dataset&,
                                                           const nn::training_options&, const policy&,
                                                           const nn::epoch_observer&);
extern template nn::over_ranks nn::predict_words<float>(const mesh<host>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);
extern template nn::policy_cost nn::predict_cost<float>(const mesh<host>&, const io::dataset&,
                                                        const nn::training_options&, const policy&);

extern template class dense<double, vertex_rows, host>;
extern template class dense<double, replicated, host>;
extern template class dense<double, dynamic_layout, host>;
extern template class sparse<double, dynamic_layout, host>;
extern template std::pair<detail::shared_tiles<double, host>, detail::shared_tiles<double, host>>
detail::distribute_tiles(const mesh<host>&, layout, const blocking&, const blocking&,
                         const std::span<const triplet<double>>&, symmetry, transfer::sharing);
extern template class detail::spmm_schedule<double, host>;
extern template class spmm_plan<double, host>;
extern template class redistribution<double, host>;
extern template class gemm_plan<double, host>;

extern template class nn::parameters<double, host>;
extern template class nn::builder<double, host>;
extern template class nn::adam<double, host>;
extern template class nn::model<double, host>;
extern template class nn::sequential<double, host>;
extern template class nn::activation_layer<nn::relu, double, host>;
extern template class nn::linear<double, host>;
extern template class nn::gcn_conv<double, host>;
extern template class nn::sage_conv<double, host>;
extern template class nn::graph_operators<double, host>;
extern template class nn::trainer<double, host>;
extern template nn::model<double, host> nn::make_model<double>(const mesh<host>&, const io::dataset&,
                                                               const nn::training_options&, const policy&);
extern template nn::training_result nn::train_model(const mesh<host>&, const io::dataset&,
                                                    const nn::training_options&, nn::model<double, host>,
                                                    const nn::epoch_observer&);
extern template nn::training_result nn::train_model<double>(const mesh<host>&, const io::dataset&,
                                                            const nn::training_options&, const policy&,
                                                            const nn::epoch_observer&);
extern template nn::over_ranks nn::predict_words<double>(const mesh<host>&, const io::dataset&,
                                                         const nn::training_options&, const policy&);
extern template nn::policy_cost nn::predict_cost<double>(const mesh<host>&, const io::dataset&,
                                                         const nn::training_options&, const policy&);

}  // namespace partita
