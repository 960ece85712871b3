// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Transport over a group of threads.

#include "partita/comm/threads/group.hpp"
#include "partita/comm/transport.hpp"

namespace partita::comm::detail {

/// For host memory, or for a device shared by the ranks.
class thread_transport final : public transport {
 public:
  thread_transport(std::shared_ptr<thread_group> group, int rank,
                   std::shared_ptr<comm::device_memory> memory = nullptr)
      : group_(std::move(group)),
        memory_(memory),
        endpoint_(std::make_shared<thread_endpoint>(rank, memory)) {}

  int rank() const override { return endpoint_->rank(); }
  int size() const override { return group_->size(); }
  std::uint64_t start(const comm::collective& op) override { return group_->start(endpoint_, op); }
  void finish(const comm::collective& op, std::uint64_t token) override {
    group_->finish(*endpoint_, op, token);
  }
  void abandon(const comm::collective& op, std::uint64_t token) noexcept override {
    group_->abandon(*endpoint_, op, token);
  }
  std::shared_ptr<transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    return std::make_shared<thread_transport>(group_, rank(), std::move(memory));
  }
  void check() const override { group_->check(); }

  std::shared_ptr<transport> split(int color, int key, std::source_location where) override {
    const std::vector<global_index> counts(static_cast<std::size_t>(size()), 2);
    const global_index mine[] = {color, key};
    std::vector<global_index> all(2 * counts.size());
    comm::collective op;
    op.kind = operation::all_gather;
    op.type = comm::element_type::i64;
    op.count = 2;
    op.input = mine;
    op.output = all.data();
    op.output_counts = counts;
    op.splits = true;
    op.where = where;
    const auto endpoint = std::make_shared<thread_endpoint>(rank());
    const std::uint64_t token = group_->start(endpoint, op);
    group_->finish(*endpoint, op, token);

    std::vector<int> members;
    const auto key_of = [&](int q) { return all[2 * static_cast<std::size_t>(q) + 1]; };
    for (int q = 0; q < size(); ++q) {
      if (all[2 * static_cast<std::size_t>(q)] != color) continue;
      auto at = members.end();
      while (at != members.begin() && key_of(q) < key_of(*(at - 1))) --at;
      members.insert(at, q);
    }
    const auto me = std::find(members.begin(), members.end(), rank()) - members.begin();
    return std::make_shared<thread_transport>(group_->subgroup(token, color, members), static_cast<int>(me),
                                              memory_);
  }

 private:
  std::shared_ptr<thread_group> group_;
  std::shared_ptr<comm::device_memory> memory_;
  std::shared_ptr<thread_endpoint> endpoint_;
};

}  // namespace partita::comm::detail
