#pragma once
// The types of elements that the stand-ins of CUDA's libraries know, named as in the real header.
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_64F = 1 };
typedef cudaDataType cudaDataType_t;
