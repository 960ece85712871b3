// SPDX-License-Identifier: Apache-2.0
#include "reach.hpp"

namespace emulator::ptx {

window find_window(warp& w, space s, request& r) {
  block_state& b = w.block();
  window found;
  switch (s) {
    case space::param:
      found = w.parameters();
      break;
    case space::shared:
      found = b.shared.as_window();
      r.address = static_cast<std::uint32_t>(r.address);
      break;
    case space::local:
      found = w.local_window(r.lane);
      break;
    default:
      for (const window& own : {w.local_window(r.lane), b.shared.as_window(), w.parameters()})
        if (own.holds(r.address, 1)) return own;
      found = w.what().memory->find(r.address);
      if (found.holds(r.address, r.bytes)) b.known[b.next_known++ % b.known.size()] = found;
      return found;
  }
  r.address += found.begin;
  return found;
}

bool may_read_poison(warp& w, const window& found) {
  return w.what().kernel->may_read_poison && found.begin == w.block().shared.begin();
}

namespace {

std::string name_of(const request& r) {
  return (is_write(r.how) ? "a write of " : "a read of ") + std::to_string(r.bytes) + " bytes ";
}

/// Whether that is the block's shared memory, or close behind, where its marks lie.
bool near_shared(warp& w, std::uint64_t address) {
  const window shared = w.block().shared.as_window();
  return address - shared.begin < 2 * (shared.end - shared.begin);
}

}  // namespace

void fail_request(warp& w, space s, const request& r, const window& found) {
  constexpr const char* spaces[] = {"", "global", "constant", "shared", "local", "parameter", ""};
  if (s == space::generic && near_shared(w, r.address)) s = space::shared;
  std::string what = name_of(r);
  if (!found.holds(r.address, r.bytes)) {
    what += "is out of bounds";
    if (s != space::generic) what += std::string(" of ") + spaces[static_cast<int>(s)] + " memory";
  } else if ((r.address & (r.bytes - 1)) != 0) {
    throw lane_fault(r.lane, what + "is not aligned");
  } else {
    what += std::string("is of ") + (s == space::shared ? "shared " : "") + "memory that was never written";
  }
  throw lane_fault(r.lane, s == space::generic ? what + ": " + w.what().memory->describe(r.address) : what);
}

void note_request(warp& w, const request& r) {
  const bool shared = w.block().shared.as_window().holds(r.address, 1);
  const auto race = w.what().races->note(r.address, r.bytes, r.how, w.who(r.lane, shared));
  if (!race) return;
  std::string what = name_of(r) + (shared ? "of shared memory races with " : "races with ") + race->with;
  if (race->thread)
    what +=
        " by " + name_of_thread(w.what(), race->thread->block, race->thread->thread) + " of the same launch";
  throw lane_fault(r.lane, shared ? what : what + ": " + w.what().memory->describe(r.address));
}

}  // namespace emulator::ptx
