// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of CUDA devices: every function takes its queue first and enqueues its work there; those that
/// return a number wait for it. All memory is the device's. Bodies of kernels are constexpr objects that know
/// nothing of a device; no result depends on how many threads there are or on which of them is first. Beside
/// what a function, or the host's of its name, says of itself, it throws device_error when a call of the
/// runtime fails.

#include "partita/local/cuda/aggregate.hpp"
#include "partita/local/cuda/edge_products.hpp"
#include "partita/local/cuda/edges.hpp"
#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/gemm.hpp"
#include "partita/local/cuda/inverse.hpp"
#include "partita/local/cuda/loss.hpp"
#include "partita/local/cuda/move.hpp"
#include "partita/local/cuda/reductions.hpp"
#include "partita/local/cuda/softmax.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/local/cuda/spmm_product.hpp"
