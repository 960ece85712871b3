// Laws of kernels, on a device or the emulator.
#include "local_cuda.cpp"
#include "local_edges_cuda.cpp"
