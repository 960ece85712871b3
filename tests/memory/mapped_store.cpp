// SPDX-License-Identifier: Apache-2.0
// The scratch file of far memory.
#include "partita/memory/mapped_store.hpp"

#include <cstddef>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "support/ranks.hpp"

namespace test_mapped_store {

using namespace partita;
using test_support::expect_error;

std::filesystem::path scratch() { return std::filesystem::temp_directory_path(); }

TEST_CASE("far memory: released blocks are used again, and neighbours become one") {
  mapped_store store(scratch());
  const std::size_t page = std::size_t{1} << 16;
  void* const a = store.allocate(page);
  void* const b = store.allocate(page);
  void* const c = store.allocate(page);
  store.release(a, page);
  store.release(b, page);
  CHECK(store.allocate(2 * page) == a);
  store.release(a, 2 * page);
  store.release(c, page);
  CHECK(store.peak() == 3 * page);
}

TEST_CASE("far memory: a folder that is not there, and a disk that is too small, are named") {
  expect_error<device_error>(
      "no scratch file can be made in the folder /nowhere/at/all: No such file or directory",
      [] { mapped_store("/nowhere/at/all"); });
  mapped_store store(scratch());
  try {
    store.allocate(std::size_t{1} << 43);
    FAIL("a disk of 8 TiB");
  } catch (const device_error& e) {
    const std::string said = e.what();
    CHECK(said.find("the folder " + scratch().string()) != std::string::npos);
    CHECK(said.find("8796093022208 bytes") != std::string::npos);
  }
}

TEST_CASE("far memory: no name is left in the folder while a store exists") {
  const auto folder = scratch() / "partita_far_test";
  std::filesystem::create_directories(folder);
  {
    mapped_store store(folder);
    static_cast<int*>(store.allocate(1 << 20))[5] = 1;
    CHECK(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
}

}  // namespace test_mapped_store
