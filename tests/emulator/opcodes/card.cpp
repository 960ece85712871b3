// SPDX-License-Identifier: Apache-2.0
#include "card.hpp"

#include <cuda.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <utility>

namespace opcodes {

namespace {

/// A function of the driver, which is looked for when it is needed: this program runs without one, too.
template <class Function>
Function* driver(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE_MESSAGE((library != nullptr), "there is no CUDA driver");
  auto* const found = reinterpret_cast<Function*>(::dlsym(library, name));
  REQUIRE_MESSAGE((found != nullptr), name);
  return found;
}

/// Calls it by the name that it has in the library, where cuda.h gives its newest version another one.
template <class Function, class... Arguments>
void call(const char* name, Arguments... arguments) {
  INFO(name);
  REQUIRE(driver<Function>(name)(arguments...) == CUDA_SUCCESS);
}

void use_first_card() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  CUdevice device;
  CUcontext context;
  call<decltype(cuInit)>("cuInit", 0);
  call<decltype(cuDeviceGet)>("cuDeviceGet", &device, 0);
  call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", &context, device);
  call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", context);
}

}  // namespace

void run_on_card(const std::string& module, std::vector<std::uint64_t>& words, unsigned blocks,
                 unsigned threads, unsigned shared_bytes) {
  use_first_card();
  CUmodule loaded;
  CUfunction kernel;
  CUdeviceptr memory;
  call<decltype(cuModuleLoadData)>("cuModuleLoadData", &loaded, module.c_str());
  call<decltype(cuModuleGetFunction)>("cuModuleGetFunction", &kernel, loaded, "test");
  call<decltype(cuMemAlloc)>("cuMemAlloc_v2", &memory, 8 * words.size());
  call<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2", memory, words.data(), 8 * words.size());
  void* arguments[] = {&memory};
  call<decltype(cuLaunchKernel)>("cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, shared_bytes, nullptr,
                                 arguments, nullptr);
  call<decltype(cuCtxSynchronize)>("cuCtxSynchronize");
  call<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2", words.data(), memory, 8 * words.size());
  call<decltype(cuMemFree)>("cuMemFree_v2", memory);
  call<decltype(cuModuleUnload)>("cuModuleUnload", loaded);
}

}  // namespace opcodes
