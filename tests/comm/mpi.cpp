// SPDX-License-Identifier: Apache-2.0
// The laws of a communicator over MPI, checked or not, and by MPI's own collectives.
#include "partita/comm/mpi.hpp"

#include <doctest/doctest.h>

#include "laws/on_the_host.hpp"
#include "support/mpi_world.hpp"

namespace laws = test_support::laws;

TEST_CASE("mpi, checked") { laws::on_the_host(partita::mpi::world(MPI_COMM_WORLD, {.checked = true})); }

TEST_CASE("mpi, unchecked") { laws::on_the_host(partita::mpi::world(MPI_COMM_WORLD, {.checked = false})); }

TEST_CASE("mpi, another library than the one that this was compiled for is refused") {
  using partita::mpi::detail::require_library;
  require_library("Open MPI v4.", "Open MPI v4.1.4, package: Debian OpenMPI");
  require_library("MPICH", "MPICH Version:      4.0.2\nMPICH Release date: ...");
  require_library("MPICH", "Intel(R) MPI Library 2021.9 for Linux* OS");
  require_library("", "another one");
  CHECK_THROWS_WITH_AS(require_library("Open MPI v4.", "Open MPI v5.0.3, package: ..."),
                       "this program was compiled for Open MPI v4.x, and the MPI that was loaded is Open MPI "
                       "v5.0.3; start it with the libraries of the former",
                       partita::communication_error);
  CHECK_THROWS_AS(require_library("Open MPI v4.", "MPICH Version: 4.0.2"), partita::communication_error);
  CHECK_THROWS_AS(require_library("MPICH", "Open MPI v4.1.4"), partita::communication_error);
}

TEST_CASE("mpi, native collectives") {
  using partita::mpi::collectives;
  laws::on_the_host(
      {partita::mpi::world(MPI_COMM_WORLD, {.checked = false, .collectives = collectives::native}), true});
  const partita::communicator c =
      partita::mpi::world(MPI_COMM_WORLD, {.checked = true, .collectives = collectives::native});
  std::vector<float> sums = laws::values<float>(c.rank(), 0, 1000);
  c.all_reduce(sums);
  std::vector<float> of_first = sums;
  c.broadcast(of_first, 0);
  laws::check_same(c, "sums of all ranks", 0, sums, of_first);
  CHECK_THROWS_WITH_AS((void)partita::mpi::world(
                           MPI_COMM_WORLD, {.device_pointers = true, .collectives = collectives::native}),
                       "native collectives of MPI are for host memory, not for device pointers",
                       partita::communication_error);
}

namespace {

/// Blocks that go along a chain in pieces, or that MPI does not send before they are received, two at once.
void large_blocks(const partita::communicator& c) {
  constexpr std::size_t n = 40'001;
  const int p = c.size();
  for (int root = 0; root < p; ++root) {
    std::vector<double> one(n), two(2 * n);
    if (c.rank() == root) std::iota(one.begin(), one.end(), root);
    if (c.rank() == (root + 1) % p) std::iota(two.begin(), two.end(), -root);
    partita::request first = c.start_broadcast(one, root), second = c.start_broadcast(two, (root + 1) % p);
    first.wait();
    second.wait();
    CHECK(one.front() == root);
    CHECK(one.back() == root + static_cast<double>(n - 1));
    CHECK(std::accumulate(one.begin(), one.end(), 0.0) == n * (root + (n - 1) / 2.0));
    CHECK(std::accumulate(two.begin(), two.end(), 0.0) == 2 * n * (-root + (2 * n - 1) / 2.0));
  }
  std::vector<double> sum(n, c.rank() + 1), mine(n, c.rank());
  partita::request reduced = c.start_all_reduce(sum);
  const std::vector<double> all = c.all_gather(mine);
  reduced.wait();
  CHECK(sum == std::vector<double>(n, p * (p + 1) / 2.0));
  for (int q = 0; q < p; ++q) CHECK(all[static_cast<std::size_t>(q) * n + n - 1] == q);
}

}  // namespace

TEST_CASE("mpi, large blocks") {
  const partita::communicator& world = test_support::mpi_world();
  large_blocks(world);
  large_blocks(world.split(world.rank() / 3, -world.rank(), "part"));
}

TEST_CASE("mpi, groups that wait in another order than their operations began") {
  const partita::communicator& world = test_support::mpi_world();
  const partita::communicator other = world.split(0, -world.rank(), "backwards");
  for (int root = 0; root < world.size(); ++root) {
    std::vector<double> a(50'000, world.rank()), b(a);
    partita::request x = world.start_broadcast(a, root), y = other.start_broadcast(b, root);
    if (world.rank() % 2 == 0) {
      x.wait();
      y.wait();
    } else {
      y.wait();
      x.wait();
    }
    CHECK(a.back() == root);
    CHECK(b.back() == world.size() - 1 - root);
  }
}
