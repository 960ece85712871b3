// SPDX-License-Identifier: Apache-2.0
// What uses the operating system, with what POSIX has alone.
#include <array>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>

#include "partita/comm/cores.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/unpacked_size.hpp"
#include "partita/memory/large_pages.hpp"
#include "partita/memory/mapped_store.hpp"

using namespace partita;

TEST_CASE("POSIX alone: threads may use all cores, and are not bound") {
  const comm::core_set all = comm::usable_cores();
  CHECK(comm::count(all) == static_cast<int>(std::thread::hardware_concurrency()));
  const comm::bound_to scope(comm::share_of(all, 0, 2));
  CHECK(comm::usable_cores() == all);
}

TEST_CASE("POSIX alone: blocks of far memory keep what is written to them, and are used again") {
  const std::size_t page = std::size_t{1} << 16;
  mapped_store store(std::filesystem::temp_directory_path());
  auto* const a = static_cast<unsigned char*>(store.allocate(page));
  auto* const b = static_cast<unsigned char*>(store.allocate(4 * page));
  for (std::size_t k = 0; k < page; ++k) a[k] = 1;
  for (std::size_t k = 0; k < 4 * page; ++k) b[k] = static_cast<unsigned char>(k % 251);
  memory::ask_for_large_pages(b, 4 * page);
  store.expect(b, 4 * page);
  store.forget(b, 4 * page);
  store.release(a, page);
  CHECK(store.allocate(page) == a);
  bool same = true;
  for (std::size_t k = 0; k < 4 * page; ++k) same = same && b[k] == k % 251;
  CHECK(same);
  CHECK(store.peak() == 5 * page);
  store.release(a, page);
  store.release(b, 4 * page);
  CHECK_THROWS_WITH_AS(mapped_store("/no such folder"),
                       "no scratch file can be made in the folder /no such folder: No such file or directory",
                       device_error);
}

TEST_CASE("POSIX alone: a mapped file that changes is noticed, and what is unpacked has a limit") {
  const auto path = std::filesystem::temp_directory_path() / ("posix_only_" + std::to_string(::getpid()));
  std::ofstream(path) << "0123456789";
  {
    const auto file =
        io::detail::watch(std::make_shared<io::detail::descriptor>(::open(path.c_str(), O_RDONLY)), path);
    CHECK_FALSE(io::changed_file().has_value());
    std::ofstream(path, std::ios::app) << "more";
    CHECK(io::changed_file() == path.string());
  }
  std::filesystem::remove(path);
  CHECK(io::available_memory() > 0);
  CHECK(io::available_memory() < std::numeric_limits<std::size_t>::max());
}
