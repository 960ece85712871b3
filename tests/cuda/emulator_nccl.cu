// NCCL on the emulator, which counts calls and makes them fail.
#include "nccl_failures.cpp"
