// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When the stages of a pipeline would work on which chunk, from what their work and messages cost.

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "partita/train/pipeline_order.hpp"

namespace bench {

using partita::nn::direction;

/// Lists have one element for all, or one for each. Times in seconds.
struct pipeline_costs {
  int stages = 4, chunks = 8;
  /// Runs of layers that each stage has. Run i of a stage is followed by run i of the next one, that of the
  /// last by run i + 1 of the first; all chunks pass through a run before the next one. Source: Lamy-Poirier,
  /// Breadth-first pipeline parallelism, MLSys 2023.
  int parts = 1;
  std::vector<double> forward{1e-3}, backward{1e-3};  ///< of a chunk of mean size: all layers of each stage
  std::vector<double> chunk_sizes{1};                 ///< relative to the mean
  std::vector<int> order{};          ///< of the chunks, see nn::chunk_order; ascending if empty
  double latency = 0;                ///< alpha: of a message
  std::vector<double> byte_time{0};  ///< beta: of each link, from stage s to the next one, and back
  double bytes = 0;                  ///< that pass from stage to stage, of a chunk of mean size
  /// As the published system does: all stages begin a slot together, and messages travel between slots.
  bool lock_step = false;
};

struct timed_task {
  direction way = direction::forward;
  int chunk = 0, part = 0;
  double begin = 0, end = 0;
};

struct pipeline_run {
  double seconds = 0;
  std::vector<std::vector<timed_task>> stages;  ///< in the order in which each works
  std::vector<double> links;                    ///< seconds with a message, in either direction

  double busy(std::size_t stage) const {
    return std::accumulate(stages[stage].begin(), stages[stage].end(), 0.0,
                           [](double sum, const timed_task& t) { return sum + (t.end - t.begin); });
  }
  /// Share of the time in which a stage does not work.
  double idle(std::size_t stage) const { return (seconds - busy(stage)) / seconds; }
  /// The mean over the stages.
  double bubble() const {
    double sum = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) sum += idle(s);
    return sum / static_cast<double>(stages.size());
  }
};

/// Runs the schedule of nn::pipeline_tasks. A stage begins a task when it is free and the input has arrived;
/// a link carries one message at a time in each direction, beside the work.
class pipeline_simulation {
 public:
  /// Throws error for lists of other lengths and an order that is no permutation.
  explicit pipeline_simulation(const pipeline_costs& costs) : costs_(costs) {
    check();
    const auto stages = static_cast<std::size_t>(costs.stages);
    const std::size_t levels = stages * static_cast<std::size_t>(costs.parts);
    for (auto& of_direction : arrival_)
      of_direction.assign(levels, std::vector<double>(static_cast<std::size_t>(costs.chunks), never));
    for (auto& of_direction : link_free_) of_direction.assign(stages, 0);
    arrival_[0].front().assign(arrival_[0].front().size(), 0);
    arrival_[1].back() = arrival_[0].front();
    run_.stages.resize(stages);
    run_.links.assign(stages, 0);
    tasks_ = partita::nn::pipeline_tasks(order_of_parts());
  }

  pipeline_run operator()() && {
    for (std::size_t left = tasks_.size() * run_.stages.size(); left > 0;) {
      const std::size_t done = costs_.lock_step ? slot() : as_far_as_possible();
      if (done == 0) throw partita::error("the stages wait for each other");
      left -= done;
    }
    run_.links.resize(run_.links.size() - (costs_.parts > 1 && costs_.stages > 1 ? 0 : 1));
    return std::move(run_);
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  template <class T>
  static T of(const std::vector<T>& list, std::size_t i) {
    return list[list.size() == 1 ? 0 : i];
  }
  void check() {
    const auto fits = [](const auto& list, int n, const char* what) {
      if (list.size() != 1 && list.size() != static_cast<std::size_t>(n))
        partita::base::throw_error<partita::error>({what, ": ", list.size(), " values for ", n});
    };
    if (costs_.stages < 1 || costs_.parts < 1) throw partita::error("a pipeline has a stage, and it a part");
    if (costs_.order.empty()) costs_.order = partita::nn::chunk_order(0, 0, costs_.chunks, false);
    if (!std::is_permutation(costs_.order.begin(), costs_.order.end(),
                             partita::nn::chunk_order(0, 0, costs_.chunks, false).begin()) ||
        static_cast<int>(costs_.order.size()) != costs_.chunks)
      throw partita::error("the order of chunks is no permutation of them");
    fits(costs_.forward, costs_.stages, "forward, stages");
    fits(costs_.backward, costs_.stages, "backward, stages");
    fits(costs_.chunk_sizes, costs_.chunks, "sizes of chunks");
    fits(costs_.byte_time, costs_.parts > 1 ? costs_.stages : costs_.stages - 1, "links");
  }

  /// Chunks of parts, as part x chunks + chunk, forward.
  std::vector<int> order_of_parts() const {
    std::vector<int> order;
    for (int part = 0; part < costs_.parts; ++part)
      for (const int chunk : costs_.order) order.push_back(part * costs_.chunks + chunk);
    return order;
  }

  struct place {
    std::size_t way, level, chunk;
  };
  place place_of(std::size_t stage) const {
    const partita::nn::pipeline_task& task = tasks_[run_.stages[stage].size()];
    return {task.direction == direction::forward ? 0u : 1u,
            static_cast<std::size_t>(task.chunk / costs_.chunks) * run_.stages.size() + stage,
            static_cast<std::size_t>(task.chunk % costs_.chunks)};
  }
  bool has_task(std::size_t stage) const { return run_.stages[stage].size() < tasks_.size(); }

  /// Works from `begin` on; returns when that ends.
  double work(std::size_t stage, const place& p, double begin) {
    const double all = of(p.way == 0 ? costs_.forward : costs_.backward, stage),
                 end = begin + all * of(costs_.chunk_sizes, p.chunk) / costs_.parts;
    run_.stages[stage].push_back({p.way == 0 ? direction::forward : direction::backward,
                                  static_cast<int>(p.chunk), static_cast<int>(p.level / run_.stages.size()),
                                  begin, end});
    run_.seconds = std::max(run_.seconds, end);
    return end;
  }
  /// Sends the result of a task that ended then, when the link is free; returns when it arrives.
  double send(std::size_t stage, const place& p, double end) {
    const std::size_t levels = arrival_[0].size(), stages = run_.stages.size();
    if (p.level == (p.way == 0 ? levels - 1 : 0)) return end;
    double& arrived = arrival_[p.way][p.way == 0 ? p.level + 1 : p.level - 1][p.chunk];
    if (stages == 1) return arrived = end;
    const std::size_t link = p.way == 0 ? stage : (stage + stages - 1) % stages;
    const double seconds =
        costs_.latency + of(costs_.byte_time, link) * costs_.bytes * of(costs_.chunk_sizes, p.chunk);
    run_.links[link] += seconds;
    return arrived = link_free_[p.way][link] = std::max(end, link_free_[p.way][link]) + seconds;
  }

  /// Every stage in turn does what it has the input for; how many tasks were done.
  std::size_t as_far_as_possible() {
    std::size_t done = 0;
    for (std::size_t s = 0; s < run_.stages.size(); ++s)
      for (; has_task(s); ++done) {
        const place p = place_of(s);
        const double input = arrival_[p.way][p.level][p.chunk];
        if (input == never) break;
        const double free = run_.stages[s].empty() ? 0 : run_.stages[s].back().end;
        send(s, p, work(s, p, std::max(free, input)));
      }
    return done;
  }

  /// One task of every stage that has the input for it, then their messages.
  std::size_t slot() {
    std::vector<std::pair<std::size_t, place>> ready;
    for (std::size_t s = 0; s < run_.stages.size(); ++s)
      if (has_task(s))
        if (const place p = place_of(s); arrival_[p.way][p.level][p.chunk] != never) ready.push_back({s, p});
    double end = slot_begin_;
    for (const auto& [s, p] : ready) end = std::max(end, work(s, p, slot_begin_));
    slot_begin_ = end;
    for (const auto& [s, p] : ready) slot_begin_ = std::max(slot_begin_, send(s, p, end));
    return ready.size();
  }

  pipeline_costs costs_;
  std::vector<partita::nn::pipeline_task> tasks_;  ///< of every stage; chunks of parts
  std::vector<std::vector<double>>
      arrival_[2];                    ///< by direction: of the input of a run of layers, of a chunk
  std::vector<double> link_free_[2];  ///< by direction, the link's end that sends
  double slot_begin_ = 0;
  pipeline_run run_;
};

inline pipeline_run simulate(const pipeline_costs& costs) { return pipeline_simulation(costs)(); }

}  // namespace bench
