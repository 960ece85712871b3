// SPDX-License-Identifier: Apache-2.0
// Far memory, where there is no memory for its lists.
#include <doctest/doctest.h>

#include "partita/memory/mapped_store.hpp"
#include "support/failing_memory.hpp"

namespace test_memory_no_memory {

using namespace partita;
using namespace test_support;

constexpr std::size_t page = std::size_t{1} << 16;

struct block {
  mapped_store& store;
  std::size_t bytes;
  void* memory = store.allocate(bytes);
  ~block() { store.release(memory, bytes); }
};

TEST_CASE("far memory: blocks are refused where there is no memory for a list, and released without any") {
  mapped_store store(std::filesystem::temp_directory_path());
  void* const begin = block{store, page}.memory;
  const long allocations = fail_every_allocation([&](long number) {
    const failing_allocation one(number);
    try {
      const block a{store, page}, b{store, 2 * page};
      { const block c{store, page}; }
      const block d{store, page}, e{store, page};
    } catch (const std::bad_alloc&) {
    }
    return failing_allocation::has_failed();
  });
  CHECK(allocations >= 5);
  CHECK(block{store, 8 * page}.memory == begin);
  CHECK(store.peak() == 8 * page);
}

TEST_CASE("far memory: a store that cannot be made leaves no open file") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_files();
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const long allocations = fail_every_allocation([&](long number) {
    const failing_allocation one(number);
    try {
      const mapped_store store(folder);
    } catch (const std::bad_alloc&) {
    }
    return failing_allocation::has_failed();
  });
  CHECK(allocations >= 2);
  CHECK(open_files() == before);
}

}  // namespace test_memory_no_memory
