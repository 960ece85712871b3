// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Messages between neighbouring stages of a pipeline.

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "partita/train/pipeline_order.hpp"
#include "partita/train/stage_layers.hpp"

namespace partita::nn {

/// The same rank of every stage, and its messages to the previous and next stage: matrices of the same shape
/// and type of numbers on both sides, several of which may be in flight. Messages between two stages in one
/// direction arrive in the order in which they were sent.
template <class T, class Device>
class pipeline_link {
 public:
  using boundary = typename stage_layers<T, Device>::boundary;
  using rows_sent = typename stage_layers<T, Device>::sent;

  /// `stages`: the ranks of the line, in the order of their stages.
  pipeline_link(const communicator& stages, const device_queue<Device>& q)
      : stages_(stages), on_device_(stages) {
    if (const auto memory = device_memory_of(q)) on_device_ = stages.on_memory(memory);
  }

  const communicator& ranks() const { return stages_; }
  int stage() const { return stages_.rank(); }
  int stages() const { return stages_.size(); }
  bool has(int stage) const { return stage >= 0 && stage < stages(); }
  /// The name of what this stage does, for comm::in_task.
  std::string task(std::initializer_list<base::sentence_piece> what) const {
    return base::sentence_of({"stage ", stage(), ", ", base::sentence_of(what)});
  }

  /// The values of all ranks of the line, in their order. Collective over the line.
  template <class Value>
  std::vector<Value> of_all_stages(const std::vector<Value>& mine) const {
    return stages_.all_gather(mine, stages_.all_gather(static_cast<global_index>(mine.size())));
  }

  /// Begins to receive from a stage. The matrices must not be touched before arrive.
  void expect(const boundary& to, int from) {
    int k = 0;
    const auto start = [&](auto values) {
      if (!values.empty()) expected_.push_back(on_device_.start_receive(values, from, k));
    };
    for (; k < std::ssize(to); ++k)
      std::visit([&](auto* m) { start(m->values()); }, to[static_cast<std::size_t>(k)]);
  }
  /// Waits for the expected matrices.
  void arrive() { wait_for(expected_); }
  /// Begins to send to a stage. The matrices must not change before sent.
  void send(const rows_sent& what, int to) {
    int k = 0;
    const auto start = [&](auto values) {
      if (!values.empty()) sends_.push_back(on_device_.start_send(values, to, k));
    };
    for (; k < std::ssize(what); ++k)
      std::visit([&](auto* m) { start(m->values()); }, what[static_cast<std::size_t>(k)]);
  }
  /// Waits until everything has been sent.
  void sent() { wait_for(sends_); }

  /// Runs the tasks of one direction in order: work(c) once expected(c) has arrived from one stage; then
  /// output(c) is sent to the other, if there is one. The next task's input is received during work.
  template <class Expect, class Work, class Output>
  void flow(std::span<const pipeline_task> tasks, int from, int to, Expect expected, Work work,
            Output output) {
    const char* const what = from < to ? "forward" : "backward";
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto c = static_cast<std::size_t>(tasks[i].chunk);
      comm::in_task(task({"chunk ", c, ", ", what}), [&] {
        if (has(from) && i == 0) expect(expected(c), from);
        if (has(from)) arrive();
        if (has(from) && i + 1 < tasks.size())
          expect(expected(static_cast<std::size_t>(tasks[i + 1].chunk)), from);
        work(c);
        if (has(to)) send(output(c), to);
      });
    }
    comm::in_task(task({"end of ", what}), [&] { sent(); });
  }

  /// Seconds in arrive and sent since the last call.
  double taken_idle() { return std::exchange(idle_, 0); }

 private:
  void wait_for(std::vector<request>& all) {
    const double begin = stages_.ledger().seconds();
    for (request& r : all) r.wait();
    all.clear();
    idle_ += stages_.ledger().seconds() - begin;
  }

  communicator stages_, on_device_;
  std::vector<request> expected_, sends_;
  double idle_ = 0;
};

}  // namespace partita::nn
