// expect: the column axes of a layout nest in the order col, depth, row
#include "partita/partition/layout.hpp"

using partita::axes, partita::axis, partita::layout;

#ifdef FAILS
using columns = axes<axis::depth, axis::col>;
#else
using columns = axes<axis::col, axis::depth>;
#endif

constexpr partita::cut value = layout<axes<axis::row>, columns>::value;

int main() { return value.cols.empty() ? 1 : 0; }
