// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Host kernels: every function takes a queue first and uses at most q.threads() threads; results do not
/// depend on the number of threads. Those that add up rows, entries or columns of which a rank may have a
/// part throw error on a reproducible queue (memory::refuse_reproducible).

#include "partita/local/host/aggregate.hpp"
#include "partita/local/host/edge_products.hpp"
#include "partita/local/host/edges.hpp"
#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/gemm.hpp"
#include "partita/local/host/inverse.hpp"
#include "partita/local/host/loss.hpp"
#include "partita/local/host/move.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/host/softmax.hpp"
#include "partita/local/host/spmm.hpp"
#include "partita/local/host/spmm_transposed.hpp"
#include "partita/local/host/tuned_spmm.hpp"
