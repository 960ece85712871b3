// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "machine.hpp"

namespace emulator {

/// Memory as the kernels of one device see it.
class device_view final : public ptx::address_space {
 public:
  device_view(const machine& m, int device, const std::map<std::string, std::uint64_t>& variables)
      : machine_(m), device_(device), variables_(variables) {}

  ptx::window find(std::uint64_t address) const override {
    const auto* const p = reinterpret_cast<const void*>(address);
    std::size_t offset = 0;
    if (const auto* const b = machine_.arena.find(p, &offset)) {
      if (b->device != device_ || offset >= b->bytes) return {};
      return {address - offset, address - offset + b->bytes, machine_.arena.marks_at(p) - offset,
              machine_.arena.alias_offset()};
    }
    auto next = machine_.pinned.upper_bound(p);
    if (next == machine_.pinned.begin()) return {};
    --next;
    const auto begin = reinterpret_cast<std::uint64_t>(next->first);
    return address < begin + next->second ? ptx::window{begin, begin + next->second, nullptr, 0}
                                          : ptx::window{};
  }
  std::string describe(std::uint64_t address) const override {
    return machine_.arena.describe(reinterpret_cast<const void*>(address)) + ", for a kernel of device " +
           std::to_string(device_);
  }
  std::uint64_t address_of(const std::string& variable) const override { return variables_.at(variable); }

 private:
  const machine& machine_;
  int device_;
  const std::map<std::string, std::uint64_t>& variables_;
};

}  // namespace emulator
