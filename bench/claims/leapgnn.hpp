// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph on which claims of LeapGNN are counted.

namespace bench::claims {

/// Of planted graphs that have not been made yet; claims are for 200,000.
void set_vertices_of_leapgnn(int vertices);

}  // namespace bench::claims
