#pragma once
// What ranks of the stand-in's NCCL meet in: a collective of all, or a message between two.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "machine.hpp"
#include "nccl_types.h"

namespace stand_in {

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
    constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
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
      throw std::invalid_argument("a reduction of a type that the stand-in does not know");
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
  /// Copies what all ranks bring, once.
  void hold() {
    if (held_) return;
    held_ = true;
    for (arrival& a : arrivals_) {
      const bool gives = a.item.kind != nccl_item::receive &&
                         (a.item.kind != nccl_item::broadcast || &a == &arrivals_[peer()]);
      const std::size_t blocks = a.item.kind == nccl_item::reduce_scatter ? arrivals_.size() : 1;
      const auto* const begin = static_cast<const char*>(a.item.input);
      if (gives) a.data.assign(begin, begin + blocks * a.item.bytes());
    }
  }
  /// Writes the result of one rank.
  void deliver(int at) {
    const arrival& mine = arrivals_[static_cast<std::size_t>(at)];
    const std::size_t bytes = mine.item.bytes();
    char* const to = static_cast<char*>(mine.item.output);
    if (bytes == 0) return;
    switch (mine.item.kind) {
      case nccl_item::all_gather:
        for (std::size_t q = 0; q < arrivals_.size(); ++q)
          std::memcpy(to + q * bytes, arrivals_[q].data.data(), bytes);
        return;
      case nccl_item::broadcast:
        std::memcpy(to, arrivals_[peer()].data.data(), bytes);
        return;
      case nccl_item::receive:
        std::memcpy(to, arrivals_[0].data.data(), bytes);
        return;
      case nccl_item::all_reduce:
        return reduce(at, 0);
      case nccl_item::reduce_scatter:
        return reduce(at, static_cast<std::size_t>(at) * bytes);
      case nccl_item::send:
        return;
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

  std::size_t peer() const { return static_cast<std::size_t>(arrivals_[0].item.peer); }
  /// In an order that depends on the rank, as NCCL promises none.
  void reduce(int at, std::size_t offset) {
    const arrival& mine = arrivals_[static_cast<std::size_t>(at)];
    std::memcpy(mine.item.output, mine.data.data() + offset, mine.item.bytes());
    for (std::size_t k = 1; k < arrivals_.size(); ++k)
      reduce_elements(mine.item,
                      arrivals_[(static_cast<std::size_t>(at) + k) % arrivals_.size()].data.data() + offset,
                      mine.item.output);
  }

  std::vector<arrival> arrivals_;
  bool held_ = false;
};

}  // namespace stand_in
