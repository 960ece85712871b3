// expect: the row axes of a layout nest in the order row, depth, col
#include "partita/partition/layout.hpp"

using partita::axes, partita::axis, partita::layout;

#ifdef FAILS
using rows = axes<axis::depth, axis::row>;
#else
using rows = axes<axis::row, axis::depth>;
#endif

constexpr partita::cut value = layout<rows, axes<axis::col>>::value;

int main() { return value.rows.empty() ? 1 : 0; }
