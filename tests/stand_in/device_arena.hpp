#pragma once
// Memory of the stand-in's devices: a stretch of addresses that nobody may touch except while work of a
// stream runs, so that a host which reads or writes device memory dies by SIGSEGV.
//
// What this cannot show: where several threads are ranks, the stretch is open to all of them while the work
// of one runs, so only some strays are caught; all devices share one stretch, so one device may read
// another's memory; reading behind a block is not caught, only that it is poison.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <sys/mman.h>

namespace stand_in {

/// Blocks of 256-byte aligned memory. What is fresh or freed is poison: bytes 0xFF, which are NaN and -1.
class device_arena {
 public:
  static constexpr std::size_t capacity = std::size_t{4} << 30;

  device_arena()
      : base_(static_cast<unsigned char*>(
            ::mmap(nullptr, capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    free_.emplace(0, capacity);
  }
  device_arena(const device_arena&) = delete;
  device_arena& operator=(const device_arena&) = delete;
  ~device_arena() { ::munmap(base_, capacity); }

  /// A block for `bytes`, behind which lies a margin; nullptr when there is no room. Poison it before use.
  void* allocate(std::size_t bytes, int device) {
    const std::size_t room = (bytes + margin + alignment - 1) / alignment * alignment;
    for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
      const auto [offset, length] = *gap;
      if (length < room) continue;
      free_.erase(gap);
      if (length > room) free_.emplace(offset + room, length - room);
      blocks_.emplace(offset, block{bytes, room, device, true});
      in_use_ += bytes;
      grow(offset + room);
      return base_ + offset;
    }
    return nullptr;
  }
  /// Fills a block and its margin. The arena must be open.
  void poison(void* memory) {
    const block& b = blocks_.at(offset_of(memory));
    std::memset(memory, 0xFF, b.room);
  }
  /// From now on no call may name the block; work given earlier may still use it.
  bool retire(void* memory) {
    const auto found = contains(memory) ? blocks_.find(offset_of(memory)) : blocks_.end();
    if (found == blocks_.end() || !found->second.alive) return false;
    found->second.alive = false;
    in_use_ -= found->second.bytes;
    return true;
  }
  /// Gives a retired block back. The arena must be open. Ends the program when the margin was written.
  void release(void* memory) {
    const auto found = blocks_.find(offset_of(memory));
    auto [offset, b] = *found;
    for (std::size_t i = b.bytes; i < b.room; ++i)
      if (base_[offset + i] != 0xFF) {
        std::fprintf(stderr, "stand-in: device memory was written %zu bytes behind a block of %zu bytes\n",
                     i - b.bytes, b.bytes);
        std::abort();
      }
    poison(memory);
    blocks_.erase(found);
    give_back(offset, b.room);
    shrink();
  }

  bool contains(const void* p) const {
    const auto at = reinterpret_cast<std::uintptr_t>(p), begin = reinterpret_cast<std::uintptr_t>(base_);
    return at >= begin && at < begin + capacity;
  }
  /// Whether [p, p + bytes) lies within one block that may be used; if so, its device.
  bool covers(const void* p, std::size_t bytes, int* device = nullptr) const {
    if (!contains(p)) return false;
    auto next = blocks_.upper_bound(offset_of(p));
    if (next == blocks_.begin()) return false;
    const auto& [begin, b] = *--next;
    if (device != nullptr) *device = b.device;
    return b.alive && offset_of(p) + bytes <= begin + b.bytes;
  }
  std::size_t in_use() const { return in_use_; }

  void open() {
    if (opened_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    if (--opened_ == 0) protect(PROT_NONE);
  }
  bool is_open() const { return opened_ > 0; }

 private:
  static constexpr std::size_t alignment = 256, margin = 256;
  static constexpr std::size_t page = std::size_t{1} << 16, slack = 16 * page;

  struct block {
    std::size_t bytes, room;
    int device;
    bool alive;
  };

  std::size_t offset_of(const void* p) const {
    return static_cast<std::size_t>(static_cast<const unsigned char*>(p) - base_);
  }
  /// Only what was ever used is opened: the rest costs nothing.
  void grow(std::size_t end) {
    end = (end + page - 1) / page * page;
    if (end <= reached_) return;
    reached_ = end;
    if (is_open()) protect(PROT_READ | PROT_WRITE);
  }
  /// What lies behind the last block is closed for good, and its pages are given back: opening and closing
  /// takes time for every page.
  void shrink() {
    const auto [begin, length] = *free_.rbegin();
    const std::size_t end = (begin + page - 1) / page * page;
    if (begin + length != capacity || end + slack >= reached_) return;
    ::mprotect(base_ + end, reached_ - end, PROT_NONE);
    ::madvise(base_ + end, reached_ - end, MADV_DONTNEED);
    reached_ = end;
  }
  void protect(int how) {
    if (reached_ > 0 && ::mprotect(base_, reached_, how) != 0) throw std::bad_alloc();
  }
  void give_back(std::size_t offset, std::size_t length) {
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + length == next->first) {
      length += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin())
      if (const auto before = std::prev(next); before->first + before->second == offset) {
        before->second += length;
        return;
      }
    free_.emplace(offset, length);
  }

  unsigned char* base_;
  std::map<std::size_t, block> blocks_;      ///< by offset
  std::map<std::size_t, std::size_t> free_;  ///< lengths of gaps, by offset
  std::size_t reached_ = 0;
  std::size_t in_use_ = 0;
  int opened_ = 0;
};

}  // namespace stand_in
