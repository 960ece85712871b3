#pragma once
// Streams and events of the stand-in's runtime; part of cuda_runtime_api.h.
#include "machine.hpp"

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  return stand_in::call("cudaStreamCreateWithFlags", [&](auto& m, auto&) {
    auto s = std::make_shared<stand_in::stream>();
    s->device = stand_in::current_device();
    *made = s.get();
    m.streams.emplace(*made, std::move(s));
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int) {
  return cudaStreamCreateWithFlags(made, flags);
}
inline cudaError_t cudaStreamCreate(cudaStream_t* made) {
  return cudaStreamCreateWithFlags(made, cudaStreamDefault);
}
/// What is left to do is done as far as it can be.
inline cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return stand_in::call("cudaStreamDestroy", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s) return cudaErrorInvalidResourceHandle;
    m.run(*s, s->given);
    m.streams.erase(handle);
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return stand_in::call("cudaStreamSynchronize", [&](auto& m, auto& lock) {
    const auto s = m.find(handle);
    return s ? m.wait_for(lock, *s, s->given) : cudaErrorInvalidResourceHandle;
  });
}
inline cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return stand_in::call("cudaStreamQuery", [&](auto& m, auto& lock) {
    const auto s = m.find(handle);
    return s ? m.query(lock, *s, s->given) : cudaErrorInvalidResourceHandle;
  });
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  return stand_in::call("cudaEventCreateWithFlags", [&](auto& m, auto&) {
    *made = new stand_in::event;
    (*made)->device = stand_in::current_device();
    (*made)->timed = (flags & cudaEventDisableTiming) == 0;
    m.events.insert(*made);
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventCreate(cudaEvent_t* made) {
  return cudaEventCreateWithFlags(made, cudaEventDefault);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
  return stand_in::call("cudaEventDestroy", [&](auto& m, auto&) {
    if (m.events.erase(e) == 0) return cudaErrorInvalidResourceHandle;
    delete e;
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t handle) {
  return stand_in::call("cudaEventRecord", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || m.events.count(e) == 0 || e->device != s->device) return cudaErrorInvalidResourceHandle;
    if (e->timed) {
      e->time = std::make_shared<std::chrono::steady_clock::time_point>();
      m.enqueue(*s, [time = e->time] {
        *time = std::chrono::steady_clock::now();
        return true;
      });
    }
    e->stream = s;
    e->position = s->given;
    return cudaSuccess;
  });
}
/// An event that was never recorded is reached.
inline cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t e, unsigned = 0) {
  return stand_in::call("cudaStreamWaitEvent", [&](auto& m, auto&) {
    const auto s = m.find(handle);
    if (!s || m.events.count(e) == 0) return cudaErrorInvalidResourceHandle;
    if (e->stream && e->stream != s)
      m.enqueue(*s, [&m, other = e->stream, position = e->position] { return m.advance(*other, position); });
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return stand_in::call("cudaEventSynchronize", [&](auto& m, auto& lock) {
    if (m.events.count(e) == 0) return cudaErrorInvalidResourceHandle;
    const auto s = e->stream;
    return s ? m.wait_for(lock, *s, e->position) : m.failure;
  });
}
inline cudaError_t cudaEventQuery(cudaEvent_t e) {
  return stand_in::call("cudaEventQuery", [&](auto& m, auto& lock) {
    if (m.events.count(e) == 0) return cudaErrorInvalidResourceHandle;
    const auto s = e->stream;
    return s ? m.query(lock, *s, e->position) : m.failure;
  });
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return stand_in::call("cudaEventElapsedTime", [&](auto& m, auto&) {
    for (const cudaEvent_t e : {begin, end}) {
      if (m.events.count(e) == 0 || !e->timed || !e->stream) return cudaErrorInvalidResourceHandle;
      if (e->stream->done < e->position) return cudaErrorNotReady;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
    return cudaSuccess;
  });
}
