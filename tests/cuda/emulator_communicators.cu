// Memory, streams and communicators on the emulator, which counts calls and makes them fail.
#include "comm_device_failures.cpp"
#include "comm_device_steady.cpp"
#include "cuda_memory.cpp"
