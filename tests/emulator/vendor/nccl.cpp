// SPDX-License-Identifier: Apache-2.0
// NCCL on the emulated runtime: ranks are threads of one process, each with a device of its own, and every
// operation is a step of the deferred streams. What the ranks call must agree, else the communicator has an
// asynchronous error and its streams stand still until it is aborted. A communicator that is not blocking is
// in progress until it is asked, and only then is the work enqueued, so that what the caller enqueues without
// asking comes too early. Communicators that share their resources end together: when one is aborted,
// operations on the others succeed and move nothing. A split with operations under way never ends.
//
// What this cannot show: that NCCL's kernels find room on a device beside others; orders of calls on several
// communicators that only dead-lock where kernels occupy a device; networks, topologies, processes, the time
// it takes to connect; reductions in NCCL's own order (those here are in some other order than the ranks').
#include <algorithm>
#include <map>

#include "../control.hpp"
#include "nccl_clique.hpp"

namespace emulator {

std::map<int, nccl_plan>& nccl_plans() {
  static std::map<int, nccl_plan> plans;
  return plans;
}

void make_nccl_hang(int device, int calls_before) { make_nccl_fail(device, ncclSuccess, calls_before); }
void make_nccl_fail(int device, int code, int calls_before) {
  machine& m = machine::instance();
  const std::lock_guard lock(m.mutex);
  nccl_plans()[device] = {calls_before, static_cast<ncclResult_t>(code)};
}

namespace {

using nccl_lock = std::unique_lock<std::mutex>;

/// act(machine, lock), which returns an error or nothing, as the call `name`: counted, and made to fail where
/// a test wants it.
ncclResult_t nccl(const char* name, auto act) {
  machine& m = machine::instance();
  nccl_lock lock(m.mutex);
  if (m.enter(name) != cudaSuccess) return ncclUnhandledCudaError;
  if constexpr (std::is_void_v<decltype(act(m, lock))>)
    return act(m, lock), ncclSuccess;
  else
    return act(m, lock);
}

/// Goes on with what is in progress: at once and to its end where the communicator is blocking.
ncclResult_t begin(machine& m, nccl_lock& lock, nccl_end& end, std::function<bool()> progress) {
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
ncclResult_t require_idle(nccl_end& end) {
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
      static_cast<void>(m.enter("NCCL's launch"));
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
ncclResult_t nccl_operation(const char* name, ncclComm_t comm, cudaStream_t handle, const nccl_item& item) {
  return nccl(name, [&](machine& m, nccl_lock& lock) {
    const auto end = comm->end;
    if (const ncclResult_t ready = require_idle(*end); ready != ncclSuccess) return ready;
    const auto where = m.find(handle);
    if (!where || where->device != end->device)
      return end->fail(ncclInvalidArgument, "the stream is not one of the communicator's device");
    if (where->capture)
      return end->fail(ncclInvalidUsage, "the emulator's NCCL does not know how to be captured");
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

/// Cliques that ranks are joining, by the number in their unique id.
std::map<std::uint64_t, std::shared_ptr<clique>>& forming_cliques() {
  static std::map<std::uint64_t, std::shared_ptr<clique>> forming;
  return forming;
}
std::uint64_t number_of(const ncclUniqueId& id) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  return number;
}
bool is_blocking(const ncclConfig_t& config) { return config.blocking != 0; }

/// Each device may be in a communicator once.
void join(clique& group, int rank, int device) {
  if (std::count(group.devices.begin(), group.devices.end(), device) > 0)
    group.refusal = "duplicate GPU detected: device " + std::to_string(device);
  group.devices[static_cast<std::size_t>(rank)] = device;
  ++group.joined;
}

/// Makes the communicator of this rank's color when all ranks have called. True when that is done.
bool finish_split(nccl_end& end, std::uint64_t round_number, ncclComm_t* made, bool blocking) {
  clique::split_round& round = end.group->splits[round_number];
  const auto called = [](const clique::split_call& c) { return c.called; };
  if (std::count_if(round.calls.begin(), round.calls.end(), called) < end.group->size) return false;
  const clique::split_call mine = round.calls[static_cast<std::size_t>(end.rank)];
  if (mine.color == NCCL_SPLIT_NOCOLOR) return true;
  std::vector<std::pair<int, int>> members;  // key, rank here
  for (int q = 0; q < end.group->size; ++q)
    if (const auto& c = round.calls[static_cast<std::size_t>(q)]; c.color == mine.color)
      members.emplace_back(c.key, q);
  std::sort(members.begin(), members.end());
  std::shared_ptr<clique>& group = round.made[mine.color];
  if (!group) group = std::make_shared<clique>(static_cast<int>(members.size()));
  const auto me = std::find(members.begin(), members.end(), std::pair(mine.key, end.rank)) - members.begin();
  *made = new ncclComm{std::make_shared<nccl_end>()};
  (*made)->end->group = group;
  (*made)->end->rank = static_cast<int>(me);
  (*made)->end->device = end.device;
  (*made)->end->blocking = blocking;
  join(*group, static_cast<int>(me), end.device);
  return true;
}

}  // namespace

}  // namespace emulator

extern "C" {

const char* ncclGetErrorString(ncclResult_t code) {
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
const char* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  emulator::machine& m = emulator::machine::instance();
  const std::lock_guard lock(m.mutex);
  text = comm == nullptr ? "" : comm->end->why.empty() ? comm->end->group->why : comm->end->why;
  return text.c_str();
}

ncclResult_t ncclGroupStart() {
  return emulator::nccl("ncclGroupStart", [](auto&, auto&) { ++emulator::nccl_group::instance().depth; });
}
ncclResult_t ncclGroupEnd() {
  emulator::nccl_group& group = emulator::nccl_group::instance();
  if (group.depth == 0) return ncclInvalidUsage;
  --group.depth;
  const ncclResult_t code = emulator::nccl("ncclGroupEnd", [&](auto& m, auto& lock) {
    return group.depth > 0 ? ncclSuccess : group.launch(m, lock);
  });
  if (group.depth == 0) group.entries.clear();
  return code;
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return emulator::nccl_operation("ncclAllGather", comm, stream,
                                  {emulator::nccl_item::all_gather, from, to, count, type, ncclSum, 0});
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return emulator::nccl_operation("ncclAllReduce", comm, stream,
                                  {emulator::nccl_item::all_reduce, from, to, count, type, op, 0});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return emulator::nccl_operation("ncclReduceScatter", comm, stream,
                                  {emulator::nccl_item::reduce_scatter, from, to, count, type, op, 0});
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return emulator::nccl_operation("ncclBroadcast", comm, stream,
                                  {emulator::nccl_item::broadcast, from, to, count, type, ncclSum, root});
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return emulator::nccl_operation("ncclSend", comm, stream,
                                  {emulator::nccl_item::send, from, nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return emulator::nccl_operation("ncclRecv", comm, stream,
                                  {emulator::nccl_item::receive, nullptr, to, count, type, ncclSum, peer});
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return emulator::nccl("ncclGetUniqueId", [&](auto& m, auto&) {
    const std::uint64_t number = m.calls("ncclGetUniqueId");
    *id = {};
    std::memcpy(id->internal, &number, sizeof(number));
  });
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return emulator::nccl("ncclCommInitRankConfig", [&](auto& m, auto& lock) {
    if (config->magic != 0xcafebeef || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    std::shared_ptr<emulator::clique>& forming = emulator::forming_cliques()[emulator::number_of(id)];
    if (!forming) forming = std::make_shared<emulator::clique>(ranks);
    const auto group = forming;
    if (group->size != ranks || group->devices[static_cast<std::size_t>(rank)] >= 0)
      return ncclInvalidArgument;
    const auto end = std::make_shared<emulator::nccl_end>();
    end->group = group;
    end->rank = rank;
    end->device = emulator::current_device();
    end->blocking = emulator::is_blocking(*config);
    *comm = new ncclComm{end};
    emulator::join(*group, rank, end->device);
    if (group->joined == ranks) emulator::forming_cliques().erase(emulator::number_of(id));
    return emulator::begin(m, lock, *end, [end = end.get()] {
      if (end->group->joined < end->group->size) return false;
      if (!end->group->refusal.empty()) end->failure = end->fail(ncclInvalidUsage, end->group->refusal);
      return true;
    });
  });
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return ncclCommInitRankConfig(comm, ranks, id, rank, &config);
}
/// *made is set when the call is complete. As the real one, it does not say that it goes on: its communicator
/// does.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  return emulator::nccl("ncclCommSplit", [&](auto& m, auto& lock) {
    emulator::nccl_end& end = *comm->end;
    if (const ncclResult_t ready = emulator::require_idle(end); ready != ncclSuccess) return ready;
    if (color < NCCL_SPLIT_NOCOLOR) return end.fail(ncclInvalidArgument, "a color is negative");
    // The real one may dead-lock.
    if (end.last_stream && end.last_stream->done < end.last_position)
      return emulator::begin(m, lock, end, [] { return false; });
    const std::uint64_t number = end.splits++;
    auto& calls = end.group->splits[number].calls;
    calls.resize(static_cast<std::size_t>(end.group->size));
    calls[static_cast<std::size_t>(end.rank)] = {color, key, true};
    *made = nullptr;
    const bool blocking = config == nullptr ? end.blocking : emulator::is_blocking(*config);
    const bool shares = config != nullptr && config->splitShare == 1;
    const ncclResult_t begun = emulator::begin(m, lock, end, [&end, number, made, blocking, shares] {
      if (!emulator::finish_split(end, number, made, blocking)) return false;
      if (*made != nullptr && shares) (*made)->end->family_aborted = end.family_aborted;
      return true;
    });
    return begun == ncclInProgress ? ncclSuccess : begun;
  });
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return emulator::nccl("ncclCommGetAsyncError", [&](auto& m, auto& lock) {
    emulator::nccl_end& end = *comm->end;
    if (!end.pending) {
      *error = end.broken();
    } else if (const auto progress = end.pending; progress()) {
      end.pending = nullptr;
      *error = end.failure;
      m.announce();
    } else {
      *error = ncclInProgress;
      m.sleep(lock, std::chrono::milliseconds(1));
    }
  });
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  return emulator::nccl("ncclCommCount", [&](auto&, auto&) { *count = comm->end->group->size; });
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  return emulator::nccl("ncclCommUserRank", [&](auto&, auto&) { *rank = comm->end->rank; });
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  return emulator::nccl("ncclCommCuDevice", [&](auto&, auto&) { *device = comm->end->device; });
}
/// Complete when all that this rank called is done.
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return emulator::nccl("ncclCommFinalize", [&](auto& m, auto& lock) {
    const auto end = comm->end;
    if (const ncclResult_t ready = emulator::require_idle(*end); ready != ncclSuccess) return ready;
    return emulator::begin(m, lock, *end, [&m, end = end.get()] {
      return !end->last_stream || m.run(*end->last_stream, end->last_position);
    });
  });
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return emulator::nccl("ncclCommDestroy", [&](auto& m, auto&) {
    const auto end = comm->end;
    if (end->last_stream) m.run(*end->last_stream, end->last_position);
    end->pending = nullptr;
    delete comm;
  });
}
/// Steps of this rank that wait for others end without a result.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return emulator::nccl("ncclCommAbort", [&](auto& m, auto&) {
    comm->end->aborted = *comm->end->family_aborted = true;
    comm->end->pending = nullptr;
    delete comm;
    m.announce();
  });
}

}  // extern "C"
