// SPDX-License-Identifier: Apache-2.0
#include "support/failing_memory.hpp"

#include <cstdlib>

namespace {

thread_local long allocations_left = -1;  ///< before the one that fails; none does where it is negative
thread_local bool one_has_failed = false;
thread_local partita::memory::memory_meter* refusing = nullptr;
thread_local long buffers_left = 0;

void* found(std::size_t bytes, std::size_t alignment) {
  if (allocations_left == 0) one_has_failed = true;
  if (allocations_left >= 0 && allocations_left-- == 0) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* found_or_thrown(std::size_t bytes, std::size_t alignment) {
  void* const memory = found(bytes == 0 ? 1 : bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace test_support {

failing_allocation::failing_allocation(long number) {
  one_has_failed = false;
  allocations_left = number;
}
failing_allocation::~failing_allocation() { allocations_left = -1; }
bool failing_allocation::has_failed() { return one_has_failed; }

failing_meter::failing_meter(partita::memory::memory_meter& meter, long number) {
  refusing = number > 0 ? &meter : nullptr;
  buffers_left = number;
  if (number == 0) meter.limit(0);
}
failing_meter::~failing_meter() { refusing = nullptr; }

}  // namespace test_support

void* operator new(std::size_t bytes) { return found_or_thrown(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return found_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return found(bytes == 0 ? 1 : bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
/// Of buffers, whose meter has counted this one before: with the last one that it has to count, the budget
/// is spent.
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  if (refusing != nullptr && --buffers_left == 0) refusing->limit(0);
  return found(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
