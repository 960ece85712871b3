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

void fail_request(warp& w, space s, const request& r, const window& found) {
  std::string what = (is_write(r.how) ? "a write of " : "a read of ") + std::to_string(r.bytes) + " bytes ";
  if (!found.holds(r.address, r.bytes)) {
    constexpr const char* spaces[] = {"", "global", "constant", "shared", "local", "parameter", ""};
    what += "is out of bounds";
    what += s == space::generic ? ": " + w.what().memory->describe(r.address)
                                : std::string(" of ") + spaces[static_cast<int>(s)] + " memory";
  } else if ((r.address & (r.bytes - 1)) != 0) {
    what += "is not aligned";
  } else {
    what += "is of memory that was never written";
    if (s == space::generic) what += ": " + w.what().memory->describe(r.address);
  }
  throw lane_fault(r.lane, what);
}

void note_request(warp& w, const request& r) {
  const bool shared = w.block().shared.as_window().holds(r.address, 1);
  const std::string race = w.what().races->note(r.address, r.bytes, r.how, w.who(r.lane, shared));
  if (race.empty()) return;
  throw lane_fault(r.lane, std::string(is_write(r.how) ? "a write of " : "a read of ") +
                               std::to_string(r.bytes) + " bytes races with " + race);
}

}  // namespace emulator::ptx
