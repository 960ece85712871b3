// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Far memory of hosts: a nameless scratch file, mapped into the address space.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "partita/base/error.hpp"
#include "partita/base/system.hpp"
#include "partita/memory/far_store.hpp"

namespace partita::on_host {

/// A far store in a file of a folder. The file has no name, so that it goes away with the process however
/// that ends. Blocks are reserved on the disk when they are allocated. A thread keeps what is resident of the
/// process's mapped files near a bound: pages beyond it are handed back to the page cache of the kernel.
class mapped_store : public far_store {
 public:
  /// `resident`: bytes of mapped files that may stay resident. Throws device_error, naming the folder, if no
  /// file can be made there.
  explicit mapped_store(std::filesystem::path folder, std::size_t resident = std::size_t{128} << 20)
      : folder_(std::move(folder)), resident_(resident), file_(base::system::unnamed_file(folder_.native())) {
    if (file_ < 0)
      throw device_error("no scratch file can be made in the folder " + folder_.string() + ": " +
                         std::generic_category().message(errno));
    for (space_ = std::size_t{1} << 44; space_ >= std::size_t{1} << 30; space_ /= 2) {
      void* const found =
          ::mmap(nullptr, space_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (found == MAP_FAILED) continue;
      begin_ = static_cast<std::byte*>(found);
      break;
    }
    if (begin_ != nullptr && space_ < std::size_t{1} << 44) {  // of a limited space others need some, too
      space_ /= 2;
      ::munmap(begin_ + space_, space_);
    }
    if (begin_ == nullptr) {
      ::close(file_);
      throw device_error("a far store needs a GiB of address space");
    }
    try {
      free_.emplace(0, space_);
      trimmer_ = std::thread([this] { trim(); });
    } catch (...) {
      ::munmap(begin_, space_);
      ::close(file_);
      throw;
    }
  }
  mapped_store(const mapped_store&) = delete;
  mapped_store& operator=(const mapped_store&) = delete;
  ~mapped_store() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    trimmer_.join();
    ::munmap(begin_, space_);
    ::close(file_);
  }

  void* allocate(std::size_t bytes) override {
    const std::size_t size = whole_pages(bytes);
    const std::lock_guard lock(mutex_);
    const std::size_t at = take(size);
    const int code = reserve(at, size);
    if (code != 0) {
      punch(at, size);
      give(at);
      refuse(bytes, code);
    }
    void* const memory =
        ::mmap(begin_ + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, offset_of(at));
    if (memory == MAP_FAILED) {
      const int why = errno;
      punch(at, size);
      give(at);
      refuse(bytes, why);
    }
    end_ = std::max(end_, at + size);
    used_ += size;
    most_used_ = std::max(most_used_, used_);
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    const std::size_t size = whole_pages(bytes), at = offset(memory);
    const std::lock_guard lock(mutex_);
    ::mmap(memory, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    punch(at, size);
    give(at);
    used_ -= size;
  }
  bool contains(const void* address) const override {
    const auto* const a = static_cast<const std::byte*>(address);
    return !std::less<>()(a, begin_) && std::less<>()(a, begin_ + space_);
  }

  /// The kernel reads what it does not have in its cache, without a thread of ours: as many reads at a time
  /// as the disk takes.
  void expect(const void* memory, std::size_t bytes) noexcept override {
    static const auto least = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t at = offset(memory), begin = at / least * least;
    ::madvise(begin_ + begin, at + bytes - begin, MADV_WILLNEED);
  }
  /// Where the bound is not near, what is resident may as well stay.
  void forget(const void* memory, std::size_t bytes) noexcept override {
    const std::size_t begin = whole_pages(offset(memory)), end = (offset(memory) + bytes) / page * page;
    if (begin < end && resident_bytes() > resident_ / 2)
      ::madvise(begin_ + begin, end - begin, MADV_DONTNEED);
  }

  const std::filesystem::path& folder() const { return folder_; }
  /// The largest number of bytes that were allocated at a time.
  std::size_t peak() const {
    const std::lock_guard lock(mutex_);
    return most_used_;
  }

 private:
  static constexpr std::size_t page = std::size_t{1} << 16;

  static std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }
  static off_t offset_of(std::size_t bytes) { return static_cast<off_t>(bytes); }
  std::size_t offset(const void* memory) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(memory) - begin_);
  }

  [[noreturn]] void refuse(std::size_t bytes, int why) const {
    std::error_code none;
    const auto space = std::filesystem::space(folder_, none);
    const auto left = none ? 0 : static_cast<std::size_t>(space.available);
    if (why == ENOSPC && bytes > left)
      base::throw_error<device_error>(
          {"the folder ", folder_.string(), " for far memory is full: a block of ", bytes, " bytes needs ",
           bytes - left, " bytes more than are free, beside blocks of ", used_, " bytes"});
    base::throw_error<device_error>({"a block of ", bytes, " bytes cannot be made in the folder ",
                                     folder_.string(), " for far memory, beside blocks of ", used_,
                                     " bytes: ", std::generic_category().message(why)});
  }

  /// The first free range that is large enough.
  std::size_t take(std::size_t size) {
    for (auto r = free_.begin(); r != free_.end(); ++r) {
      const auto [at, room] = *r;
      if (room < size) continue;
      if (room > size) taken_.emplace(at, size);  // first, since there may be no memory for it
      auto range = free_.extract(r);
      if (room == size) {
        taken_.insert(std::move(range));
        return at;
      }
      range.key() = at + size;
      range.mapped() = room - size;
      free_.insert(std::move(range));
      return at;
    }
    refuse(size, ENOMEM);
  }
  /// A range that was taken, whose node serves again.
  void give(std::size_t at) noexcept {
    auto range = taken_.extract(at);
    auto next = free_.lower_bound(at);
    if (next != free_.end() && at + range.mapped() == next->first) {
      range.mapped() += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin())
      if (const auto before = std::prev(next); before->first + before->second == at) {
        before->second += range.mapped();
        return;
      }
    free_.insert(std::move(range));
  }
  /// Reserves blocks of the disk, where its file system can. More than are free are not asked for: fallocate
  /// takes what there is before it fails, and so would fill the disk for all others for a while; to write
  /// blocks, as posix_fallocate does where they cannot be reserved, would do so, too. The code of the error,
  /// or 0.
  int reserve(std::size_t at, std::size_t size) const {
    std::error_code unknown;
    if (const auto space = std::filesystem::space(folder_, unknown); !unknown && space.available < size)
      return ENOSPC;
    return base::system::reserve_blocks(file_, offset_of(end_), offset_of(at), offset_of(size));
  }
  void punch(std::size_t at, std::size_t size) const noexcept {
    base::system::free_blocks(file_, offset_of(at), offset_of(size));
  }

  static std::size_t resident_bytes() { return base::system::resident_file_bytes().value_or(0); }
  void trim() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(2), [&] { return ends_; }))
      if (end_ > 0 && resident_bytes() > resident_) ::madvise(begin_, end_, MADV_DONTNEED);
  }

  std::filesystem::path folder_;
  std::size_t resident_;
  int file_;
  std::size_t space_ = 0;
  std::byte* begin_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_, taken_;  ///< offsets and sizes of the ranges
  std::size_t end_ = 0, used_ = 0, most_used_ = 0;
  bool ends_ = false;
  std::condition_variable wake_;
  std::thread trimmer_;
};

}  // namespace partita::on_host

namespace partita {

using on_host::mapped_store;

}  // namespace partita
