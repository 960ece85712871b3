// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What partita::compiled has in the precisions that these programs are built with.

#ifdef PARTITA_WITH_F32
#include "partita/compiled/host_f32.hpp"
#endif
#ifdef PARTITA_WITH_F64
#include "partita/compiled/host_f64.hpp"
#endif
