// Training at the place cuda, compiled for the stand-in of the CUDA runtime.
#include "../examples/training/cuda_f64.cu"
