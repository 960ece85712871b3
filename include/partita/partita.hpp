// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Matrices, their products and exchanges, layers, and training on whole graphs, with nothing but the
/// standard library. Samplers, mini-batches, stages and prediction are headers of their own: sampling/,
/// train/mini_batch_trainer.hpp, train/pipeline_trainer.hpp and train/predictor.hpp, or all of them by
/// train/make_training.hpp. So are backends: comm/mpi.hpp, local/blas/gemm.hpp, local/lapack/small.hpp,
/// algebra/tall_skinny.hpp, partition/metis.hpp, io/npz.hpp, io/dataset.hpp, io/safetensors.hpp,
/// io/checkpoint_folder.hpp, train/checkpoint.hpp and train/model_file.hpp; io/whole_file.hpp and
/// io/matrix_market.hpp need POSIX. Parts of graphs without METIS are in partition/orders.hpp and
/// partition/volume.hpp.

#include "partita/algebra/edge_softmax.hpp"
#include "partita/algebra/gemm.hpp"
#include "partita/algebra/gram.hpp"
#include "partita/algebra/reductions.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/algebra/vectors.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/graph/features.hpp"
#include "partita/graph/propagation_matrices.hpp"
#include "partita/io/karate.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/parts.hpp"
#include "partita/io/reordered.hpp"
#include "partita/memory/host.hpp"
#include "partita/nn/layer_norm.hpp"
#include "partita/nn/residual.hpp"
#include "partita/partition/gemm_grid.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/models.hpp"
#include "partita/train/state_dict.hpp"
#include "partita/transfer/assign_values.hpp"
#include "partita/transfer/distribute.hpp"
#include "partita/transfer/gather_rows.hpp"
#include "partita/version.hpp"
