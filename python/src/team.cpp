// SPDX-License-Identifier: Apache-2.0
#include "team.hpp"

#include <algorithm>
#include <chrono>
#include <nanobind/nanobind.h>
#include <sstream>

#include "../../examples/ranks/dense_products.hpp"
#include "partita/comm/cores.hpp"
#include "partita/compiled/algebra.hpp"

namespace partita::python {

team::team(int ranks) : worlds_(static_cast<std::size_t>(ranks), self::world()) {
  if (ranks == 1) return;
  busy_ = worlds_.size();
  runner_ = std::async(std::launch::async, [this, ranks] {
    std::exception_ptr failure;
    try {
      threads::run(ranks, [this](const communicator& world) { serve(world); });
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    failure_ = failure, ended_ = true;
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return busy_ == 0 || ended_; });
  if (failure_) std::rethrow_exception(failure_);
}

team::team(const communicator& world) : worlds_{world} {}

team::~team() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

void team::serve(const communicator& world) {
  const auto place = static_cast<std::size_t>(world.rank());
  std::unique_lock lock(mutex_);
  worlds_[place] = world;
  for (std::uint64_t done = 0;; ++done) {
    if (--busy_ == 0) changed_.notify_all();
    changed_.wait(lock, [&] { return number_ != done || ends_; });
    if (ends_) return;
    const rank_work& work = *work_;
    lock.unlock();
    try {
      work(place, world);
    } catch (...) {
      lock.lock();
      ends_ = true;
      changed_.notify_all();
      throw;
    }
    lock.lock();
  }
}

void team::run(const rank_work& work, const std::function<void()>& wait) {
  const nanobind::gil_scoped_release free;
  const std::lock_guard one_at_a_time(call_);
  if (!runner_.valid()) return work(0, worlds_.front());
  std::unique_lock lock(mutex_);
  if (ended_ || ends_) throw error("the ranks of this object have ended with an error; make it anew");
  work_ = &work;
  busy_ = worlds_.size();
  ++number_;
  changed_.notify_all();
  const auto is_done = [&] { return ended_ || (busy_ == 0 && !ends_); };
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), is_done)) {
    if (!wait) continue;
    lock.unlock();
    wait();
    lock.lock();
  }
  if (failure_) std::rethrow_exception(failure_);
}

traffic team::received() const {
  traffic all;
  for (const communicator& world : worlds_) all += world.ledger().total();
  return all;
}

mesh_shape place::shape(int ranks) const {
  const partita::policy& p = find_policy(policy);
  if (mesh.empty()) return default_mesh(p, ranks);
  mesh_shape m;
  char x = 0;
  std::istringstream(mesh) >> m.row >> x >> m.col >> x >> m.depth;
  if (to_string(m) != mesh)
    base::throw_error<mesh_error>({"a mesh is written as ROWxCOLxDEPTH, like 2x2x1, not '", mesh, "'"});
  require_mesh(p, m, ranks);
  return m;
}

std::function<device_queue<host>()> place::queues(int ranks) const {
  const int share = std::max(1, comm::count(comm::usable_cores()) / ranks);
  return [own = threads > 0 ? threads : share] { return device_queue<host>(own, dense_products()); };
}

std::shared_ptr<team>& shared_team() {
  static std::shared_ptr<team> ranks;
  return ranks;
}

std::shared_ptr<team> current() {
  std::shared_ptr<team>& ranks = shared_team();
  if (ranks == nullptr || ranks->has_ended()) ranks = std::make_shared<team>(ranks ? ranks->size() : 1);
  return ranks;
}

}  // namespace partita::python
