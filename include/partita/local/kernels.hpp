#pragma once
/// kernels<Place> holds the local computations of one rank at a place as static functions; `local/reference`
/// has the same names and argument orders without the queue, as obvious serial loops.

namespace partita {

/// Local computations at a place. Specialised by each place; every specialisation has the same static
/// functions.
template <class Place>
struct kernels;

}  // namespace partita

#include "partita/local/cpu/kernels.hpp"
