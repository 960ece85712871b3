// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../ptx/address_space.hpp"
#include "host_touch.hpp"

namespace emulator {

machine& machine::instance() {
  static machine* const only = new machine;
  return *only;
}

machine::machine() {
  if (const char* devices_wanted = std::getenv("EMULATOR_DEVICES")) devices = std::atoi(devices_wanted);
  if (const char* seconds = std::getenv("EMULATOR_PATIENCE"))
    patience = std::chrono::seconds(std::max(1, std::atoi(seconds)));
  if (std::getenv("EMULATOR_RACES") != nullptr) races.enable(true);
  explain_touches_of_the_host(arena, mutex);
  std::atexit([] { instance().finish(); });
}

std::shared_ptr<stream> machine::add_stream(int device, bool blocking, const std::string& name) {
  auto s = std::make_shared<stream>();
  s->device = device;
  s->blocking = blocking;
  s->number = next_number_++;
  s->name = name;
  streams.emplace(s.get(), s);
  return s;
}

std::shared_ptr<stream> machine::find(cudaStream_t s) {
  if (s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread) {
    std::shared_ptr<stream>& made = default_streams_[current_device()];
    if (!made)
      made = add_stream(current_device(), false,
                        "the default stream of device " + std::to_string(current_device()));
    ++calls_["the default stream"];
    for (const auto& [handle, other] : streams)
      if (other->capture && other->blocking && other->device == made->device)
        other->capture->refuse(cudaErrorStreamCaptureImplicit, "the default stream is used");
    return made;
  }
  const auto found = streams.find(s);
  return found == streams.end() ? nullptr : found->second;
}

memory_pool& machine::default_pool(int device) {
  auto& pool = default_pools_[device];
  if (!pool) {
    pool = std::make_unique<CUmemPoolHandle_st>();
    pool->device = device;
    pools.insert(pool.get());
  }
  return *pool;
}

void machine::enqueue(stream& s, std::function<bool()> step) {
  if (s.capture) return s.capture->add(&s, std::move(step));
  // What blocks and what lies on the default stream keep their order.
  const auto found = default_streams_.find(s.device);
  const bool on_default = found != default_streams_.end() && found->second.get() == &s;
  const auto follow = [&](const std::shared_ptr<stream>& other) {
    if (other->given == 0) return;
    s.steps.push_back({[this, &s, other, position = other->given] {
                         if (!advance(*other, position)) return false;
                         s.clock.join(other->clock);
                         return true;
                       },
                       {}});
    ++s.given;
  };
  if (on_default) {
    for (const auto& [handle, other] : streams)
      if (other->blocking && other->device == s.device) follow(other);
  } else if (s.blocking && found != default_streams_.end()) {
    follow(found->second);
  }
  s.steps.push_back({std::move(step), host_});
  ++s.given;
}

bool machine::attempt(stream& s) {
  if (races.enabled()) {
    if (const auto& after = s.steps.front().after; after != nullptr && after != s.joined) {
      s.clock.join(*after);
      s.joined = after;
    }
    races.begin(s.clock, s.number, s.done + 1, s.name);
  }
  try {
    return s.steps.front().run();
  } catch (const ptx::fault& f) {
    fail(cudaErrorLaunchFailure, f.what());
  } catch (const std::exception& e) {
    fail(cudaErrorLaunchFailure, std::string("enqueued work threw: ") + e.what());
  }
  return true;
}

void machine::observe(const clock& c) {
  if (!races.enabled()) return;
  const auto known = std::make_shared<clock>(c);
  if (host_ != nullptr) known->join(*host_);
  host_ = known;
}

void machine::fail(cudaError_t code, const std::string& text) {
  if (failure != cudaSuccess) return;
  failure = code;
  failure_text = text;
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
}

void machine::complain(const std::string& text) {
  if (text == complaint_) return;
  complaint_ = text;
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
}

/// Leaves alone what another thread still does.
void machine::finish() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || failure != cudaSuccess) return;
  run_everything();
  if (failure != cudaSuccess)
    std::fputs("emulator: this was found when the program ended, in work that it did not wait for\n", stderr);
}

bool machine::advance(stream& s, std::uint64_t position) {
  while (s.done < position) {
    if (s.running) return false;
    const race_log::position outer = races.now();
    s.running = true;
    const bool complete = attempt(s);
    s.running = false;
    races.resume(outer);
    if (!complete) return false;
    s.steps.pop_front();
    ++s.done;
    if (races.enabled()) s.clock.steps[s.number] = s.done;
    ++progress_;
  }
  return true;
}

bool machine::run(stream& s, std::uint64_t position) {
  if (s.done >= position) return true;
  const std::uint64_t before = progress_;
  const bool reached = advance(s, position);
  if (progress_ != before) changed_.notify_all();
  return reached;
}

void machine::run_everything() {
  const auto all = streams;
  for (const auto& [handle, s] : all) run(*s, s->given);
}

cudaError_t machine::wait_for(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t position) {
  if (s.capture) s.capture->refuse(cudaErrorStreamCaptureUnsupported, "the host waits for " + s.name);
  while (!run(s, position))
    if (!sleep(lock, patience)) {
      fail(cudaErrorLaunchTimeout, "a stream waits for what nobody gives");
      break;
    }
  observe(s.clock);
  return failure;
}

cudaError_t machine::query(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t position) {
  if (s.capture) s.capture->refuse(cudaErrorStreamCaptureUnsupported, "the host asks for " + s.name);
  require_no_capture("a query");
  if (s.done < position && !run(s, s.done + 1)) sleep(lock, std::chrono::milliseconds(1));
  if (failure != cudaSuccess) return failure;
  if (s.done < position) return cudaErrorNotReady;
  observe(s.clock);
  return cudaSuccess;
}

void machine::touch(const void* memory, std::size_t bytes, bool writes, const char* what) {
  std::size_t offset = 0;
  const auto* const b = arena.find(memory, &offset);
  if (b == nullptr || offset + bytes > b->bytes)
    throw ptx::fault(std::string(what) + " of " + std::to_string(bytes) + " bytes " +
                     arena.describe_overrun(memory, writes));
  races.note_range(memory, bytes, writes, what, [&] { return arena.describe(memory); });
  std::uint8_t* const marks = arena.marks_at(memory);
  if (writes) {
    std::memset(marks, 1, bytes);
  } else if (const void* const unwritten = std::memchr(marks, 0, bytes); unwritten != nullptr) {
    const auto at = static_cast<const std::uint8_t*>(unwritten) - marks;
    throw ptx::fault(std::string(what) + " of " + std::to_string(bytes) +
                     " bytes reads memory that was never written: " +
                     arena.describe(static_cast<const char*>(memory) + at));
  }
}

void machine::announce() {
  ++progress_;
  changed_.notify_all();
}

bool machine::sleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds time) {
  const std::uint64_t before = progress_;
  return changed_.wait_until(lock, std::chrono::system_clock::now() + time,
                             [&] { return progress_ != before; });
}

cudaError_t machine::enter(const std::string& name) {
  ++calls_[name];
  const auto planned = planned_.find(name);
  if (planned == planned_.end() || planned->second.first-- > 0) return failure;
  const cudaError_t code = planned->second.second;
  planned_.erase(planned);
  return code;
}

std::uint64_t machine::calls(const std::string& name) const {
  const auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

void machine::plan_failure(const std::string& name, cudaError_t code, int successes_before) {
  planned_[name] = {successes_before, code};
}

int& current_device() {
  static thread_local int device = 0;
  return device;
}
cudaError_t& last_error() {
  static thread_local cudaError_t code = cudaSuccess;
  return code;
}
explained_error& last_explained() {
  static thread_local explained_error last;
  return last;
}

cudaError_t enqueue_work(cudaStream_t s, const char* name, std::function<void()> work) {
  return call(name, [&](machine& m, std::unique_lock<std::mutex>&) {
    const auto found = m.find(s);
    if (!found || found->device != current_device()) return cudaErrorInvalidResourceHandle;
    m.enqueue_work(*found, std::move(work));
    return cudaSuccess;
  });
}

}  // namespace emulator
