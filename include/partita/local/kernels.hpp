// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The local computations of one rank: function templates whose first argument is the queue of the device
/// that runs them, overloaded for each device in the namespace of its tag, where calls find them by that
/// argument. `tests/reference` has the same names and argument orders without the queue, as obvious serial
/// loops.

#include "partita/local/host/kernels.hpp"
#include "partita/local/spmm_product.hpp"
