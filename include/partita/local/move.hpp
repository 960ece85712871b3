// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels that move numbers and compute nothing, for what exchanges blocks and rows. For all kernels see
/// kernels.hpp.

#include "partita/local/host/move.hpp"
