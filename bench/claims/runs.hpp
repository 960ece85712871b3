// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Small training runs on threads, for claims about whole epochs. The library's templates are instantiated in
/// runs.cpp alone.

#include <array>
#include <vector>

#include "partita/comm/emulated.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/options.hpp"

namespace bench::claims {

using partita::global_index, partita::mesh_shape, partita::policy;
namespace nn = partita::nn;
namespace io = partita::io;

/// Counts alone, for closed forms: no edges, features and labels.
io::dataset counts(global_index vertices, global_index features, global_index classes);
/// A random directed graph, about `degree` edges into a vertex, with features and labels; the training
/// vertices are drawn at random, most of them among the first.
io::dataset random_graph(global_index vertices, global_index degree, global_index features,
                         global_index classes);
/// Every vertex has an edge to every other one, and trains.
io::dataset complete_graph(global_index vertices, global_index features, global_index classes);
/// Those of a planted or an R-MAT graph.
io::dataset planted_dataset(global_index vertices, global_index communities, double mixing,
                            global_index classes, global_index features = 8, global_index degree = 14);
io::dataset rmat_graph(int scale, global_index features, global_index classes);

/// nn::train, the result of rank 0. With stages `inside` is the mesh of each.
nn::training_result train(const io::dataset& d, const nn::training_options& o, const policy& p,
                          mesh_shape shape, mesh_shape inside = {1, 1, 1});
/// The parameters after such a run, one after the other.
std::vector<double> trained(const io::dataset& d, const nn::training_options& o, const policy& p,
                            mesh_shape shape);
/// nn::predict_words: of a training step, without training.
nn::max_and_total predicted_words(const io::dataset& d, const nn::training_options& o, const policy& p,
                                  mesh_shape shape);
/// The seconds of a steady step on a machine with rates of kernels, rehearsed: nn::predict_cost.
double rehearsed_seconds(const io::dataset& d, const nn::training_options& o, const policy& p,
                         mesh_shape shape, const partita::emulated::machine& on);
/// The relative error of the gradients of a step against finite differences.
double gradient_error(const io::dataset& d, const nn::training_options& o, const policy& p, mesh_shape shape);
/// Nonzeros times width that the busiest rank multiplies in a product of a decoupled gcn, in means.
double busiest_multiplications(const io::dataset& d, const policy& p, mesh_shape shape);

/// With 4 chunks in 2 stages, the largest difference of the gradients, without the factor of 2, from finite
/// differences with the rows of earlier epochs as constants; and, with one convolution and the factor, from
/// the exact gradients, of the mean over all 24 orders of the chunks.
double history_gradient_error(const io::dataset& d, nn::training_options o);
double mean_over_orders_error(const io::dataset& d, const nn::training_options& o);

/// Words of all ranks in the last epoch's steps by this operation.
partita::traffic of_operation(const nn::training_result& r, partita::operation kind);

}  // namespace bench::claims
