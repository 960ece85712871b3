// SPDX-License-Identifier: Apache-2.0
// expect: no matching (member )?function for call to .*start_all_gather
#include <vector>

#include "partita/comm/communicator.hpp"

using namespace partita;

request gather(const communicator& c, const std::vector<global_index>& counts, std::vector<int>& all) {
#ifdef FAILS
  return c.start_all_gather(std::vector<int>(1), counts, all);  // freed before the operation is waited for
#else
  static const std::vector<int> mine(1);
  return c.start_all_gather(mine, counts, all);
#endif
}

int main() { return 0; }
