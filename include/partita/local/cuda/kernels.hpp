// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels for CUDA devices. Every function takes a queue first and enqueues its work there; functions that
/// return a number synchronise. All memory is device memory. Kernel bodies are device-independent constexpr
/// objects, except those of warps (warp_rows.hpp), and results do not depend on the number or order of
/// threads. Semantics are those of the on_host functions of the same name; in addition, any function may
/// throw device_error.

#include "partita/local/cuda/aggregate.hpp"
#include "partita/local/cuda/attention.hpp"
#include "partita/local/cuda/edge_products.hpp"
#include "partita/local/cuda/edges.hpp"
#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/gemm.hpp"
#include "partita/local/cuda/inverse.hpp"
#include "partita/local/cuda/loss.hpp"
#include "partita/local/cuda/messages.hpp"
#include "partita/local/cuda/move.hpp"
#include "partita/local/cuda/reductions.hpp"
#include "partita/local/cuda/softmax.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/local/cuda/spmm_transposed.hpp"
#include "partita/local/cuda/tuned_spmm.hpp"
