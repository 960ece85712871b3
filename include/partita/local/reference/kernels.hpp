#pragma once
/// All local computations as slow and obvious serial loops: hand-computed numbers test them, and they test
/// the rest. Operands are those of the host's kernels of the same names; shapes must fit and are not checked,
/// so that nothing is thrown but what a given function throws.

#include "partita/local/reference/aggregate.hpp"
#include "partita/local/reference/edges.hpp"
#include "partita/local/reference/elementwise.hpp"
#include "partita/local/reference/gemm.hpp"
#include "partita/local/reference/loss.hpp"
#include "partita/local/reference/move.hpp"
#include "partita/local/reference/reductions.hpp"
#include "partita/local/reference/softmax.hpp"
#include "partita/local/reference/spmm.hpp"
