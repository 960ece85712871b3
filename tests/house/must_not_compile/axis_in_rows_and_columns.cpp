// expect: an axis cuts the rows of a layout or its columns, not both
#include "partita/partition/layout.hpp"

using partita::axes, partita::axis, partita::layout;

#ifdef FAILS
using columns = axes<axis::col, axis::row>;
#else
using columns = axes<axis::col>;
#endif

constexpr partita::cut value = layout<axes<axis::row>, columns>::value;

int main() { return value.cols.empty() ? 1 : 0; }
