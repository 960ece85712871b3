// SPDX-License-Identifier: Apache-2.0
#include "../control.hpp"

#include <map>

#include "kernels.hpp"
#include "machine.hpp"

namespace emulator {

namespace {

auto locked(auto act) {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  return act(m);
}

}  // namespace

std::uint64_t calls(const std::string& name) {
  return locked([&](machine& m) { return m.calls(name); });
}

counters count() {
  return locked([](machine& m) {
    counters c;
    c.device_synchronisations = m.calls("cudaDeviceSynchronize");
    for (const char* name : {"cudaStreamSynchronize", "cudaEventSynchronize", "a pageable copy"})
      c.stream_synchronisations += m.calls(name);
    for (const char* name : {"cudaMalloc", "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaMallocHost"})
      c.allocations += m.calls(name);
    for (const char* name : {"a kernel's launch", "cublasLtMatmul", "cusparseSpMM"})
      c.launches += m.calls(name);
    return c;
  });
}

void make_fail(const std::string& name, cudaError_t code, int successes_before) {
  locked([&](machine& m) { m.plan_failure(name, code, successes_before); });
}

std::string take_failure() {
  return locked([](machine& m) {
    m.failure = cudaSuccess;
    return std::exchange(m.failure_text, {});
  });
}

void set_device_count(int devices) {
  locked([&](machine& m) { m.devices = devices; });
}
void set_device_memory(std::size_t bytes) {
  locked([&](machine& m) { m.arena.set_capacity(bytes); });
}
std::size_t bytes_in_use() {
  return locked([](machine& m) { return m.arena.in_use(); });
}

void look_for_races(bool on) {
  locked([&](machine& m) {
    m.run_everything();
    m.races.enable(on);
  });
}
void set_patience(int seconds) {
  locked([&](machine& m) { m.patience = std::chrono::seconds(seconds); });
}

std::map<std::string, kernel_cost> kernel_costs() {
  return locked([](machine&) {
    std::map<std::string, kernel_cost> costs;
    for (const auto& [name, a] : kernel_accounts())
      costs[name] = {a.launches,
                     a.threads,
                     a.spent.instructions,
                     a.spent.warp_instructions,
                     a.spent.moved.load_sectors,
                     a.spent.moved.store_sectors,
                     a.spent.distinct_sectors,
                     a.spent.moved.loads,
                     a.spent.moved.wide_loads};
    return costs;
  });
}

void look_at_sectors(bool on) {
  locked([&](machine& m) {
    m.run_everything();
    count_sectors(on);
  });
}

opened_arena::opened_arena() {
  locked([](machine& m) { m.arena.open(); });
}
opened_arena::~opened_arena() {
  locked([](machine& m) { m.arena.close(); });
}

cudaError_t enqueue(cudaStream_t s, std::function<void()> work) {
  return enqueue_work(s, "emulator::enqueue", std::move(work));
}

}  // namespace emulator
