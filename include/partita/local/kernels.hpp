// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rank-local kernels: function templates that take a device queue as first argument, with one overload per
/// device in the namespace of its tag, found by argument-dependent lookup. `tests/reference` has serial
/// reference implementations with the same names and arguments, without the queue.

#include "partita/local/host/kernels.hpp"
#include "partita/local/move.hpp"
#include "partita/local/pass.hpp"
#include "partita/local/tuned_spmm.hpp"
