// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels with the same bits for every arrangement, for reproducible queues: exact sums, and sums in the
/// order of entries. For all others see kernels.hpp.

#include "partita/local/host/exact.hpp"
#include "partita/local/host/ordered_edges.hpp"
