// SPDX-License-Identifier: Apache-2.0
// expect: no matching (member )?function for call to .*all_reduce
#include <vector>

#include "partita/comm/communicator.hpp"

using namespace partita;

#ifdef FAILS
void add_up(const communicator& c, const std::vector<double>& sums) { c.all_reduce(sums); }
#else
void add_up(const communicator& c, std::vector<double>& sums) { c.all_reduce(sums); }
#endif

int main() { return 0; }
