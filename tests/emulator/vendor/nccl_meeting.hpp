// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ranks of the emulated NCCL meet in: a collective of all, or a message between two.
#include <cstring>
#include <nccl.h>

#include "../runtime/machine.hpp"

namespace emulator {

/// One operation as a rank calls it.
struct nccl_item {
  enum kind_type { all_gather, all_reduce, reduce_scatter, broadcast, send, receive };

  kind_type kind;
  const void* input;
  void* output;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  ///< root, or partner of a message

  bool is_message() const { return kind == send || kind == receive; }
  std::size_t element() const {
    constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return sizes[type];
  }
  std::size_t bytes() const { return count * element(); }
  /// What all ranks must call alike; of messages, what both must.
  std::string signature() const {
    constexpr const char* names[] = {"ncclAllGather", "ncclAllReduce", "ncclReduceScatter", "ncclBroadcast"};
    std::string text = is_message() ? "a message" : names[kind];
    text += " of " + std::to_string(count) + " elements of type " + std::to_string(type);
    if (kind == broadcast) text += " from " + std::to_string(peer);
    if (kind == all_reduce || kind == reduce_scatter) text += " by operation " + std::to_string(op);
    return text;
  }
};

template <class T>
void reduce_elements(ncclRedOp_t op, const void* from, void* to, std::size_t count) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = op == ncclMax   ? (in[i] > out[i] ? in[i] : out[i])
             : op == ncclMin ? (in[i] < out[i] ? in[i] : out[i])
                             : static_cast<T>(out[i] + in[i]);
}
inline void reduce_elements(const nccl_item& item, const void* from, void* to) {
  switch (item.type) {
    case ncclUint8:
      return reduce_elements<std::uint8_t>(item.op, from, to, item.count);
    case ncclInt32:
      return reduce_elements<std::int32_t>(item.op, from, to, item.count);
    case ncclInt64:
      return reduce_elements<std::int64_t>(item.op, from, to, item.count);
    case ncclFloat32:
      return reduce_elements<float>(item.op, from, to, item.count);
    case ncclFloat64:
      return reduce_elements<double>(item.op, from, to, item.count);
    default:
      throw std::invalid_argument("a reduction of a type that the emulator does not know");
  }
}

/// Takes place when every rank's stream has come to its call: then what all bring is copied, and each rank's
/// own step writes its result.
class meeting {
 public:
  explicit meeting(int ranks) : arrivals_(static_cast<std::size_t>(ranks)) {}

  /// Rank `at` of the meeting calls `item`, at this step of its stream; returns what disagrees, or nothing.
  std::string post(int at, const nccl_item& item, std::shared_ptr<stream> where, std::uint64_t position) {
    std::string problem;
    for (const arrival& other : arrivals_)
      if (other.where && other.item.signature() != item.signature())
        problem = item.signature() + " meets " + other.item.signature();
    arrival& mine = arrivals_[static_cast<std::size_t>(at)];
    mine.item = item;
    mine.where = std::move(where);
    mine.position = position;
    return problem;
  }
  /// A rank that aborts takes nothing with it that is not copied yet.
  void withdraw(int at) { arrivals_[static_cast<std::size_t>(at)].gone = true; }

  /// Runs every rank's stream up to its call.
  bool ready(machine& m) {
    if (held_) return true;
    for (const arrival& a : arrivals_)
      if (!a.where || a.gone || !m.advance(*a.where, a.position)) return false;
    return true;
  }
  /// Copies what all ranks bring, once. What any of them did before is now before what rank `at` does next.
  void hold(machine& m, int at) {
    if (!held_)
      for (const arrival& a : arrivals_) {
        all_.join(a.where->clock);
        all_.steps[a.where->number] = a.position + 1;
      }
    if (m.races.enabled()) arrivals_[static_cast<std::size_t>(at)].where->clock.join(all_);
    if (held_) return;
    held_ = true;
    for (arrival& a : arrivals_) {
      const bool gives = a.item.kind != nccl_item::receive &&
                         (a.item.kind != nccl_item::broadcast || &a == &arrivals_[peer()]);
      const std::size_t blocks = a.item.kind == nccl_item::reduce_scatter ? arrivals_.size() : 1;
      const auto* const begin = static_cast<const char*>(a.item.input);
      if (!gives || a.item.bytes() == 0) continue;
      const char* const there = m.reading(begin, blocks * a.item.bytes(), "NCCL");
      a.data.assign(there, there + blocks * a.item.bytes());
    }
  }
  /// What an operation that was aborted leaves in the output of a rank is some result.
  void leave_anything(machine& m, int at) {
    for (std::size_t q = 0; q < blocks_of(at); ++q) static_cast<void>(block_of(m, at, q));
  }
  /// Writes the result of one rank.
  void deliver(machine& m, int at) {
    const auto mine = static_cast<std::size_t>(at);
    const nccl_item& item = arrivals_[mine].item;
    for (std::size_t q = 0; q < blocks_of(at); ++q) {
      char* const to = block_of(m, at, q);
      if (to == nullptr) continue;
      switch (item.kind) {
        case nccl_item::all_reduce:
          reduce(to, at, 0);
          break;
        case nccl_item::reduce_scatter:
          reduce(to, at, mine * item.bytes());
          break;
        default:
          std::memcpy(to, arrivals_[item.kind == nccl_item::broadcast ? peer() : q].data.data(),
                      item.bytes());
      }
    }
  }

 private:
  struct arrival {
    nccl_item item{};
    std::shared_ptr<stream> where;  ///< null until it is posted
    std::uint64_t position = 0;
    bool gone = false;
    std::vector<char> data;
  };

  /// How many blocks of its item's size a rank gets.
  std::size_t blocks_of(int at) const {
    const nccl_item& item = arrivals_[static_cast<std::size_t>(at)].item;
    if (item.bytes() == 0 || item.kind == nccl_item::send) return 0;
    return item.kind == nccl_item::all_gather ? arrivals_.size() : 1;
  }
  /// Where block `q` goes; null for a rank's own one that lies there: NCCL does not write that.
  char* block_of(machine& m, int at, std::size_t q) const {
    const nccl_item& item = arrivals_[static_cast<std::size_t>(at)].item;
    char* const to = static_cast<char*>(item.output) + q * item.bytes();
    const bool own = item.kind == nccl_item::all_gather
                         ? q == static_cast<std::size_t>(at)
                         : item.kind == nccl_item::broadcast && at == item.peer;
    return own && item.input == to ? nullptr : m.writing(to, item.bytes(), "NCCL");
  }
  std::size_t peer() const { return static_cast<std::size_t>(arrivals_[0].item.peer); }
  /// In an order that depends on the rank, as NCCL promises none.
  void reduce(char* to, int at, std::size_t offset) {
    const arrival& mine = arrivals_[static_cast<std::size_t>(at)];
    std::memcpy(to, mine.data.data() + offset, mine.item.bytes());
    for (std::size_t k = 1; k < arrivals_.size(); ++k)
      reduce_elements(mine.item,
                      arrivals_[(static_cast<std::size_t>(at) + k) % arrivals_.size()].data.data() + offset,
                      to);
  }

  std::vector<arrival> arrivals_;
  bool held_ = false;
  clock all_;  ///< of all ranks, when they meet
};

}  // namespace emulator
