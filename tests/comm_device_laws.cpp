// The laws of a communicator over memory of a device, on the stand-in: one rank alone, threads that share the
// device, and threads behind staging as MPI is.
#include <doctest/doctest.h>

#include "partita/comm/self.hpp"
#include "support/communicator_laws.hpp"
#include "support/device_room.hpp"
#include "support/ranks.hpp"
#include "support/staged_threads.hpp"

namespace laws = test_support::laws;
using partita::communicator;
using test_support::on_threads;
using test_support::staging;

namespace {

constexpr std::array some_rank_counts = {1, 2, 3, 4, 6, 9};

void on_a_device(const communicator& c) { laws::all(laws::on_a_device(c)); }

}  // namespace

TEST_CASE("one rank alone") { on_a_device(partita::self::world()); }

TEST_CASE("threads") {
  for (int ranks : some_rank_counts) {
    CAPTURE(ranks);
    on_threads(ranks, on_a_device);
  }
}

TEST_CASE("threads that stage") {
  for (int ranks : some_rank_counts) {
    CAPTURE(ranks);
    on_threads(ranks, [](const communicator& c) { on_a_device(staging(c)); });
  }
}

TEST_CASE("threads that stage only what they add") {
  for (int ranks : some_rank_counts) {
    CAPTURE(ranks);
    on_threads(ranks, [](const communicator& c) { on_a_device(staging(c, true)); });
  }
}
