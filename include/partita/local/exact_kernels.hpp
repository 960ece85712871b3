// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of reproducible queues, of which only their verbs know: found as those of local/kernels.hpp,
/// on devices that have them, of which the host is one.

#include "partita/local/host/exact.hpp"
#include "partita/local/host/ordered_edges.hpp"
