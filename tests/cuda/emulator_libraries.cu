// Kernels that use cuBLASLt and cuSPARSE, on the emulator, which counts calls.
#include "local_cuda_libraries.cpp"
#include "vendor_calls.cpp"
