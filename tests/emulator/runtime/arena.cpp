// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace emulator {

namespace {

constexpr std::size_t stretch = std::size_t{64} << 30;  ///< of addresses: only what is used costs anything
constexpr std::size_t alignment = 256, margin = 256;
constexpr std::size_t page = std::size_t{1} << 16, slack = 16 * page;
constexpr std::size_t most_resting = std::size_t{4} << 20;

unsigned char* map(int protection, int sharing, int file) {
  void* const p = ::mmap(nullptr, stretch, protection, sharing | MAP_NORESERVE, file, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<unsigned char*>(p);
}
int make_file() {
  const int file = ::memfd_create("memory of emulated devices", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, stretch) != 0) throw std::bad_alloc();
  return file;
}

}  // namespace

device_arena::device_arena()
    : capacity_(std::size_t{4} << 30),
      file_(make_file()),
      base_(map(PROT_NONE, MAP_SHARED, file_)),
      alias_(map(PROT_READ | PROT_WRITE, MAP_SHARED, file_)),
      marks_(map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)) {
  free_.emplace(0, stretch);
}
device_arena::~device_arena() {
  for (void* const p : {static_cast<void*>(base_), static_cast<void*>(alias_), static_cast<void*>(marks_)})
    ::munmap(p, stretch);
  ::close(file_);
}

/// Whether the device has so much room, taking it; a pool first uses what it holds.
bool device_arena::reserve(std::size_t bytes, int device, memory_pool* pool) {
  std::size_t& taken = taken_[device];
  const std::size_t held = pool == nullptr ? 0 : pool->reserved - pool->used;
  const std::size_t more = bytes > held ? bytes - held : 0;
  if (taken + more > capacity_) return false;
  taken += more;
  if (pool != nullptr) {
    pool->reserved += more;
    pool->used += bytes;
  }
  return true;
}

void* device_arena::allocate(std::size_t bytes, int device, memory_pool* pool) {
  if (bytes > capacity_ || !reserve(bytes, device, pool)) return nullptr;
  const std::size_t room = (bytes + margin + alignment - 1) / alignment * alignment;
  for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
    const auto [offset, length] = *gap;
    if (length < room) continue;
    free_.erase(gap);
    if (length > room) free_.emplace(offset + room, length - room);
    blocks_.emplace(offset, block{bytes, room, device, pool, true});
    in_use_ += bytes;
    grow(offset + room);
    return base_ + offset;
  }
  return nullptr;
}

void device_arena::poison(void* memory) {
  const std::size_t room = blocks_.at(offset_of(memory)).room;
  std::memset(reached(memory), 0xFF, room);
  std::memset(marks_at(memory), 0, room);
}

bool device_arena::retire(void* memory) {
  const auto found = contains(memory) ? blocks_.find(offset_of(memory)) : blocks_.end();
  if (found == blocks_.end() || !found->second.alive) return false;
  found->second.alive = false;
  in_use_ -= found->second.bytes;
  return true;
}

void device_arena::release(void* memory) {
  poison(memory);
  const auto found = blocks_.find(offset_of(memory));
  const auto [offset, b] = *found;
  blocks_.erase(found);
  if (b.pool != nullptr) {
    b.pool->used -= b.bytes;
    trim(*b.pool, b.pool->threshold);
  } else {
    taken_[b.device] -= b.bytes;
  }
  resting_.emplace_back(offset, b.room);
  resting_bytes_ += b.room;
  while (resting_bytes_ > most_resting) {
    const auto [oldest, room] = resting_.front();
    resting_.pop_front();
    resting_bytes_ -= room;
    give_back(oldest, room);
  }
  shrink();
}

void device_arena::trim(memory_pool& pool, std::size_t keep) {
  const std::size_t stays = std::clamp(keep, pool.used, pool.reserved);
  taken_[pool.device] -= pool.reserved - stays;
  pool.reserved = stays;
}

std::size_t device_arena::taken(int device) const {
  const auto found = taken_.find(device);
  return found == taken_.end() ? 0 : found->second;
}

bool device_arena::contains(const void* p) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p), begin = reinterpret_cast<std::uintptr_t>(base_);
  return at >= begin && at < begin + stretch;
}

const device_arena::block* device_arena::find(const void* p, std::size_t* offset) const {
  if (!contains(p)) return nullptr;
  auto next = blocks_.upper_bound(offset_of(p));
  if (next == blocks_.begin()) return nullptr;
  const auto& [begin, b] = *--next;
  if (offset_of(p) >= begin + b.room) return nullptr;
  if (offset != nullptr) *offset = offset_of(p) - begin;
  return &b;
}

bool device_arena::covers(const void* p, std::size_t bytes, int* device) const {
  std::size_t offset = 0;
  const block* const b = find(p, &offset);
  if (b == nullptr) return false;
  if (device != nullptr) *device = b->device;
  return b->alive && offset + bytes <= b->bytes;
}

std::string device_arena::describe(const void* p) const {
  std::size_t offset = 0;
  if (!contains(p)) return "no memory of a device lies there";
  if (const block* const b = find(p, &offset); b != nullptr) {
    const std::string whole =
        "a block of " + std::to_string(b->bytes) + " bytes of device " + std::to_string(b->device);
    if (offset < b->bytes) return std::to_string(offset) + " bytes into " + whole;
    return std::to_string(offset - b->bytes) + " bytes behind " + whole;
  }
  for (const auto& [begin, room] : resting_)
    if (offset_of(p) >= begin && offset_of(p) < begin + room) return "memory there was freed";
  const auto next = blocks_.upper_bound(offset_of(p));
  if (next != blocks_.end() && next->first - offset_of(p) <= page)
    return std::to_string(next->first - offset_of(p)) + " bytes before a block of " +
           std::to_string(next->second.bytes) + " bytes";
  return "no living block lies there";
}

std::string device_arena::describe_overrun(const void* p, bool writes) const {
  const std::string does = writes ? "writes " : "reads ";
  std::size_t offset = 0;
  const block* const b = find(p, &offset);
  if (b == nullptr || !b->alive || offset >= b->bytes) return does + "out of bounds: " + describe(p);
  return does + "beyond a block of " + std::to_string(b->bytes) + " bytes of device " +
         std::to_string(b->device) +
         (offset == 0 ? "" : ", from " + std::to_string(offset) + " bytes into it");
}

void device_arena::open() {
  if (opened_++ == 0) protect(PROT_READ | PROT_WRITE);
}
void device_arena::close() {
  if (--opened_ == 0) protect(PROT_NONE);
}

std::size_t device_arena::offset_of(const void* p) const {
  return static_cast<std::size_t>(static_cast<const unsigned char*>(p) - base_);
}
void device_arena::grow(std::size_t end) {
  end = (end + page - 1) / page * page;
  if (end <= used_) return;
  used_ = end;
  if (opened_ > 0) protect(PROT_READ | PROT_WRITE);
}
/// Pages behind the last block are given back.
void device_arena::shrink() {
  const auto [begin, length] = *free_.rbegin();
  const std::size_t end = (begin + page - 1) / page * page;
  if (begin + length != stretch || end + slack >= used_) return;
  ::madvise(alias_ + end, used_ - end, MADV_REMOVE);
  ::madvise(marks_ + end, used_ - end, MADV_DONTNEED);
  used_ = end;
}
void device_arena::protect(int how) {
  if (used_ > 0 && ::mprotect(base_, used_, how) != 0) throw std::bad_alloc();
}
void device_arena::give_back(std::size_t offset, std::size_t length) {
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

}  // namespace emulator
