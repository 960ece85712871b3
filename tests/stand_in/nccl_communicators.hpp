#pragma once
// How communicators of the stand-in's NCCL are made and end; part of nccl.h.
#include <algorithm>

#include "nccl_clique.hpp"

namespace stand_in {

/// Cliques that ranks are joining, by the number in their unique id.
inline std::map<std::uint64_t, std::shared_ptr<clique>>& forming_cliques() {
  static std::map<std::uint64_t, std::shared_ptr<clique>> forming;
  return forming;
}
inline std::uint64_t number_of(const ncclUniqueId& id) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  return number;
}
inline bool is_blocking(const ncclConfig_t& config) { return config.blocking != 0; }

/// Each device may be in a communicator once.
inline void join(clique& group, int rank, int device) {
  if (std::count(group.devices.begin(), group.devices.end(), device) > 0)
    group.refusal = "duplicate GPU detected: device " + std::to_string(device);
  group.devices[static_cast<std::size_t>(rank)] = device;
  ++group.joined;
}

/// Makes the communicator of this rank's color when all ranks have called. True when that is done.
inline bool finish_split(nccl_end& end, std::uint64_t round_number, ncclComm_t* made, bool blocking) {
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

}  // namespace stand_in

inline ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return stand_in::nccl("ncclGetUniqueId", [&](auto& m, auto&) {
    const std::uint64_t number = m.calls("ncclGetUniqueId");
    *id = {};
    std::memcpy(id->internal, &number, sizeof(number));
    return ncclSuccess;
  });
}
inline ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  return stand_in::nccl("ncclCommInitRankConfig", [&](auto& m, auto& lock) {
    if (config->magic != stand_in_config_magic || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    std::shared_ptr<stand_in::clique>& forming = stand_in::forming_cliques()[stand_in::number_of(id)];
    if (!forming) forming = std::make_shared<stand_in::clique>(ranks);
    const auto group = forming;
    if (group->size != ranks || group->devices[static_cast<std::size_t>(rank)] >= 0)
      return ncclInvalidArgument;
    const auto end = std::make_shared<stand_in::nccl_end>();
    end->group = group;
    end->rank = rank;
    end->device = stand_in::current_device();
    end->blocking = stand_in::is_blocking(*config);
    *comm = new ncclComm{end};
    stand_in::join(*group, rank, end->device);
    if (group->joined == ranks) stand_in::forming_cliques().erase(stand_in::number_of(id));
    return stand_in::begin(m, lock, *end, [end = end.get()] {
      if (end->group->joined < end->group->size) return false;
      if (!end->group->refusal.empty()) end->failure = end->fail(ncclInvalidUsage, end->group->refusal);
      return true;
    });
  });
}
inline ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return ncclCommInitRankConfig(comm, ranks, id, rank, &config);
}
/// *made is set when the call is complete. As the real one, it does not say that it goes on: its communicator
/// does.
inline ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                                  ncclConfig_t* config) {
  return stand_in::nccl("ncclCommSplit", [&](auto& m, auto& lock) {
    stand_in::nccl_end& end = *comm->end;
    if (const ncclResult_t ready = stand_in::require_idle(end); ready != ncclSuccess) return ready;
    if (color < NCCL_SPLIT_NOCOLOR) return end.fail(ncclInvalidArgument, "a color is negative");
    const std::uint64_t number = end.splits++;
    auto& calls = end.group->splits[number].calls;
    calls.resize(static_cast<std::size_t>(end.group->size));
    calls[static_cast<std::size_t>(end.rank)] = {color, key, true};
    *made = nullptr;
    const bool blocking = config == nullptr ? end.blocking : stand_in::is_blocking(*config);
    const ncclResult_t begun = stand_in::begin(m, lock, end, [&end, number, made, blocking] {
      return stand_in::finish_split(end, number, made, blocking);
    });
    return begun == ncclInProgress ? ncclSuccess : begun;
  });
}
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return stand_in::nccl("ncclCommGetAsyncError", [&](auto& m, auto& lock) {
    stand_in::nccl_end& end = *comm->end;
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
    return ncclSuccess;
  });
}
inline ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  return stand_in::nccl("ncclCommCount", [&](auto&, auto&) {
    *count = comm->end->group->size;
    return ncclSuccess;
  });
}
inline ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  return stand_in::nccl("ncclCommUserRank", [&](auto&, auto&) {
    *rank = comm->end->rank;
    return ncclSuccess;
  });
}
inline ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  return stand_in::nccl("ncclCommCuDevice", [&](auto&, auto&) {
    *device = comm->end->device;
    return ncclSuccess;
  });
}
/// Complete when all that this rank called is done.
inline ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return stand_in::nccl("ncclCommFinalize", [&](auto& m, auto& lock) {
    const auto end = comm->end;
    if (const ncclResult_t ready = stand_in::require_idle(*end); ready != ncclSuccess) return ready;
    return stand_in::begin(m, lock, *end, [&m, end = end.get()] {
      return !end->last_stream || m.run(*end->last_stream, end->last_position);
    });
  });
}
inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return stand_in::nccl("ncclCommDestroy", [&](auto& m, auto&) {
    const auto end = comm->end;
    if (end->last_stream) m.run(*end->last_stream, end->last_position);
    end->pending = nullptr;
    delete comm;
    return ncclSuccess;
  });
}
/// Steps of this rank that wait for others end without a result.
inline ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return stand_in::nccl("ncclCommAbort", [&](auto& m, auto&) {
    comm->end->aborted = true;
    comm->end->pending = nullptr;
    delete comm;
    m.announce();
    return ncclSuccess;
  });
}
