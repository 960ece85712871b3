// SPDX-License-Identifier: Apache-2.0
// The scratch file of far memory.
#include "partita/memory/mapped_store.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/ranks.hpp"
#include "support/sanitized.hpp"

namespace test_mapped_store {

using namespace test_support;

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

std::size_t resident_file_pages() {
  std::size_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

TEST_CASE("far memory: what is forgotten keeps its values, and is not resident") {
  const std::size_t bytes = std::size_t{32} << 20, pages = bytes / 4096;
  // a bound that is not reached, but by more than half
  mapped_store store(scratch(), (resident_file_pages() + pages) * 4096 / 2 * 3);
  auto* const a = static_cast<unsigned char*>(store.allocate(bytes));
  const auto value = [](std::size_t k) { return static_cast<unsigned char>(k % 251); };
  for (std::size_t k = 0; k < bytes; ++k) a[k] = value(k);
  const std::size_t before = resident_file_pages();
  store.forget(a + 100, bytes - 200);
  CHECK(resident_file_pages() + pages / 2 < before);
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < bytes; ++k) wrong += a[k] != value(k);
  CHECK(wrong == 0);
  store.forget(a, 100);  // no whole page
  store.release(a, bytes);
}

TEST_CASE("far memory: of a disk, the pages that are expected are read, and few others") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t pages = 512;
  mapped_store store(scratch());
  auto* const a = static_cast<unsigned char*>(store.allocate(pages * page));
  for (std::size_t k = 0; k < pages * page; ++k) a[k] = static_cast<unsigned char>(k % 251);
  const auto cached = [&] {
    std::vector<unsigned char> found(pages);
    REQUIRE(mincore(a, pages * page, found.data()) == 0);
    std::vector<std::size_t> of;
    for (std::size_t k = 0; k < pages; ++k)
      if ((found[k] & 1U) != 0) of.push_back(k);
    return of;
  };
  REQUIRE(msync(a, pages * page, MS_SYNC) == 0);
#ifdef MADV_PAGEOUT
  static_cast<void>(madvise(a, pages * page, MADV_PAGEOUT));
#endif
  if (cached().empty()) {  // not where files are memory, or the kernel keeps them
    store.expect(a + 7 * page + 100, 200);
    store.expect(a + 300 * page - 1, page + 2);
    const std::vector<std::size_t> wanted{7, 299, 300, 301};
    const auto has_all = [&] { return std::ranges::includes(cached(), wanted); };
    for (int k = 0; k < 5000 && !has_all(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(has_all());
    CHECK(cached().size() < pages / 4);  // a kernel may read what is near them, too
  }
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < pages * page; ++k) wrong += a[k] != static_cast<unsigned char>(k % 251);
  CHECK(wrong == 0);
  store.release(a, pages * page);
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

TEST_CASE("far memory: half of a limited address space is left to others") {
  if (sanitized) return;  // their shadow memory is terabytes of address space
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit three_more{pages * 4096 + (std::size_t{3} << 30), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &three_more) != 0) _exit(2);
    const mapped_store store(scratch());
    void* const others = mmap(nullptr, std::size_t{3} << 29, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _exit(others == MAP_FAILED ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
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
