// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled: products, redistributions, layers and training
/// in float and double on the host. Programs that include this header and link that target do not instantiate
/// them again.

#include "partita/compiled/host_f32.hpp"
#include "partita/compiled/host_f64.hpp"
