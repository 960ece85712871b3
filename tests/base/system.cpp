// SPDX-License-Identifier: Apache-2.0
// What partita asks of the operating system, in both forms.
#include "partita/base/system.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "partita/base/processor.hpp"

namespace test_system {

using namespace partita::base;

std::string scratch() { return std::filesystem::temp_directory_path().string(); }

off_t blocks_of(int file) {
  struct stat status = {};
  REQUIRE(::fstat(file, &status) == 0);
  return status.st_blocks * 512;
}
off_t size_of(int file) {
  struct stat status = {};
  REQUIRE(::fstat(file, &status) == 0);
  return status.st_size;
}

TEST_CASE("a thread is bound to a core") {
  std::thread([] {
    const auto before = cores_of_thread();
    REQUIRE(before.has_value());
    std::size_t core = 8 * before->size() - 1;
    while (((*before)[core / 8] >> core % 8 & 1) == 0) --core;
    core_mask last{};
    last[core / 8] = static_cast<std::uint8_t>(1u << core % 8);
    CHECK(bind_thread(last));
    CHECK(cores_of_thread() == last);
    CHECK_FALSE(bind_thread({}));
    CHECK(bind_thread(*before));
    CHECK(cores_of_thread() == before);
  }).join();
}

TEST_CASE("free memory is what /proc/meminfo says, and at most what is installed") {
  std::size_t total = 0;
  std::string word;
  for (std::ifstream file("/proc/meminfo"); file >> word;)
    if (word == "MemTotal:" && file >> total) break;
  REQUIRE(on_posix::free_memory().has_value());
  CHECK(*on_posix::free_memory() >= std::size_t{1} << 20);
  REQUIRE(on_linux::free_memory().has_value());
  CHECK(*on_linux::free_memory() > std::size_t{1} << 20);
  CHECK(*on_linux::free_memory() <= total << 10);
  CHECK_FALSE(on_linux::detail::number_after("/proc/meminfo", "no such label:", 0).has_value());
  CHECK_FALSE(on_linux::detail::number_after("/no such file", "", 0).has_value());
}

TEST_CASE("peak memory grows by what is written, and stays") {
  const std::size_t before = on_linux::peak_resident_bytes(), bytes = before + (std::size_t{64} << 20);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  prefer_large_pages(memory, bytes);
  for (std::size_t k = 0; k < bytes; k += 4096) static_cast<char*>(memory)[k] = 1;
  CHECK(on_linux::peak_resident_bytes() >= bytes);
  CHECK(on_linux::peak_resident_bytes() > before);
  ::munmap(memory, bytes);
  CHECK(on_linux::peak_resident_bytes() >= bytes);
}

template <class Unnamed>
void check_unnamed(const Unnamed& unnamed) {
  const int file = unnamed(scratch());
  REQUIRE(file >= 0);
  CHECK(::write(file, "abc", 3) == 3);
  struct stat status = {};
  CHECK(::fstat(file, &status) == 0);
  CHECK(status.st_nlink == 0);
  ::close(file);
  errno = 0;
  CHECK(unnamed("/no such folder") == -1);
  CHECK(errno == ENOENT);
}

TEST_CASE("a file without a name has no link, and none is made in a folder that does not exist") {
  check_unnamed([](const std::string& folder) { return on_linux::unnamed_file(folder); });
  check_unnamed([](const std::string& folder) { return on_posix::unnamed_file(folder); });
}

TEST_CASE("blocks are reserved on Linux; POSIX makes the file longer, and never shorter") {
  const off_t n = off_t{1} << 20;
  const int a = on_linux::unnamed_file(scratch());
  REQUIRE(a >= 0);
  REQUIRE(on_linux::reserve_blocks(a, 0, n, n) == 0);
  CHECK(size_of(a) == 2 * n);
  CHECK(on_linux::reserve_blocks(a, 2 * n, 0, n) == 0);
  CHECK(size_of(a) == 2 * n);
  const off_t reserved = blocks_of(a);
  on_linux::free_blocks(a, 0, n);
  CHECK(size_of(a) == 2 * n);
  if (reserved > 0) CHECK(blocks_of(a) <= reserved - n);
  CHECK(on_linux::reserve_blocks(-1, 0, 0, n) == EBADF);
  ::close(a);

  const int b = on_posix::unnamed_file(scratch());
  REQUIRE(b >= 0);
  CHECK(on_posix::reserve_blocks(b, 0, n, n) == 0);
  CHECK(size_of(b) == 2 * n);
  CHECK(on_posix::reserve_blocks(b, 2 * n, 0, n) == 0);
  CHECK(size_of(b) == 2 * n);
  CHECK(blocks_of(b) <= 512);
  on_posix::free_blocks(b, 0, n);
  CHECK(on_posix::reserve_blocks(-1, 0, 0, n) != 0);
  ::close(b);
}

TEST_CASE("resident bytes of mapped files grow with the pages that are read") {
  const std::size_t bytes = std::size_t{16} << 20;
  const int file = on_linux::unnamed_file(scratch());
  REQUIRE(on_linux::reserve_blocks(file, 0, 0, static_cast<off_t>(bytes)) == 0);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  REQUIRE(memory != MAP_FAILED);
  const auto before = on_linux::resident_file_bytes();
  REQUIRE(before.has_value());
  for (std::size_t k = 0; k < bytes; k += 4096) static_cast<char*>(memory)[k] = 1;
  CHECK(*on_linux::resident_file_bytes() >= *before + bytes / 2);
  CHECK_FALSE(on_posix::resident_file_bytes().has_value());
  ::munmap(memory, bytes);
  ::close(file);
}

TEST_CASE("the time of a change, to the nanosecond") {
  const int file = on_linux::unnamed_file(scratch());
  REQUIRE(file >= 0);
  const std::timespec times[2] = {{1, 2}, {1000, 123456789}};
  REQUIRE(::futimens(file, times) == 0);
  struct stat status = {};
  REQUIRE(::fstat(file, &status) == 0);
  CHECK(on_posix::modification_time(status).tv_sec == 1000);
  CHECK(on_posix::modification_time(status).tv_nsec == 123456789);
  ::close(file);
}

TEST_CASE("the descriptor of a process can be read once it has ended") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char c = 0;
    ::close(pipe[1]);
    static_cast<void>(::read(pipe[0], &c, 1));
    ::_exit(0);
  }
  REQUIRE(child > 0);
  ::close(pipe[0]);
  pollfd watched{on_linux::descriptor_of_process(child), POLLIN, 0};
  if (watched.fd >= 0) {  // Linux 5.3
    CHECK(::poll(&watched, 1, 0) == 0);
    ::close(pipe[1]);
    CHECK(::poll(&watched, 1, -1) == 1);
    ::close(watched.fd);
  } else {
    CHECK((errno == ENOSYS || errno == EPERM));
    ::close(pipe[1]);
  }
  CHECK(::waitpid(child, nullptr, 0) == child);
  CHECK(on_linux::process_namespace() != 0);
  CHECK(on_posix::process_namespace() == 0);
  CHECK(on_posix::descriptor_of_process(::getpid()) == -1);
}

}  // namespace test_system
