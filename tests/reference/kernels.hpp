// SPDX-License-Identifier: Apache-2.0
#pragma once
/// All local computations as slow and obvious serial loops: hand-computed numbers test them, and they test
/// the rest. Operands are those of the host's kernels of the same names; shapes must fit and are not checked,
/// so that nothing is thrown but what a given function throws.

#include "reference/aggregate.hpp"
#include "reference/edges.hpp"
#include "reference/elementwise.hpp"
#include "reference/gemm.hpp"
#include "reference/loss.hpp"
#include "reference/move.hpp"
#include "reference/reductions.hpp"
#include "reference/softmax.hpp"
#include "reference/spmm.hpp"
