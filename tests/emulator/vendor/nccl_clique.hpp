// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicators of the emulated NCCL: members, how calls meet, and what goes wrong.
#include <map>
#include <tuple>

#include "nccl_meeting.hpp"

namespace emulator {

/// All ranks of one communicator.
struct clique {
  explicit clique(int ranks) : size(ranks), devices(static_cast<std::size_t>(ranks), -1) {}

  struct split_call {
    int color = 0, key = 0;
    bool called = false;
  };
  struct split_round {
    std::vector<split_call> calls;
    std::map<int, std::shared_ptr<clique>> made;  ///< by color
  };

  int size, joined = 0;
  std::vector<int> devices;
  std::string refusal;  ///< why the ranks cannot form a communicator
  std::map<std::tuple<int, int, std::uint64_t>, std::weak_ptr<meeting>> meetings;
  std::map<std::uint64_t, split_round> splits;
  ncclResult_t failure = ncclSuccess;  ///< seen by every rank
  std::string why;

  void fail(ncclResult_t code, const std::string& text) {
    if (failure != ncclSuccess) return;
    failure = code;
    why = text;
  }
  /// Number `k` of the messages between two ranks, or of the collectives.
  std::shared_ptr<meeting> find(int from, int to, std::uint64_t k) {
    if (meetings.size() > 256)
      std::erase_if(meetings, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<meeting>& slot = meetings[{from, to, k}];
    std::shared_ptr<meeting> m = slot.lock();
    if (!m) slot = m = std::make_shared<meeting>(from < 0 ? size : 2);
    return m;
  }
};

/// What tests make NCCL do to the rank of a device.
struct nccl_plan {
  int calls_before = 0;
  ncclResult_t code = ncclSuccess;  ///< the asynchronous error, or success for a call that never ends
};
std::map<int, nccl_plan>& nccl_plans();

}  // namespace emulator

/// One rank's end. Shared with the steps that it enqueued, which outlive the handle.
struct emulated_nccl_end {
  std::shared_ptr<emulator::clique> group;
  int rank = 0, device = 0;
  bool blocking = true;
  std::function<bool()> pending;  ///< goes on with a call that is in progress; true when that is complete
  ncclResult_t failure = ncclSuccess;
  std::string why;
  /// Of this rank's communicators that share their resources: when one is aborted, none of them works any
  /// more, but says that it does.
  std::shared_ptr<bool> family_aborted = std::make_shared<bool>(false);
  bool aborted = false;
  std::uint64_t collectives = 0, splits = 0;
  std::map<std::pair<int, int>, std::uint64_t> messages;  ///< by sender and receiver
  std::shared_ptr<emulator::stream> last_stream;
  std::uint64_t last_position = 0;

  ncclResult_t fail(ncclResult_t code, const std::string& text) {
    why = text;
    return code;
  }
  ncclResult_t broken() const { return failure != ncclSuccess ? failure : group->failure; }
};
struct ncclComm {
  std::shared_ptr<emulated_nccl_end> end;
};

namespace emulator {

using nccl_end = emulated_nccl_end;

/// One call of a rank: the operations of a group, as one step of a stream.
class nccl_call {
 public:
  nccl_call(std::shared_ptr<nccl_end> end, std::vector<nccl_item> items)
      : end_(std::move(end)), items_(std::move(items)) {
    const auto plan = nccl_plans().find(end_->device);
    if (plan == nccl_plans().end() || plan->second.calls_before-- > 0) return;
    hangs_ = true;
    end_->failure = plan->second.code;
    if (end_->failure != ncclSuccess) end_->why = "an asynchronous error that a test asked for";
    nccl_plans().erase(plan);
  }

  /// Joins the meetings, at the next step of `s`.
  void post(const std::shared_ptr<stream>& s) {
    clique& group = *end_->group;
    for (const nccl_item& item : items_) {
      const bool sends = item.kind == nccl_item::send;
      const int from = !item.is_message() ? -1 : sends ? end_->rank : item.peer;
      const int to = !item.is_message() ? -1 : sends ? item.peer : end_->rank;
      // What a rank sends itself is met twice, so both sides are counted.
      const std::uint64_t k =
          item.is_message() ? end_->messages[{2 * from + (sends ? 0 : 1), to}]++ : end_->collectives++;
      const std::shared_ptr<meeting> met = group.find(from, to, k);
      const int at = !item.is_message() ? end_->rank : sends ? 0 : 1;
      if (const std::string problem = met->post(at, item, s, s->given); !problem.empty())
        group.fail(ncclInternalError, "rank " + std::to_string(end_->rank) + ": " + problem);
      if (hangs_) met->withdraw(at);
      met_.emplace_back(met, at);
    }
    end_->last_stream = s;
    end_->last_position = s->given + 1;
  }

  bool run(machine& m) {
    if (end_->aborted || *end_->family_aborted) {
      for (auto& [met, at] : met_) {
        met->withdraw(at);
        met->leave_anything(m, at);
      }
      return true;
    }
    if (hangs_ || end_->broken() != ncclSuccess) return false;
    for (auto& [met, at] : met_)
      if (!met->ready(m)) return false;
    for (auto& [met, at] : met_) met->hold(m, at);
    for (auto& [met, at] : met_) met->deliver(m, at);
    return true;
  }

 private:
  std::shared_ptr<nccl_end> end_;
  std::vector<nccl_item> items_;
  std::vector<std::pair<std::shared_ptr<meeting>, int>> met_;
  bool hangs_ = false;
};

}  // namespace emulator
