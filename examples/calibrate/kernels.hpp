// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long kernels take in the training of models on this machine.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../ranks/dense_products.hpp"
#include "graphs.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/memory/kernel_rates.hpp"
#include "partita/train/link_trainer.hpp"

namespace calibration {

namespace nn = partita::nn;

/// The processor time of this thread, in seconds.
inline double processor_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// A model to train, on a graph, by so many ranks.
struct training_case {
  const nn::model_row* model = nullptr;
  graph_size graph;
  int hidden = 16;
  partita::policy policy = partita::row_1d;
  int ranks = 1;
  int epochs = 2;
  bool covers = false;  ///< row_exchange::cover
  /// Links are trained on, and score pairs so.
  std::optional<nn::link_decoding> links = {};
};

/// First every model, with sparse features, under every policy and with covers, and links with every decoder,
/// small, so that there is each kernel that training has; then such cases at random, of sizes from those of a
/// cache to those of memory.
class cases {
 public:
  bool has_each_kernel() const { return number_ == of_vertices() + decoders.size(); }
  training_case next() {
    training_case c;
    c.model = &nn::model_rows[number_ % models];
    if (number_ < of_vertices()) {
      const std::size_t round = number_++ / models;
      c.graph.sparse = round == 0;
      c.covers = round == 2;
      if (round > 1) use(c, round == 2 ? partita::row_1d : policies_[round - 3]);
    } else if (!has_each_kernel()) {
      use(c, partita::row_1d);
      use_links(c, number_++ - of_vertices());
    } else {
      c.model = &nn::model_rows[draw(models)];
      c.epochs = 4;
      if (draw(8) == 0) use_links(c, draw(decoders.size()));
      if (draw(3) == 0) use(c, policies_[draw(policies_.size())]);
      c.covers = c.ranks > 1 && draw(4) == 0;
      constexpr int degrees[] = {4, 16, 64}, widths[] = {8, 16, 32, 64, 128, 256};
      c.graph.degree = degrees[draw(3)];
      c.graph.features = widths[draw(6)];
      c.hidden = widths[draw(6)];
      c.graph.classes = draw(2) == 0 ? 7 : 40;
      c.graph.sparse = draw(4) == 0;
      // About as many numbers for entries in a case, whatever its widths: some take long, and time is short.
      const double most = 3e7 / (c.graph.degree * std::max(c.graph.features, c.hidden));
      const auto scales = static_cast<std::size_t>(std::clamp(static_cast<int>(std::log2(most)), 8, 17) - 6);
      // Small kernels are in every case; most of an epoch's time is in large ones.
      c.graph.vertices = global_index{1} << (7 + std::max(draw(scales), draw(scales)));
      if (c.links) c.graph.vertices = std::max<global_index>(128, c.graph.vertices / 4);  // pairs have rows
    }
    if (c.model->reads_edge_types()) c.graph.relations = 2;
    if (c.model->reads_edge_vectors) c.graph.edge_features = 4;
    return c;
  }

 private:
  static constexpr std::size_t models = std::size(nn::model_rows);
  static constexpr std::array decoders{nn::link_decoding::dot, nn::link_decoding::distmult,
                                       nn::link_decoding::mlp};

  /// Cases of the first kind that are of vertices.
  std::size_t of_vertices() const { return models * (policies_.size() + 3); }

  void use(training_case& c, const partita::policy& p) const {
    c.policy = p;
    c.ranks = 4;
  }
  static void use_links(training_case& c, std::size_t decoder) {
    c.model = nn::find_row("gcn", nn::coupling::coupled, nn::aggregation::mean);
    c.links = decoders[decoder];
  }
  std::size_t draw(std::size_t below) {
    return static_cast<std::size_t>(partita::base::random_bits(7, draws_++, 0) % below);
  }

  std::vector<partita::policy> policies_{partita::named_policies.begin(), partita::named_policies.end()};
  std::size_t number_ = 0;
  std::int64_t draws_ = 0;
};

/// So many threads at a time.
class turns {
 public:
  explicit turns(int at_once) : free_(at_once) {}

  /// act(), when it is this thread's turn.
  template <class Act>
  auto take(const Act& act) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ > 0; });
    --free_;
    lock.unlock();
    struct end {
      turns& of;
      ~end() {
        const std::lock_guard lock(of.mutex_);
        ++of.free_;
        of.changed_.notify_one();
      }
    } at_end{*this};
    return act();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
};

/// Adds what kernels take in a few epochs of a case, without the first. Ranks are threads, of which `at_once`
/// run kernels at the same time. Throws what training does.
template <class T>
void measure_case(const training_case& c, int at_once, partita::memory::kernel_rates& rates) {
  using partita::host;
  partita::io::dataset data = random_graph(c.graph, 1);
  nn::training_options options;
  if (c.links) {
    // Of large graphs none is ranked, which takes long and has no kernels of its own.
    const double ranked = c.graph.vertices > graph_size().vertices ? 0 : 0.05;
    data =
        partita::graph::split_links(std::move(data), {.validation = ranked, .test = 0, .columns = c.hidden});
    options.links = {.width = c.hidden, .decoder = *c.links};
  }
  options.model = c.model->name;
  options.coupling = c.model->coupling;
  options.aggregation = c.model->aggregation;
  options.hidden = {c.hidden};
  options.epochs = c.epochs;
  if (c.covers && c.model->reads("exchange")) options.exchange = partita::row_exchange::cover;
  turns cores(at_once);
  std::mutex adding;
  const auto train = [&](const partita::communicator& world) {
    bool is_warm = false;
    const auto queue = partita::memory::observed(
        partita::device_queue<host>(1, dense_products()),
        [&](const partita::memory::kernel_call& call, partita::base::function_reference<void()> run) {
          const double seconds = cores.take([&] {
            const double begin = processor_time();
            run();
            return processor_time() - begin;
          });
          const std::lock_guard lock(adding);
          if (is_warm && seconds > 0) rates.add(call, seconds);
        });
    const partita::mesh<host> mesh(world, partita::default_mesh(c.policy, world.size()), queue);
    const nn::epoch_observer warm = [&](const nn::epoch_report&) { is_warm = true; };
    if (c.links)
      nn::link_trainer<T, host>(mesh, data, options, c.policy).run(warm);
    else
      nn::train_model<T>(mesh, data, options, c.policy, warm);
  };
  if (c.ranks > 1) return partita::threads::run(c.ranks, train);
  partita::threads::run(at_once, [&](const partita::communicator&) { train(partita::self::world()); });
}

/// What kernels take that training in T has, measured for so many seconds, and at least once each.
/// tell(seconds, measurements) is called now and then.
template <class T>
partita::memory::kernel_rates measure_kernels(double seconds, int at_once,
                                              const std::function<void(double, int)>& tell) {
  partita::memory::kernel_rates rates;
  cases all;
  const auto begin = std::chrono::steady_clock::now();
  for (double spent = 0; spent < seconds || !all.has_each_kernel();) {
    measure_case<T>(all.next(), at_once, rates);
    spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    int samples = 0;
    rates.for_each([&](const std::string&, const auto&) { ++samples; });
    tell(spent, samples);
  }
  return rates;
}

}  // namespace calibration
