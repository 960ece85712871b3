// SPDX-License-Identifier: Apache-2.0
// Accesses that nothing orders, which the emulator must name, and those that are in order.

#include "emulator/control.hpp"
#include "emulator/planted_faults.hpp"

using namespace planted;

namespace {

__global__ void copy_one(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void write_first(int* to) { to[0] = static_cast<int>(threadIdx.x); }
__global__ void count_in_first(int* to) { atomicAdd(to, 1); }
__global__ void neighbour_in_shared(int* to, bool waits) {
  __shared__ int all[64];
  all[threadIdx.x] = 0;
  __syncthreads();
  all[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (waits) __syncthreads();
  to[threadIdx.x] = all[63 - threadIdx.x];
}
__global__ void count_in_shared(unsigned* to, bool waits) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  if (waits) __syncthreads();
  if (threadIdx.x % 32 == 0) atomicAdd(&count, 1u);
  atomicMax(&count, 2u);
  __syncthreads();
  to[threadIdx.x] = count;
}
__global__ void overwrite_in_warp(int* to, bool waits) {
  __shared__ int one;
  if (threadIdx.x == 0) one = 1;
  __syncwarp();
  to[threadIdx.x] = one;
  if (waits) __syncwarp();
  if (threadIdx.x == 0) one = 2;
  __syncwarp();
  to[threadIdx.x] += one;
}
__global__ void bytes_of_a_word(unsigned char* to) {
  __shared__ unsigned char all[64];
  all[threadIdx.x] = 1;
  all[threadIdx.x] += 1;
  to[threadIdx.x] = all[threadIdx.x];
}
__global__ void lock(int* word, int* sum) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(word, 0, 1) != 0) {
  }
  *sum += 1;
  __threadfence();
  atomicExch(word, 0);
}

}  // namespace

TEST_CASE("threads of a launch that write to one word race, unless they add atomically") {
  const race_search on;
  const values<int> to(std::vector<int>(64, 0));
  check_contains(
      fault_of([&] { write_first<<<1, 2>>>(to.data()); }),
      {"a write of 4 bytes races with a write by thread (0, 0, 0) of block (0, 0, 0) of the same launch",
       "0 bytes into a block of 256 bytes of device 0", "write_first"});
  check_contains(fault_of([&] { write_first<<<2, 1>>>(to.data()); }),
                 {"races", "block (0, 0, 0) of the same launch"});
  CHECK(fault_of([&] { count_in_first<<<4, 64>>>(to.data()); }).empty());
  CHECK(fault_of([&] { copy_one<<<1, 1>>>(to.data(), to.data() + 1); }).empty());
}

TEST_CASE("threads of a block race in shared memory where no barrier is between them") {
  const race_search on;
  const values<int> to(64);
  CHECK(fault_of([&] { neighbour_in_shared<<<1, 64>>>(to.data(), true); }).empty());
  check_contains(fault_of([&] { neighbour_in_shared<<<1, 64>>>(to.data(), false); }), {"races with a"});
}

TEST_CASE("streams race where no event is between them") {
  const race_search on;
  const stream one, other;
  const values<int> from(std::vector<int>(32, 1)), between(32), to(32);
  cudaEvent_t event;
  require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto run = [&](bool waits) {
    copy_one<<<1, 32, 0, one.handle>>>(from.data(), between.data());
    require(cudaEventRecord(event, one.handle));
    if (waits) require(cudaStreamWaitEvent(other.handle, event));
    copy_one<<<1, 32, 0, other.handle>>>(between.data(), to.data());
  };
  require(cudaDeviceSynchronize());
  CHECK(fault_of([&] { run(true); }).empty());
  check_contains(
      fault_of([&] { run(false); }),
      {"by (anonymous namespace)::copy_one(int const*, int*) on stream ",
       "that no event orders before this one on stream ", "bytes into a block of 128 bytes of device 0"});
  // The same of a copy, and of memory that is given back while another stream reads it.
  check_contains(fault_of([&] {
                   copy_one<<<1, 32, 0, one.handle>>>(from.data(), between.data());
                   static_cast<void>(
                       cudaMemcpyAsync(to.data(), between.data(), 4, cudaMemcpyDeviceToDevice, other.handle));
                 }),
                 {"races with a", "on stream"});
  check_contains(fault_of([&] {
                   int* lent = nullptr;
                   require(cudaMallocAsync(&lent, 32 * sizeof(int), one.handle));
                   require(cudaEventRecord(event, one.handle));
                   require(cudaStreamWaitEvent(other.handle, event));
                   copy_one<<<1, 32, 0, other.handle>>>(from.data(), lent);
                   require(cudaFreeAsync(lent, one.handle));
                 }),
                 {"free"});
  require(cudaEventDestroy(event));
}

TEST_CASE("atomics on shared memory race with plain accesses, not with one another") {
  const race_search on;
  const values<unsigned> to(128);
  CHECK(fault_of([&] { count_in_shared<<<1, 128>>>(to.data(), true); }).empty());
  check_contains(fault_of([&] { count_in_shared<<<1, 128>>>(to.data(), false); }),
                 {"of shared memory races with a write by thread (0, 0, 0) of block (0, 0, 0)"});
}

TEST_CASE("lanes of a warp are ordered where they meet, and bytes of one word are apart") {
  const race_search on;
  const values<int> to(32);
  CHECK(fault_of([&] { overwrite_in_warp<<<1, 32>>>(to.data(), true); }).empty());
  check_contains(fault_of([&] { overwrite_in_warp<<<1, 32>>>(to.data(), false); }), {"races with a read"});
  const values<unsigned char> bytes(64);
  CHECK(fault_of([&] { bytes_of_a_word<<<1, 64>>>(bytes.data()); }).empty());
}

TEST_CASE("a lock orders no plain accesses for the search of races") {
  const race_search on;
  const values<int> word(std::vector<int>(1, 0)), sum(std::vector<int>(1, 0));
  check_contains(fault_of([&] { lock<<<4, 32>>>(word.data(), sum.data()); }),
                 {"races with a write by thread (0, 0, 0) of block (0, 0, 0)"});
}
