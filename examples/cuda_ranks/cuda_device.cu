// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <unistd.h>
#include <vector>

#include "cuda_device.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/vendor_products.hpp"

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

/// The rank among those of its machine, and how many there are.
struct place {
  int rank, ranks;
};
place place_on_machine(const partita::communicator& world) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  const partita::global_index mine[] = {static_cast<partita::global_index>(std::hash<std::string>()(name))};
  std::vector<partita::global_index> all(static_cast<std::size_t>(world.size()));
  const std::vector<partita::global_index> ones(all.size(), 1);
  world.all_gather(std::span<const partita::global_index>(mine), std::span<const partita::global_index>(ones),
                   std::span<partita::global_index>(all));
  return {static_cast<int>(std::count(all.begin(), all.begin() + world.rank(), mine[0])),
          static_cast<int>(std::ranges::count(all, mine[0]))};
}

partita::on_cuda::cuda_libraries vendor_libraries() {
  partita::on_cuda::cuda_libraries libraries;
#ifdef PARTITA_WITH_CUBLAS
  libraries = partita::cublas_gemm(libraries);
#endif
#ifdef PARTITA_WITH_CUSPARSE
  libraries = partita::cusparse_spmm(libraries);
#endif
  return libraries;
}

}  // namespace

partita::device_queue<partita::cuda_device> cuda_queue(const partita::communicator& world,
                                                       const std::string& comm) {
  int devices = 0;
  partita::on_cuda::check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const place here = comm == "threads" ? place{0, 1} : place_on_machine(world);
  if (comm == "nccl" && here.ranks > devices) {
    const std::string ranks = std::to_string(here.ranks);
    throw partita::error(ranks + " ranks need " + ranks + " devices, there are " + std::to_string(devices) +
                         " on this machine");
  }
  return partita::device_queue<partita::cuda_device>(here.rank % devices, vendor_libraries());
}

partita::communicator cuda_world(const partita::communicator& world,
                                 [[maybe_unused]] const partita::device_queue<partita::cuda_device>& queue,
                                 const std::string& comm) {
  if (comm != "nccl") return world;
#ifdef PARTITA_WITH_NCCL
  return partita::nccl::world(world, queue);
#else
  throw partita::error("this program was built without NCCL; use --comm threads or mpi");
#endif
}

partita::mesh<partita::cuda_device> cuda_mesh(const partita::communicator& world, partita::mesh_shape shape,
                                              const partita::device_queue<partita::cuda_device>& queue) {
  return {world, shape, queue};
}
