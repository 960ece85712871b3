// SPDX-License-Identifier: Apache-2.0
// Streams and events of the emulated runtime.
#include "machine.hpp"

using emulator::call;
using emulator::refuse_with;

extern "C" {

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&](auto& m, auto&) {
    static int created = 0;
    *made = m.add_stream(emulator::current_device(), (flags & cudaStreamNonBlocking) == 0,
                         "stream " + std::to_string(++created))
                .get();
  });
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int) {
  return cudaStreamCreateWithFlags(made, flags);
}
cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* made) {
  return cudaStreamCreateWithFlags(made, cudaStreamDefault);
}
/// What is left to do is done as far as it can be.
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t handle) {
  return call("cudaStreamDestroy", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->capture) s->capture->broken = true;
    m.run(*s, s->given);
    m.streams.erase(handle);
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&](auto& m, auto& lock) {
    const auto s = m.find(handle);
    return s ? m.wait_for(lock, *s, s->given) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", [&](auto& m, auto& lock) {
    const auto s = m.find(handle);
    return s ? m.query(lock, *s, s->given) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return call("cudaStreamGetDevice", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    *device = s->device;
    return cudaSuccess;
  });
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](auto& m, auto&) {
    *made = new emulator::event;
    (*made)->device = emulator::current_device();
    (*made)->timed = (flags & cudaEventDisableTiming) == 0;
    m.events.insert(*made);
  });
}
cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* made) {
  return cudaEventCreateWithFlags(made, cudaEventDefault);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t e) {
  return call("cudaEventDestroy", [&](auto& m, auto&) {
    if (m.events.erase(e) == 0) return cudaErrorInvalidResourceHandle;
    delete e;
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t e, cudaStream_t handle) {
  return call("cudaEventRecord", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || m.events.count(e) == 0 || e->device != s->device) return cudaErrorInvalidResourceHandle;
    e->capture = s->capture;
    if (e->capture) {
      e->stream.reset();
      e->before = e->capture->before[s.get()];
      return cudaSuccess;
    }
    e->clock = std::make_shared<emulator::clock>();
    if (e->timed || m.races.enabled()) {
      e->time = std::make_shared<std::chrono::steady_clock::time_point>();
      m.enqueue_work(*s, [s = s.get(), time = e->time, clock = e->clock] {
        *time = std::chrono::steady_clock::now();
        *clock = s->clock;
      });
    }
    e->stream = s;
    e->position = s->given;
    return cudaSuccess;
  });
}
/// An event that was never recorded is reached.
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t e, unsigned) {
  return call("cudaStreamWaitEvent", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || m.events.count(e) == 0) return cudaErrorInvalidResourceHandle;
    if (e->capture) {
      if (e->capture->ended) return refuse_with(cudaErrorCapturedEvent, "the event is one of a capture");
      if (s->capture && s->capture != e->capture)
        s->capture->refuse(cudaErrorStreamCaptureMerge, "an event of another capture is waited for");
      if (!s->capture) ++e->capture->before[s.get()][s.get()];  // to be joined
      s->capture = e->capture;
      s->capture->follow(s.get(), e->before);
      return cudaSuccess;
    }
    if (e->stream && s->capture)
      s->capture->refuse(cudaErrorStreamCaptureIsolation, "an event from before it is waited for");
    if (e->stream && e->stream != s)
      m.enqueue(*s, [&m, s = s.get(), other = e->stream, position = e->position, clock = e->clock] {
        if (!m.advance(*other, position)) return false;
        s->clock.join(*clock);
        return true;
      });
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t e) {
  return call("cudaEventSynchronize", [&](auto& m, auto& lock) {
    if (m.events.count(e) == 0) return cudaErrorInvalidResourceHandle;
    if (e->capture) return refuse_with(cudaErrorCapturedEvent, "an event of a capture is waited for");
    const auto s = e->stream;
    return s ? m.wait_for(lock, *s, e->position) : m.failure;
  });
}
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t e) {
  return call("cudaEventQuery", [&](auto& m, auto& lock) {
    if (m.events.count(e) == 0) return cudaErrorInvalidResourceHandle;
    if (e->capture) return refuse_with(cudaErrorCapturedEvent, "an event of a capture is asked for");
    const auto s = e->stream;
    return s ? m.query(lock, *s, e->position) : m.failure;
  });
}
cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&](auto& m, auto&) {
    for (const cudaEvent_t e : {begin, end}) {
      if (m.events.count(e) == 0 || !e->timed || !e->stream) return cudaErrorInvalidResourceHandle;
      if (e->stream->done < e->position) return cudaErrorNotReady;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
    return cudaSuccess;
  });
}

}  // extern "C"
