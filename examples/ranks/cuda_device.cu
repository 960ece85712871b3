// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "cuda_device.hpp"
#include "machine.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/vendor_products.hpp"
#include "partita/memory/cuda_far.hpp"

#ifdef PARTITA_WITH_CUBLAS
#include "partita/local/cublas/gemm.hpp"
#endif
#ifdef PARTITA_WITH_CUSPARSE
#include "partita/local/cusparse/spmm.hpp"
#endif
#ifdef PARTITA_WITH_NCCL
#include "partita/comm/nccl.hpp"
#endif

namespace {

partita::on_cuda::cuda_libraries vendor_libraries([[maybe_unused]] bool tf32) {
  partita::on_cuda::cuda_libraries libraries;
#ifdef PARTITA_WITH_CUBLAS
  libraries =
      partita::cublas_gemm(libraries, tf32 ? partita::f32_products::tf32 : partita::f32_products::exact);
#else
  if (tf32) throw partita::error("this program was built without cuBLASLt, which multiplies by TF32");
#endif
#ifdef PARTITA_WITH_CUSPARSE
  libraries = partita::cusparse_spmm(libraries);
#endif
  return libraries;
}

/// Throws device_error where there is none.
int device_count() {
  int devices = 0;
  try {
    partita::on_cuda::check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  } catch (const partita::device_error& e) {
    throw partita::device_error(
        std::string(e.what()) +
        "; without a card scripts/ptx-run, of the sources, runs this program on an emulator");
  }
  return devices;
}

}  // namespace

partita::device_queue<partita::cuda_device> cuda_queue(const partita::communicator& world,
                                                       const std::string& comm, bool tf32) {
  const int devices = device_count();
  const std::vector<int> here = comm == "threads" ? std::vector{world.rank()} : ranks_on_machine(world);
  if (comm == "nccl" && std::ssize(here) > devices) {
    const std::string ranks = std::to_string(here.size());
    throw partita::error("--comm nccl: " + ranks + " ranks need " + ranks +
                         " devices, and this machine has " + std::to_string(devices) +
                         "; use --comm threads or mpi, or scripts/ptx-run --devices " + ranks +
                         " without a card");
  }
  const auto place = static_cast<int>(std::ranges::find(here, world.rank()) - here.begin());
  return partita::device_queue<partita::cuda_device>(place % devices, vendor_libraries(tf32));
}

partita::communicator cuda_world(const partita::communicator& world,
                                 [[maybe_unused]] const partita::device_queue<partita::cuda_device>& queue,
                                 const std::string& comm,
                                 [[maybe_unused]] std::optional<std::chrono::milliseconds> time_limit) {
  if (comm != "nccl") return world;
#ifdef PARTITA_WITH_NCCL
  partita::nccl::options o;
  o.time_limit = time_limit.value_or(o.time_limit);
  return partita::nccl::world(world, queue, o);
#else
  throw partita::error("this program was built without NCCL; use --comm threads or mpi");
#endif
}

partita::memory::far_rates use_pinned(const partita::device_queue<partita::cuda_device>& queue,
                                      partita::far_options options) {
  options.store = std::make_shared<partita::pinned_store>();
  use_far(queue, options);
  return partita::memory::measured_far_rates(queue);
}

partita::mesh<partita::cuda_device> cuda_mesh(const partita::communicator& world, partita::mesh_shape shape,
                                              const partita::device_queue<partita::cuda_device>& queue,
                                              std::size_t tile_entries) {
  return {world, shape, queue, tile_entries};
}
