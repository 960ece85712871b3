#pragma once
// Stands in for the header of NCCL in tests: ranks are threads of one process, each with a device of its own,
// and every operation is a step of the deferred streams of machine.hpp. What the ranks call must agree, else
// the communicator has an asynchronous error and its streams stand still until it is aborted. A communicator
// that is not blocking is in progress until it is asked, and only then is the work enqueued, so that what the
// caller enqueues without asking comes too early.
//
// What this cannot show: that NCCL's kernels find room on a device beside others; orders of calls on several
// communicators that only dead-lock where kernels occupy a device; networks, topologies, processes, the time
// it takes to connect; reductions in NCCL's own order (those here are in some other order than the ranks').
#include <cuda_runtime_api.h>

#include "nccl_clique.hpp"

inline const char* ncclGetErrorString(ncclResult_t code) {
  constexpr const char* names[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "in progress"};
  return names[code];
}
inline const char* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  stand_in::machine& m = stand_in::machine::instance();
  const std::lock_guard lock(m.mutex);
  text = comm == nullptr ? "" : comm->end->why.empty() ? comm->end->group->why : comm->end->why;
  return text.c_str();
}

namespace stand_in {

using nccl_lock = std::unique_lock<std::mutex>;

/// act(machine, lock) as the call `name`: counted, and made to fail where a test wants it.
template <class Act>
ncclResult_t nccl(const char* name, Act act) {
  machine& m = machine::instance();
  nccl_lock lock(m.mutex);
  if (m.enter(name) != cudaSuccess) return ncclUnhandledCudaError;
  return act(m, lock);
}

/// Goes on with what is in progress: at once and to its end where the communicator is blocking.
inline ncclResult_t begin(machine& m, nccl_lock& lock, nccl_end& end, std::function<bool()> progress) {
  m.announce();
  if (!end.blocking) {
    end.pending = std::move(progress);
    return ncclInProgress;
  }
  while (!progress())
    if (!m.sleep(lock, m.patience)) return end.fail(ncclSystemError, "other ranks did not come");
  return end.broken();
}
/// Whether nothing is in progress, as it must be when a communicator is used.
inline ncclResult_t require_idle(nccl_end& end) {
  if (end.aborted) return end.fail(ncclInvalidUsage, "the communicator was aborted");
  if (end.pending) return end.fail(ncclInvalidArgument, "the call before is still in progress");
  return end.broken();
}

/// Operations between ncclGroupStart and ncclGroupEnd.
struct nccl_group {
  struct entry {
    std::shared_ptr<nccl_end> end;
    std::shared_ptr<stream> where;
    std::vector<nccl_item> items;
  };
  int depth = 0;
  std::vector<entry> entries;

  static nccl_group& instance() {
    static thread_local nccl_group group;
    return group;
  }
  void add(const std::shared_ptr<nccl_end>& end, const std::shared_ptr<stream>& where,
           const nccl_item& item) {
    for (entry& e : entries)
      if (e.end == end && e.where == where) return e.items.push_back(item);
    entries.push_back({end, where, {item}});
  }
  ncclResult_t launch(machine& m, nccl_lock& lock) {
    ncclResult_t result = ncclSuccess;
    for (entry& e : std::exchange(entries, {})) {
      const auto call = std::make_shared<nccl_call>(e.end, std::move(e.items));
      const ncclResult_t begun = begin(m, lock, *e.end, [&m, call, where = e.where] {
        call->post(where);
        m.enqueue(*where, [&m, call] { return call->run(m); });
        m.announce();
        return true;
      });
      if (begun != ncclSuccess && result != ncclInProgress) result = begun;
    }
    return result;
  }
};

/// Checks one operation, and launches it unless a group is open.
inline ncclResult_t nccl_operation(const char* name, ncclComm_t comm, cudaStream_t handle,
                                   const nccl_item& item) {
  return nccl(name, [&](machine& m, nccl_lock& lock) {
    const auto end = comm->end;
    if (const ncclResult_t ready = require_idle(*end); ready != ncclSuccess) return ready;
    const auto where = m.find(handle);
    if (!where || where->device != end->device)
      return end->fail(ncclInvalidArgument, "the stream is not one of the communicator's device");
    if (item.peer < 0 || item.peer >= end->group->size)
      return end->fail(ncclInvalidArgument, "there is no rank " + std::to_string(item.peer));
    const auto ranks = static_cast<std::size_t>(end->group->size);
    const bool root = item.kind != nccl_item::broadcast || item.peer == end->rank;
    const std::size_t in = item.kind == nccl_item::receive || !root ? 0
                           : item.kind == nccl_item::reduce_scatter ? ranks * item.bytes()
                                                                    : item.bytes();
    const std::size_t out = item.kind == nccl_item::send         ? 0
                            : item.kind == nccl_item::all_gather ? ranks * item.bytes()
                                                                 : item.bytes();
    if ((in > 0 && !m.arena.covers(item.input, in)) || (out > 0 && !m.arena.covers(item.output, out)))
      return end->fail(ncclInvalidArgument, std::string(name) + " names memory that is not a device's");
    if (item.count == 0 && !item.is_message()) return ncclSuccess;
    nccl_group& group = nccl_group::instance();
    group.add(end, where, item);
    return group.depth > 0 ? ncclSuccess : group.launch(m, lock);
  });
}

}  // namespace stand_in

inline ncclResult_t ncclGroupStart() {
  return stand_in::nccl("ncclGroupStart", [](auto&, auto&) {
    ++stand_in::nccl_group::instance().depth;
    return ncclSuccess;
  });
}
inline ncclResult_t ncclGroupEnd() {
  stand_in::nccl_group& group = stand_in::nccl_group::instance();
  if (group.depth == 0) return ncclInvalidUsage;
  --group.depth;
  const ncclResult_t code = stand_in::nccl("ncclGroupEnd", [&](auto& m, auto& lock) {
    return group.depth > 0 ? ncclSuccess : group.launch(m, lock);
  });
  if (group.depth == 0) group.entries.clear();
  return code;
}

inline ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream) {
  return stand_in::nccl_operation("ncclAllGather", comm, stream,
                                  {stand_in::nccl_item::all_gather, from, to, count, type, ncclSum, 0});
}
inline ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return stand_in::nccl_operation("ncclAllReduce", comm, stream,
                                  {stand_in::nccl_item::all_reduce, from, to, count, type, op, 0});
}
inline ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return stand_in::nccl_operation("ncclReduceScatter", comm, stream,
                                  {stand_in::nccl_item::reduce_scatter, from, to, count, type, op, 0});
}
inline ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                  int root, ncclComm_t comm, cudaStream_t stream) {
  return stand_in::nccl_operation("ncclBroadcast", comm, stream,
                                  {stand_in::nccl_item::broadcast, from, to, count, type, ncclSum, root});
}
inline ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream) {
  return stand_in::nccl_operation("ncclSend", comm, stream,
                                  {stand_in::nccl_item::send, from, nullptr, count, type, ncclSum, peer});
}
inline ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream) {
  return stand_in::nccl_operation("ncclRecv", comm, stream,
                                  {stand_in::nccl_item::receive, nullptr, to, count, type, ncclSum, peer});
}

#include "nccl_communicators.hpp"
