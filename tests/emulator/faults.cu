// SPDX-License-Identifier: Apache-2.0
// Faults planted in kernels, each of which the emulator must name; what else kernels may use.
#undef NDEBUG
#include <cassert>
#include <cstdio>
#include <unistd.h>

#include "emulator/control.hpp"
#include "emulator/planted_faults.hpp"

using namespace planted;

namespace {

__global__ void copy_one(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
__device__ void copy_through_shared(int* to) {
  __shared__ int all[32];
  if (threadIdx.x != 5) all[threadIdx.x] = 1;
  __syncthreads();
  to[threadIdx.x] = all[threadIdx.x];
}
__global__ void read_unwritten_shared(int* to) { copy_through_shared(to); }
/// Through a pointer that might be any memory's.
__global__ void read_behind_shared(int* to, int n) {
  __shared__ int all[32];
  all[threadIdx.x] = 0;
  const volatile int* const from = n == 0 ? to : all;
  to[threadIdx.x] = from[n];
}
__global__ void shuffle_by_half(int* to) {
  if (threadIdx.x < 16) to[threadIdx.x] = __shfl_down_sync(~0u, static_cast<int>(threadIdx.x), 1);
}
__global__ void wait_for_half(int* to) {
  if (threadIdx.x < 32) return;
  __syncthreads();
  to[threadIdx.x] = 1;
}
__global__ void wait_at_two_places(int* to) {
  if (threadIdx.x < 32) {
    __syncthreads();
    to[threadIdx.x] = 1;
  } else {
    __syncthreads();
    to[threadIdx.x] = 2;
  }
}
__global__ void divide(int* to, int by) { to[threadIdx.x] = 7 / (by - static_cast<int>(threadIdx.x)); }
__global__ void wait_for_ever(volatile int* flag) {
  while (*flag == 0) {
  }
}
__global__ void print_and_assert(int n) {
  if (threadIdx.x == 0)
    printf("block %d of %s: %.2f %lld\n", static_cast<int>(blockIdx.x), "all", 1.5, 1LL << 40);
  assert(n >= 0);
}

__constant__ int table[4] = {2, 3, 5, 7};
__device__ int counter = 40;
__device__ int* to_counter = &counter;
__global__ void use_variables(int* to) {
  atomicAdd(to_counter, table[threadIdx.x % 4]);
  __threadfence();
  to[threadIdx.x] = table[threadIdx.x % 4];
}

/// Block 0 publishes vectors of equal numbers, which the other blocks read until the last one.
__global__ void publish(uint4* four, uint2* two, unsigned rounds, unsigned* torn) {
  four += threadIdx.x;
  two += threadIdx.x;
  for (unsigned n = 1; blockIdx.x == 0 && n <= rounds; ++n) {
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %1};" ::"l"(two), "r"(n) : "memory");
    asm volatile("st.relaxed.gpu.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(four), "r"(n) : "memory");
  }
  for (uint4 f{}; blockIdx.x > 0 && f.w < rounds;) {
    uint2 t;
    asm volatile("ld.relaxed.gpu.v2.u32 {%0, %1}, [%2];" : "=r"(t.x), "=r"(t.y) : "l"(two) : "memory");
    asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.x), "=r"(f.y), "=r"(f.z), "=r"(f.w)
                 : "l"(four)
                 : "memory");
    if (t.x != t.y) atomicAdd(torn, 1u);
    if (f.x != f.y || f.x != f.z || f.x != f.w) atomicAdd(torn + 1, 1u);
  }
}

struct pair {
  int sum;
  double product;
};
__device__ __noinline__ pair combine(pair a, int b) {
  if (b % 2 == 0) return a;
  for (int n = 0; n < b; ++n) a.sum += n;
  return {a.sum, a.product * b};
}
__global__ void call_functions(double* to) {
  const pair once = combine({1, 2.0}, static_cast<int>(threadIdx.x)), twice = combine(once, 3);
  to[threadIdx.x] = twice.sum + 100 * twice.product;
}
__global__ void reverse_in_dynamic_shared(int* to) {
  extern __shared__ int all[];
  all[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  to[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recurse(int* to) { to[threadIdx.x] = fibonacci(static_cast<int>(threadIdx.x)); }
__global__ void add_with_carry(unsigned* to) {
  unsigned low, high;
  asm("add.cc.u32 %0, %2, 1;\n\taddc.u32 %1, 0, 0;" : "=r"(low), "=r"(high) : "r"(threadIdx.x));
  to[threadIdx.x] = low + high;
}

}  // namespace

namespace thrust {
__global__ void read_unwritten_shared(int* to) { copy_through_shared(to); }
__global__ void read_unwritten(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
}  // namespace thrust

TEST_CASE("a read or write out of bounds is named with the thread, the block of memory and the instruction") {
  const values<int> few(std::vector<int>(31, 1)), to(32);
  check_contains(fault_of([&] { copy_one<<<1, 32>>>(few.data(), to.data()); }),
                 {"a read of 4 bytes is out of bounds", "124 bytes", "thread (31, 0, 0) of block (0, 0, 0)",
                  "copy_one", "PTX line", "ld.global"});
  const std::vector<int> on_host(32, 1);
  check_contains(fault_of([&] { copy_one<<<1, 32>>>(on_host.data(), to.data()); }),
                 {"a read of 4 bytes is out of bounds"});
  const cudaError_t code = cudaMemset(to.data(), 0, 33 * sizeof(int));
  CHECK(code != cudaSuccess);
  check_contains(cudaGetErrorString(code),
                 {"cudaMemset of 132 bytes writes beyond a block of 128 bytes of device 0"});
  std::vector<int> copy(40);
  const cudaError_t copied = cudaMemcpy(copy.data(), to.data() + 2, 32 * sizeof(int), cudaMemcpyDeviceToHost);
  check_contains(cudaGetErrorString(copied),
                 {"a copy of 128 bytes reads beyond a block of 128 bytes of device 0, from 8 bytes into it"});
  static_cast<void>(cudaGetLastError());
}

TEST_CASE("memory that was freed, or is another device's, is out of bounds") {
  int* freed = nullptr;
  require(cudaMalloc(&freed, 32 * sizeof(int)));
  require(cudaMemset(freed, 0, 32 * sizeof(int)));
  require(cudaFree(freed));
  const values<int> to(32);
  check_contains(fault_of([&] { copy_one<<<1, 32>>>(freed, to.data()); }), {"out of bounds", "freed"});

  emulator::set_device_count(2);
  const values<int> there(std::vector<int>(32, 1));
  require(cudaSetDevice(1));
  {
    const values<int> here(32);
    check_contains(fault_of([&] { copy_one<<<1, 32>>>(there.data(), here.data()); }),
                   {"out of bounds", "device 0", "for a kernel of device 1"});
  }
  require(cudaSetDevice(0));
  emulator::set_device_count(1);
}

TEST_CASE("a load that is not aligned is named") {
  const values<int> from(std::vector<int>(64, 1)), to(32);
  const auto* const odd = reinterpret_cast<const int*>(reinterpret_cast<const char*>(from.data()) + 2);
  check_contains(fault_of([&] { copy_one<<<1, 32>>>(odd, to.data()); }),
                 {"a read of 4 bytes is not aligned", "ld.global"});
}

TEST_CASE("a read of memory that nothing has written is named, in shared memory too") {
  const values<int> from(32), to(32);
  check_contains(fault_of([&] { copy_one<<<1, 32>>>(from.data(), to.data()); }),
                 {"memory that was never written"});
  check_contains(fault_of([&] { read_unwritten_shared<<<1, 32>>>(to.data()); }),
                 {"is of shared memory that was never written", "thread (5, 0, 0)"});
  check_contains(fault_of([&] { read_behind_shared<<<1, 32>>>(to.data(), 32); }),
                 {"a read of 4 bytes is out of bounds of shared memory"});
}

TEST_CASE(
    "in kernels of Thrust and CUB, shared memory that was never written is poison, as what they discard is") {
  const values<int> from(32), to(32);
  thrust::read_unwritten_shared<<<1, 32>>>(to.data());
  std::vector<int> expected(32, 1);
  expected[5] = -1;
  CHECK(to.to_host() == expected);
  check_contains(fault_of([&] { thrust::read_unwritten<<<1, 32>>>(from.data(), to.data()); }),
                 {"memory that was never written"});
}

TEST_CASE("a barrier that not all threads reach is named") {
  const values<int> to(64);
  check_contains(
      fault_of([&] { wait_for_half<<<1, 64>>>(to.data()); }),
      {"waits at a barrier that 32 of 64 threads of the block never reach", "wait_for_half", "bar"});
  check_contains(fault_of([&] { wait_at_two_places<<<1, 64>>>(to.data()); }),
                 {"waits at this barrier while others wait at"});
}

TEST_CASE("a shuffle from a lane that has ended is named") {
  const values<int> to(32);
  check_contains(
      fault_of([&] { shuffle_by_half<<<1, 32>>>(to.data()); }),
      {"takes the value of lane 16, which does not take part", "thread (15, 0, 0)", "shfl.sync.down"});
}

TEST_CASE("a division by zero is named") {
  const values<int> to(32);
  check_contains(fault_of([&] { divide<<<1, 32>>>(to.data(), 9); }),
                 {"divides an integer by zero", "thread (9, 0, 0)", "div"});
}

TEST_CASE("a kernel that never ends is named") {
  const values<int> flag(std::vector<int>(1, 0));
  emulator::set_patience(1);
  check_contains(fault_of([&] { wait_for_ever<<<1, 32>>>(flag.data()); }),
                 {"runs for more than 1 s", "wait_for_ever"});
  emulator::set_patience(120);
}

TEST_CASE("after a fault every call fails with its sentence") {
  const values<int> from(32), to(32);
  copy_one<<<1, 32>>>(from.data(), to.data());
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  const cudaError_t code = cudaStreamSynchronize(nullptr);
  CHECK(code == cudaErrorLaunchFailure);
  check_contains(cudaGetErrorString(code), {"never written", "copy_one"});
  static_cast<void>(cudaGetLastError());
  CHECK(!emulator::take_failure().empty());
}

TEST_CASE("kernels print, and assert") {
  std::fflush(stdout);
  const int terminal = ::dup(1);
  std::FILE* const file = std::tmpfile();
  ::dup2(::fileno(file), 1);
  print_and_assert<<<2, 32>>>(1);
  const cudaError_t code = cudaDeviceSynchronize();
  std::fflush(stdout);
  ::dup2(terminal, 1);
  ::close(terminal);
  CHECK(code == cudaSuccess);
  char text[200] = {};
  std::rewind(file);
  CHECK(std::fread(text, 1, sizeof text - 1, file) > 0);
  std::fclose(file);
  CHECK(std::string(text) == "block 0 of all: 1.50 1099511627776\nblock 1 of all: 1.50 1099511627776\n");
  check_contains(fault_of([] { print_and_assert<<<1, 64>>>(-1); }),
                 {"fails the assertion 'n >= 0' of", "emulator/faults.cu:"});
}

TEST_CASE("kernels share constants and variables with the host") {
  const values<int> to(8);
  use_variables<<<1, 8>>>(to.data());
  CHECK(to.to_host() == std::vector<int>{2, 3, 5, 7, 2, 3, 5, 7});
  int sum = 0;
  require(cudaMemcpyFromSymbol(&sum, counter, sizeof sum));
  CHECK(sum == 40 + 2 * (2 + 3 + 5 + 7));
  const int others[] = {1, 1, 1, 1};
  require(cudaMemcpyToSymbol(table, others, sizeof others));
  use_variables<<<1, 8>>>(to.data());
  CHECK(to.to_host() == std::vector<int>(8, 1));
}

TEST_CASE("blocks see the elements of a vector of 8 or 16 bytes at once, as CUB's look-back needs it") {
  const values<uint4> four(std::vector<uint4>(32));
  const values<uint2> two(std::vector<uint2>(32));
  const values<unsigned> torn(std::vector<unsigned>(2));
  publish<<<8, 32>>>(four.data(), two.data(), 300'000, torn.data());
  for (const unsigned count : torn.to_host()) CHECK(count == 0);
}

TEST_CASE("kernels call functions that are not inlined, with structures") {
  const values<double> to(32);
  call_functions<<<1, 32>>>(to.data());
  const std::vector<double> found = to.to_host();
  for (int t = 0; t < 32; ++t) {
    const int sum = t % 2 == 0 ? 1 : 1 + t * (t - 1) / 2;
    const double product = t % 2 == 0 ? 2.0 : 2.0 * t;
    CHECK(found[static_cast<std::size_t>(t)] == sum + 3 + 100 * (product * 3));
  }
}

TEST_CASE("a launch gives shared memory, and no more than there is") {
  const values<int> to(48);
  reverse_in_dynamic_shared<<<1, 48, 48 * sizeof(int)>>>(to.data());
  const std::vector<int> found = to.to_host();
  for (int t = 0; t < 48; ++t) CHECK(found[static_cast<std::size_t>(t)] == 47 - t);
  check_contains(fault_of([&] { reverse_in_dynamic_shared<<<1, 48, 40 * sizeof(int)>>>(to.data()); }),
                 {"out of bounds of shared memory"});
  check_contains(refusal_of([&] { reverse_in_dynamic_shared<<<1, 48, 100 << 10>>>(to.data()); }),
                 {"bytes of shared memory"});
  check_contains(refusal_of([&] { reverse_in_dynamic_shared<<<1, 2000>>>(to.data()); }),
                 {"blocks of (2000, 1, 1) threads"});
}

TEST_CASE("the sentence of a call that failed stays until another one fails") {
  const values<int> to(32);
  reverse_in_dynamic_shared<<<1, 2000>>>(to.data());
  const cudaError_t launched = cudaGetLastError();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  check_contains(cudaGetErrorString(launched),
                 {"reverse_in_dynamic_shared", "blocks of (2000, 1, 1) threads"});
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  CHECK(std::string(cudaGetErrorString(cudaGetLastError())) == "invalid device ordinal");
  CHECK(std::string(cudaGetErrorString(launched)) == "invalid configuration argument");
}

TEST_CASE("what the emulator does not know is refused at the launch, by kernel, line and instruction") {
  const values<int> to(32);
  check_contains(refusal_of([&] { recurse<<<1, 32>>>(to.data()); }), {"recurse(int*)", "line ", "fibonacci"});
  const values<unsigned> sums(32);
  check_contains(refusal_of([&] { add_with_carry<<<1, 32>>>(sums.data()); }),
                 {"add_with_carry(unsigned int*)", "line ", "add.cc.u32"});
}
