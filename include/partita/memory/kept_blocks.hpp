// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Blocks of memory that stay allocated when they are released, for later ones of about their size.

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::memory {

/// `bytes` rounded up to a size class, from 512 on.
constexpr std::size_t size_class(std::size_t bytes) {
  return base::size_class(std::max<std::size_t>(bytes, 512));
}

/// Blocks of one allocator, in use and free. give_back(memory, bytes) returns one to it.
class kept_blocks {
 public:
  /// A block from the allocator, in use. Where there is no memory for its entry, it is not kept.
  void keep(void* memory, std::size_t bytes) noexcept {
    try {
      blocks_.push_back({memory, bytes, false});
    } catch (const std::bad_alloc&) {
    }
  }
  /// The smallest free block that serves, three quarters of which are needed, or null; then the largest that
  /// does not is given back, so that blocks grow instead of accumulating.
  template <class GiveBack>
  void* take(std::size_t bytes, const GiveBack& give_back) {
    block *best = nullptr, *below = nullptr;
    for (block& b : blocks_) {
      if (!b.is_free || b.bytes / 4 * 3 > bytes) continue;
      if (b.bytes >= bytes && (best == nullptr || b.bytes < best->bytes)) best = &b;
      if (b.bytes < bytes && (below == nullptr || b.bytes > below->bytes)) below = &b;
    }
    if (best != nullptr) {
      best->is_free = false;
      return best->memory;
    }
    if (below != nullptr) {
      give_back(below->memory, below->bytes);
      *below = blocks_.back();
      blocks_.pop_back();
    }
    return nullptr;
  }
  /// Whether this is a block in use, which becomes free.
  bool put(void* memory) noexcept {
    for (block& b : blocks_)
      if (b.memory == memory) return b.is_free = true;
    return false;
  }
  /// All free blocks.
  template <class GiveBack>
  void give_back_free(const GiveBack& give_back) noexcept {
    std::erase_if(blocks_, [&](const block& b) {
      if (b.is_free) give_back(b.memory, b.bytes);
      return b.is_free;
    });
  }

 private:
  struct block {
    void* memory;
    std::size_t bytes;
    bool is_free;
  };

  std::vector<block> blocks_;
};

}  // namespace partita::memory
