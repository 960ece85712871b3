// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of the emulated devices: a stretch of addresses that nobody may touch, so that a host which reads or
// writes device memory dies by SIGSEGV. The emulator reaches the same memory by other addresses. Beside every
// byte lies a mark: 1 when it was written.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace emulator {

/// What the pool of an allocation holds back for its own next ones.
struct memory_pool {
  int device = 0;
  std::size_t used = 0, reserved = 0;
  std::size_t threshold = 0;  ///< so much may stay reserved when nobody uses it
};

/// Blocks of 256-byte aligned memory. What is fresh or freed is poison: bytes 0xFF, which are NaN and -1.
class device_arena {
 public:
  struct block {
    std::size_t bytes = 0, room = 0;
    int device = 0;
    memory_pool* pool = nullptr;  ///< null for memory of its own
    bool alive = false;           ///< calls may name it
  };

  device_arena();
  device_arena(const device_arena&) = delete;
  device_arena& operator=(const device_arena&) = delete;
  ~device_arena();

  /// A block, behind which lies a margin; nullptr when the device has no room. Poison it before use. The
  /// address is the program's: reached() says where the emulator finds it.
  void* allocate(std::size_t bytes, int device, memory_pool* pool);
  /// Fills a block and its margin, and forgets that it was written.
  void poison(void* memory);
  /// From now on no call may name the block; work given earlier may still use it.
  bool retire(void* memory);
  /// Gives a retired block back.
  void release(void* memory);
  /// Pools give back what they hold above their thresholds, or above `keep`.
  void trim(memory_pool& pool, std::size_t keep);

  bool contains(const void* p) const;
  /// The block around p, retired ones too, and its offset from p; null where there is none.
  const block* find(const void* p, std::size_t* offset = nullptr) const;
  /// Whether [p, p + bytes) lies within one block that calls may name.
  bool covers(const void* p, std::size_t bytes, int* device = nullptr) const;
  /// Where p lies, in words.
  std::string describe(const void* p) const;
  /// What an access that begins at p and does not end in its block does: "reads beyond a block of 40 bytes".
  std::string describe_overrun(const void* p, bool writes) const;

  /// Where the emulator finds what the program has at p; p itself where that is no memory of a device.
  template <class T>
  T* reached(T* p) const {
    if (!contains(p)) return p;
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) + alias_offset());
  }
  std::uint64_t alias_offset() const { return static_cast<std::uint64_t>(alias_ - base_); }
  std::uint8_t* marks_at(const void* p) const { return marks_ + offset_of(p); }
  /// Bytes of blocks that calls may name.
  std::size_t in_use() const { return in_use_; }
  std::size_t capacity() const { return capacity_; }
  /// How much each device has; what is allocated stays.
  void set_capacity(std::size_t bytes) { capacity_ = bytes; }
  std::size_t taken(int device) const;

  /// Lets the program touch it, too, until it is closed as often.
  void open();
  void close();

 private:
  std::size_t offset_of(const void* p) const;
  bool reserve(std::size_t bytes, int device, memory_pool* pool);
  void grow(std::size_t end);
  void shrink();
  void protect(int how);
  void give_back(std::size_t offset, std::size_t length);

  std::size_t capacity_;
  int file_;
  unsigned char *base_, *alias_;
  std::uint8_t* marks_;
  std::map<std::size_t, block> blocks_;                      ///< by offset
  std::map<std::size_t, std::size_t> free_;                  ///< lengths of gaps, by offset
  std::deque<std::pair<std::size_t, std::size_t>> resting_;  ///< freed gaps, not lent again for a while
  std::size_t resting_bytes_ = 0;
  std::map<int, std::size_t> taken_;  ///< by device, with what pools hold
  std::size_t used_ = 0;              ///< of the stretch, ever
  std::size_t in_use_ = 0;
  int opened_ = 0;
};

}  // namespace emulator
