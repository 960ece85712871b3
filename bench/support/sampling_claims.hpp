// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows that mini-batches move under each placement.

namespace bench {

/// Prints tables for a graph of so many vertices with planted communities. Counts only: the ranks are
/// simulated, and nothing is sent but sums.
void print_claims(int vertices);

}  // namespace bench
