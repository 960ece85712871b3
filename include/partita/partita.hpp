#pragma once
/// Everything that needs only the standard library. Backends are headers of their own: comm/mpi.hpp,
/// local/blas/gemm.hpp, io/npz.hpp and io/dataset.hpp.

#include "partita/algebra/gemm.hpp"
#include "partita/algebra/reductions.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/io/karate.hpp"
#include "partita/io/npy.hpp"
#include "partita/memory/host.hpp"
#include "partita/nn/gcn.hpp"
#include "partita/nn/loss.hpp"
#include "partita/nn/optimizer.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/trainer.hpp"
#include "partita/transfer/distribute.hpp"
