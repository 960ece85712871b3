// SPDX-License-Identifier: Apache-2.0
// Functions that the runtime gives to kernels: printf and assert.
#include <cstdio>
#include <mutex>

#include "encoder.hpp"
#include "reach.hpp"

namespace emulator::ptx {

namespace {

template <class T>
T read_from(warp& w, unsigned lane, std::uint64_t address) {
  T value;
  std::memcpy(&value, reach<space::generic>(w, lane, address, sizeof(T), access::read), sizeof(T));
  return value;
}
std::string read_text(warp& w, unsigned lane, std::uint64_t address) {
  std::string text;
  for (char c; (c = read_from<char>(w, lane, address++)) != 0;) text += c;
  return text;
}

/// The arguments lie one behind the other, each aligned to its size.
std::string formatted(warp& w, unsigned lane, const std::string& format, std::uint64_t arguments) {
  std::string text;
  const auto next = [&]<class T>(T) {
    arguments = (arguments + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const T value = read_from<T>(w, lane, arguments);
    arguments += sizeof(T);
    return value;
  };
  const auto append = [&](const std::string& one, auto value) {
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, one.c_str(), value);
    text += buffer;
  };
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      text += format[at];
      continue;
    }
    const std::size_t end = format.find_first_of("diouxXeEfFgGaAcsp%", at + 1);
    if (end == std::string::npos) break;
    std::string one = format.substr(at, end - at + 1);
    for (std::size_t star; (star = one.find('*')) != std::string::npos;)
      one.replace(star, 1, std::to_string(next(std::int32_t{})));
    const bool wide = one.find('l') != std::string::npos || one.find('z') != std::string::npos;
    at = end;
    switch (format[end]) {
      case '%':
        text += '%';
        break;
      case 's':
        append(one, read_text(w, lane, next(std::uint64_t{})).c_str());
        break;
      case 'p':
        append(one, reinterpret_cast<void*>(next(std::uint64_t{})));
        break;
      case 'c':
        append(one, next(std::int32_t{}));
        break;
      default:
        if (std::strchr("eEfFgGaA", format[end]) != nullptr)
          append(one, next(double{}));
        else if (wide)
          append(one, next(std::int64_t{}));
        else
          append(one, next(std::int32_t{}));
    }
  }
  return text;
}

/// The first parameter at `offset` of a thread's own memory, the second at `second`.
std::uint64_t parameter(warp& w, unsigned lane, std::int64_t offset) {
  std::uint64_t value;
  std::memcpy(&value, reach<space::local>(w, lane, static_cast<std::uint64_t>(offset), 8, access::read), 8);
  return value;
}

void print(warp& w, const operation& o, lane_mask active) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  for_each_lane(active, [&](unsigned l) {
    const std::string format = read_text(w, l, parameter(w, l, o.offset));
    std::fputs(formatted(w, l, format, parameter(w, l, o.target)).c_str(), stdout);
    std::memset(reach<space::local>(w, l, o.elements[0], 4, access::write), 0, 4);
  });
}
void fail_assertion(warp& w, const operation& o, lane_mask active) {
  const auto lane = static_cast<unsigned>(std::countr_zero(active));
  std::uint32_t line;
  std::memcpy(&line, reach<space::local>(w, lane, o.elements[0], 4, access::read), 4);
  throw lane_fault(lane, "fails the assertion '" + read_text(w, lane, parameter(w, lane, o.offset)) +
                             "' of " + read_text(w, lane, parameter(w, lane, o.target)) + ":" +
                             std::to_string(line));
}

}  // namespace

void encoder::add_builtin(std::string_view name, const std::vector<memory_name>& results,
                          const std::vector<memory_name>& arguments) {
  operation o;
  o.source = now_;
  if (name == "vprintf" && results.size() == 1 && arguments.size() == 2) {
    o.run = print;
    o.elements[0] = static_cast<slot>(results[0].offset);
  } else if (name == "__assertfail" && arguments.size() == 5) {
    o.run = fail_assertion;
    o.elements[0] = static_cast<slot>(arguments[2].offset);
  } else {
    refuse("a call of " + std::string(name) + ", which is not defined,");
  }
  o.offset = arguments[0].offset;
  o.target = static_cast<std::uint32_t>(arguments[1].offset);
  append(o);
}

}  // namespace emulator::ptx
