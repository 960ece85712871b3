// SPDX-License-Identifier: Apache-2.0
#pragma once
/// An emulated cluster: the ranks of another transport, for instance threads, over a network with given
/// latency and bandwidth, in virtual or in real time.
///
/// A rank's virtual clock advances by the processor time of its thread, or by earlier measurements of its
/// kernels (see charged), and to the end of each operation it waits for; so using more ranks than cores
/// changes nothing but the time to the result. An operation in which a rank receives m messages and n bytes,
/// and sends n' bytes, begins when the last rank it needs has started it and this rank's link is free, and
/// takes
///
///     latency * ceil(log2 p) (send, receive: latency) + max(n, n') / bandwidth
///
/// where traffic between nodes uses the node's network, shared by its ranks, and the rest uses the node's
/// memory. Computation between start and wait overlaps with communication.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/memory/kernel_rates.hpp"

namespace partita::emulated {

/// Seconds per message, and bytes per second.
struct link {
  double latency = 0, bandwidth = 1e18;
};

/// A machine: P ranks, in order, on nodes with equally many ranks.
struct machine {
  int ranks_of_node = 1;
  link inside = {};           ///< between a rank and others on its node
  link between = {};          ///< between a node and all others, shared by its ranks
  double slower = 1;          ///< its seconds of processor time for one second here
  bool in_real_time = false;  ///< ranks sleep until an operation is complete
  /// Kernel times, see charged; if null, the processor time of the ranks' threads counts.
  std::shared_ptr<const memory::kernel_rates> kernels = {};
};

namespace detail {

/// The clock of a rank.
class rank_clock {
 public:
  explicit rank_clock(const machine& m) : machine_(m) { resume(); }

  double now() {
    if (machine_.in_real_time)
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    if (machine_.kernels) return time_;
    const double spent = processor_time();
    time_ += machine_.slower * (spent - counted_);
    counted_ = spent;
    return time_;
  }
  const machine& of() const { return machine_; }
  /// Adds the time of a kernel that has run.
  void charge(const memory::kernel_call& call) { time_ += machine_.slower * machine_.kernels->seconds(call); }
  /// Excludes the processor time since the last now() from the rank's time.
  void resume() { counted_ = processor_time(); }
  void advance_to(double time) {
    if (machine_.in_real_time) {
      if (const double left = time - now(); left > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(left));
      return;
    }
    resume();
    time_ = std::max(time_, time);
  }

  /// When this rank's link, to other nodes and within its own, will have sent all data given to it.
  double free_between = 0, free_inside = 0;
  /// See rehearsal.
  bool rehearses = false;

 private:
  static double processor_time() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  machine machine_;
  double time_ = 0, counted_ = 0;
};

/// The ranks of a group of `inner`, on nodes of a machine. Collective: the constructor.
class emulated_transport final : public comm::transport {
 public:
  emulated_transport(std::shared_ptr<comm::transport> inner, const machine& m,
                     std::shared_ptr<rank_clock> clock, std::vector<int> nodes)
      : inner_(std::move(inner)),
        beside_(inner_->split(0, inner_->rank(), std::source_location::current())),
        machine_(m),
        clock_(std::move(clock)),
        nodes_(std::move(nodes)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  std::uint64_t start(const comm::collective& op) override {
    const std::uint64_t token = next_++;
    flight& f = flights_[token];
    f.started = clock_->now();
    bool travels = false;
    try {
      f.of_ranks = std::make_unique<times>(size());
      f.of_ranks->mine = f.started;
      lost_.reserve(lost_.size() + flights_.size());
      f.travels = !clock_->rehearses || is_control(op);
      if (f.travels) f.token = inner_->start(op);
      travels = f.travels;
      f.times_token = beside_->start(time_message(op, *f.of_ranks));
    } catch (...) {
      if (travels) inner_->abandon(op, f.token);
      flights_.erase(token);
      throw;
    }
    clock_->resume();
    return token;
  }
  void finish(const comm::collective& op, std::uint64_t token) override {
    const double waits = clock_->now();
    flight f = std::move(flights_.extract(token).mapped());
    if (f.travels) inner_->finish(op, f.token);
    beside_->finish(time_message(op, *f.of_ranks), f.times_token);
    clock_->advance_to(std::max(waits, completion(op, f)));
  }
  void abandon(const comm::collective& op, std::uint64_t token) noexcept override {
    const auto f = flights_.find(token);
    if (f == flights_.end()) return;
    beside_->abandon(time_message(op, *f->second.of_ranks), f->second.times_token);
    if (f->second.travels) inner_->abandon(op, f->second.token);
    lost_.push_back(std::move(f->second.of_ranks));
    flights_.erase(f);
  }
  std::shared_ptr<transport> split(int color, int key, std::source_location where) override {
    std::shared_ptr<transport> part = inner_->split(color, key, where);
    std::vector<int> nodes(static_cast<std::size_t>(part->size()));
    const std::vector<global_index> ones(nodes.size(), 1);
    const std::int32_t mine = nodes_[static_cast<std::size_t>(rank())];
    std::vector<std::int32_t> all(nodes.size());
    comm::collective op;
    op.kind = operation::all_gather;
    op.type = comm::element_type::i32;
    op.count = 1;
    op.input = &mine;
    op.output = all.data();
    op.output_counts = ones;
    op.where = where;
    part->finish(op, part->start(op));
    std::ranges::copy(all, nodes.begin());
    clock_->resume();
    return std::make_shared<emulated_transport>(std::move(part), machine_, clock_, std::move(nodes));
  }
  std::shared_ptr<transport> on_memory(std::shared_ptr<comm::device_memory> memory) override {
    return memory == nullptr
               ? std::make_shared<emulated_transport>(inner_->on_memory(nullptr), machine_, clock_, nodes_)
               : inner_->on_memory(std::move(memory));
  }
  void check() const override { inner_->check(); }
  const std::shared_ptr<rank_clock>& clock() const { return clock_; }

 private:
  /// Whether a rehearsal must send it: indices, counts, and numbers by which ranks agree on decisions.
  static bool is_control(const comm::collective& op) {
    const bool integers = op.type == comm::element_type::i32 || op.type == comm::element_type::i64;
    return integers ||
           (op.count <= 16 && (op.kind == operation::all_reduce || op.kind == operation::broadcast));
  }

  /// The times at which ranks have started an operation.
  struct times {
    explicit times(int ranks) : ones(static_cast<std::size_t>(ranks), 1), all(ones.size()) {}
    double mine = 0;
    std::vector<global_index> ones;
    std::vector<double> all;
  };
  struct flight {
    double started = 0;
    bool travels = false;
    std::uint64_t token = 0, times_token = 0;
    std::unique_ptr<times> of_ranks = nullptr;
  };

  /// The exchange of times that goes with an operation: among all ranks, or to the receiver.
  static comm::collective time_message(const comm::collective& op, times& t) {
    comm::collective m;
    m.type = comm::element_type::f64;
    m.where = op.where;
    m.axis = op.axis;
    if (op.kind == operation::send || op.kind == operation::receive) {
      m.kind = op.kind;
      m.peer = op.peer;
      m.tag = op.tag;
      m.count = 1;
      m.input = &t.mine;
      m.output = t.all.data();
      return m;
    }
    m.kind = operation::all_gather;
    m.count = 1;
    m.input = &t.mine;
    m.output = t.all.data();
    m.output_counts = t.ones;
    return m;
  }
  bool near(int other) const {
    return nodes_[static_cast<std::size_t>(other)] == nodes_[static_cast<std::size_t>(rank())];
  }

  /// Elements that this rank receives from, and sends to, each other rank. Reductions and broadcasts pass
  /// pieces around a ring: from the previous rank, to the next.
  void for_neighbours(const comm::collective& op, auto f) const {
    const int p = size(), me = rank();
    const auto at = [](std::span<const global_index> counts, int q) {
      return counts[static_cast<std::size_t>(q)];
    };
    const auto round = [&](global_index in, global_index out) {
      f((me + p - 1) % p, in, global_index{0});
      f((me + 1) % p, global_index{0}, out);
    };
    switch (op.kind) {
      case operation::send:
        return f(op.peer, global_index{0}, op.count);
      case operation::receive:
        return f(op.peer, op.count, global_index{0});
      case operation::all_to_all:
        for (int q = 0; q < p; ++q)
          if (q != me) f(q, at(op.output_counts, q), at(op.input_counts, q));
        return;
      case operation::broadcast:
        return round(me == op.peer ? 0 : op.count, (me + 1) % p == op.peer ? 0 : op.count);
      case operation::all_gather: {
        const global_index all = comm::offset_of(op.output_counts, p);
        return round(all - op.count, all - at(op.output_counts, (me + 1) % p));
      }
      case operation::reduce_scatter: {
        const global_index all = comm::offset_of(op.input_counts, p);
        return round(all - at(op.input_counts, (me + p - 1) % p), all - op.count);
      }
      case operation::all_reduce: {
        const global_index each = 2 * (op.count - comm::share_of(op.count, me, p).size());
        return round(each, each);
      }
    }
  }
  /// The latest start among the ranks that this one waits for: its senders, or all ranks for a sum.
  double begin_of(const comm::collective& op, const flight& f) const {
    double begin = f.started;
    const auto& all = f.of_ranks->all;
    if (op.kind == operation::receive) return std::max(begin, all.front());
    if (op.kind == operation::send) return begin;
    for (int q = 0; q < size(); ++q) {
      const bool needed = op.kind == operation::broadcast ? q == op.peer
                          : op.kind == operation::all_to_all
                              ? op.output_counts[static_cast<std::size_t>(q)] > 0
                              : true;
      if (needed) begin = std::max(begin, all[static_cast<std::size_t>(q)]);
    }
    return begin;
  }
  double completion(const comm::collective& op, const flight& f) {
    if (size() == 1 || op.splits) return f.started;
    double in[2] = {}, out[2] = {};
    bool any[2] = {};
    for_neighbours(op, [&](int other, global_index received, global_index sent) {
      const bool crosses = !near(other);
      any[crosses] = any[crosses] || op.kind != operation::all_to_all || received + sent > 0;
      in[crosses] += static_cast<double>(op.bytes(received));
      out[crosses] += static_cast<double>(op.bytes(sent));
    });
    const bool pair = op.kind == operation::send || op.kind == operation::receive;
    const double steps = pair ? 1 : std::ceil(std::log2(size()));
    const double begin = begin_of(op, f);
    double end = begin;
    for (const bool crosses : {false, true}) {
      if (!any[crosses]) continue;
      const link& l = crosses ? machine_.between : machine_.inside;
      const double bandwidth = l.bandwidth / (crosses ? machine_.ranks_of_node : 1);
      double& free = crosses ? clock_->free_between : clock_->free_inside;
      const double carried = std::max(begin, free) + std::max(in[crosses], out[crosses]) / bandwidth;
      free = carried;
      end = std::max(end, carried + steps * l.latency);
    }
    return end;
  }

  std::shared_ptr<comm::transport> inner_, beside_;  ///< the latter exchanges times
  machine machine_;
  std::shared_ptr<rank_clock> clock_;
  std::vector<int> nodes_;
  std::map<std::uint64_t, flight> flights_;
  std::vector<std::unique_ptr<times>> lost_;  ///< of abandoned operations
  std::uint64_t next_ = 0;
};

}  // namespace detail

/// The ranks of `world` as ranks of a machine, on host memory: operations take the time they would take on
/// that machine, which is also the time of ledger().seconds(), of the ledger and of training. A rank runs its
/// kernels on its own thread, one thread per rank. Collective. Throws mesh_error for a machine with less than
/// one rank on a node, or without bandwidth.
inline communicator cluster(const communicator& world, const machine& m) {
  if (m.ranks_of_node < 1 || !(m.inside.bandwidth > 0) || !(m.between.bandwidth > 0) || !(m.slower > 0))
    base::throw_error<mesh_error>({"a machine needs at least one rank per node, and positive bandwidths"});
  std::vector<int> nodes;
  for (int rank = 0; rank < world.size(); ++rank) nodes.push_back(rank / m.ranks_of_node);
  const auto clock = std::make_shared<detail::rank_clock>(m);
  world.ledger().use_clock([clock] { return clock->now(); });
  return world.with_transport(
      std::make_shared<detail::emulated_transport>(world.transport(), m, clock, std::move(nodes)));
}

namespace detail {

/// Throws error for a communicator that is not part of an emulated cluster.
inline const std::shared_ptr<rank_clock>& clock_of(const communicator& of_cluster) {
  const auto* const ranks = dynamic_cast<const emulated_transport*>(of_cluster.transport().get());
  if (ranks == nullptr) throw error("these ranks do not run on an emulated cluster");
  return ranks->clock();
}

}  // namespace detail

/// Whether these ranks belong to a cluster with kernel measurements. Local.
inline bool measures_kernels(const communicator& world) {
  const auto* const ranks = dynamic_cast<const detail::emulated_transport*>(world.transport().get());
  return ranks != nullptr && ranks->clock()->of().kernels != nullptr;
}

/// A copy of a queue whose kernels take the times measured for the machine; all other computation on a rank
/// takes no time. Local. Throws error for ranks outside a cluster, a machine without such measurements, and a
/// queue with far memory.
template <class Device>
device_queue<Device> charged(const communicator& of_cluster, const device_queue<Device>& q) {
  const auto clock = detail::clock_of(of_cluster);
  if (clock->of().kernels == nullptr) throw error("this machine has no measurements of kernels");
  return memory::observed(q, [clock](const memory::kernel_call& call, base::function_reference<void()> run) {
    if (!clock->rehearses || (call.rows == 1 && call.kernel == "rows: fill")) run();
    clock->charge(call);
  });
}

/// During its lifetime, kernels of charged queues and transfers of floating-point numbers take their time,
/// but do not happen: results are undefined. Single rows are filled nevertheless, so that an optimiser's
/// moments are numbers and pass checks. Every rank of the cluster must have one.
class rehearsal {
 public:
  explicit rehearsal(const communicator& of_cluster) : clock_(detail::clock_of(of_cluster)) {
    clock_->rehearses = true;
  }
  rehearsal(const rehearsal&) = delete;
  ~rehearsal() { clock_->rehearses = false; }

 private:
  std::shared_ptr<detail::rank_clock> clock_;
};

}  // namespace partita::emulated
