// SPDX-License-Identifier: Apache-2.0
// Counts what a reader allocates.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "fuzz/readers.hpp"

namespace {

std::atomic<std::size_t> live = 0, most_live = 0, largest = 0;

void raise_to(std::atomic<std::size_t>& most, std::size_t value) {
  for (std::size_t before = most; before < value && !most.compare_exchange_weak(before, value);) {
  }
}

void* counted(std::size_t size) noexcept {
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (block != nullptr) {
    const std::size_t usable = malloc_usable_size(block);
    raise_to(largest, size);
    raise_to(most_live, live += usable);
  }
  return block;
}

void* counted_or_throw(std::size_t size) {
  if (void* const block = counted(size)) return block;
  throw std::bad_alloc();
}

void discard(void* block) noexcept {
  if (block != nullptr) live -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* block) noexcept { discard(block); }
void operator delete[](void* block) noexcept { discard(block); }
void operator delete(void* block, std::size_t) noexcept { discard(block); }
void operator delete[](void* block, std::size_t) noexcept { discard(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { discard(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { discard(block); }

namespace fuzz {

void check(target* read, input bytes, std::size_t size) {
  const std::size_t before = live;
  most_live = before;
  largest = 0;
  read(bytes);
  const std::size_t together = most_live - before, most = 16 * size + (std::size_t{1} << 14);
  if (largest > most || together > 2 * most)
    throw std::logic_error("of " + std::to_string(bytes.size()) + " bytes, " + std::to_string(largest) +
                           " were made at once and " + std::to_string(together) + " together");
}

std::span<const named_target> targets() {
  constexpr auto as_it_is = [](std::size_t bytes) { return bytes; };
  constexpr auto unpacked = [](std::size_t bytes) { return 1032 * bytes + (std::size_t{1} << 20); };
  // A value of a symmetric array may be two bytes of text, and is two entries of 24: in the parts of several
  // threads, in what these become, and in what one thread has read.
  constexpr auto market = [](std::size_t bytes) { return 2 * bytes + bytes / 2; };
  static constexpr std::array<named_target, 14> all{{{"blocked", blocked, as_it_is},
                                                     {"checkpoint", checkpoint, as_it_is},
                                                     {"csv", csv, as_it_is},
                                                     {"dataset", dataset, as_it_is},
                                                     {"edge_list", edge_list, as_it_is},
                                                     {"gzip", gzip, unpacked},
                                                     {"matrix_market", matrix_market, market},
                                                     {"metis_graph", metis_graph, as_it_is},
                                                     {"npy", npy, as_it_is},
                                                     {"npy_file", npy_file, as_it_is},
                                                     {"npz", npz, unpacked},
                                                     {"ogb", ogb, unpacked},
                                                     {"parts", parts, as_it_is},
                                                     {"safetensors", safetensors, as_it_is}}};
  return all;
}

}  // namespace fuzz
