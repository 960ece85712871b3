// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How many threads a rank may use.

#include <optional>

#include "partita/comm/communicator.hpp"

/// A rank's share of the cores of its machine, the same on every rank: each core is divided among the ranks
/// that may run on it, be they threads or processes, bound to cores or not; the smallest share counts. Every
/// rank must call.
double share_of_cores(const partita::communicator& world);

/// The same as a whole number, at least 1.
int cores_per_rank(const partita::communicator& world);

/// `asked`, or the rank's share of the cores. Every rank must call. Throws usage_error for more than that.
int threads_per_rank(const partita::communicator& world, std::optional<int> asked);
