// SPDX-License-Identifier: Apache-2.0
// The communicators of a mesh, made when they are asked for, one for each way to part the ranks.
#include "partita/comm/mesh.hpp"

#include "partita/memory/host.hpp"
#include "support/forwarding_transport.hpp"
#include "support/matrices.hpp"

namespace test_comm_mesh {

using namespace test_support;
constexpr axis_set row(axis::row), col(axis::col), depth(axis::depth);
using host_mesh = partita::mesh<partita::host>;

/// Counts how often its group is split.
class counting_transport final : public test_support::forwarding_transport {
 public:
  using forwarding_transport::forwarding_transport;

  int splits() const { return splits_; }
  std::shared_ptr<comm::transport> split(int color, int key, std::source_location where) override {
    ++splits_;
    return inner_->split(color, key, where);
  }

 private:
  int splits_ = 0;
};

TEST_CASE("mesh: communicators lie along the axes") {
  for (const partita::mesh_shape shape :
       {partita::mesh_shape{2, 3, 2}, partita::mesh_shape{1, 4, 1}, partita::mesh_shape{3, 1, 3}})
    on_mesh(shape, [&](const host_mesh& m) {
      CHECK(m.at() == shape.at(m.rank()));
      CHECK(m.size() == shape.size());
      for (unsigned bits = 0; bits < 8; ++bits) {
        const axis_set s(bits);
        const communicator& group = m.along(s);
        CHECK(group.size() == shape.size(s));
        CHECK(group.rank() == partita::partition::rank_in_group(shape, s, m.at()));
        CHECK(group.axis() == partition::name_of(s));
        const std::vector<partita::global_index> ones(static_cast<std::size_t>(group.size()), 1);
        std::vector<partita::global_index> all(ones.size()), expected;
        const partita::global_index me[] = {m.rank()};
        group.all_gather(std::span<const partita::global_index>(me),
                         std::span<const partita::global_index>(ones), std::span<partita::global_index>(all));
        for (int p = 0; p < group.size(); ++p)
          expected.push_back(shape.rank(partita::partition::group_member(shape, s, m.at(), p)));
        CHECK(all == expected);
      }
    });
  test_support::expect_error<partita::mesh_error>(3, "mesh 2x1x2 does not match 3 ranks",
                                                  [](const communicator& c) {
                                                    host_mesh(c, {2, 1, 2});
                                                  });
  test_support::expect_error<partita::mesh_error>(1, "mesh 0x1x1", [](const communicator& c) {
    host_mesh(c, {0, 1, 1});
  });
}

TEST_CASE("a mesh splits its ranks when they are asked for, once for each way to part them") {
  on_threads(6, [](const communicator& world) {
    const auto counted = std::make_shared<counting_transport>(world.transport());
    const host_mesh m(world.with_transport(counted), {2, 3, 1});
    CHECK(counted->splits() == 0);

    CHECK(m.along(axis_set()).size() == 1);
    CHECK(m.along(depth).size() == 1);
    CHECK(m.along(partita::partition::every_axis).size() == 6);
    CHECK(m.along(row | col).rank() == m.rank());
    CHECK(counted->splits() == 0);

    CHECK(m.along(row).size() == 2);
    CHECK(counted->splits() == 1);
    CHECK(&m.along(row) == &m.along(row));
    CHECK(m.control(row).rank() == m.at().row);
    CHECK(m.along(row | depth).size() == 2);
    CHECK(counted->splits() == 1);

    const host_mesh copy = m;
    CHECK(copy.control(col).size() == 3);
    CHECK(m.along(col).rank() == m.at().col);
    CHECK(counted->splits() == 2);
    for (const axis_set s : {row, row | depth, partita::partition::every_axis})
      CHECK(m.along(s).axis() == partition::name_of(s));
  });
}

TEST_CASE("a rank that asks a mesh where others do not is named with its line") {
  test_support::expect_error<partita::communication_error>(
      4, " calls split (mesh.cpp:", [](const communicator& world) {
        const host_mesh m(world, {2, 2, 1});
        if (world.rank() == 3)
          static_cast<void>(m.along(row));
        else
          static_cast<void>(world.all_reduce(1));
      });
}

/// As partita::reproducible makes it, but without verbs.
partita::device_queue<partita::host> reproducible_queue() {
  using mode = partita::memory::reproducible_sums<partita::host>;
  const partita::device_queue<partita::host> q;
  return q.with(std::make_shared<mode>(mode{q}));
}

TEST_CASE("a mesh of which some ranks are reproducible is refused on every rank") {
  on_threads(4, [](const communicator& world) {
    const auto queue = world.rank() == 2 ? reproducible_queue() : partita::device_queue<partita::host>();
    test_support::expect_error<partita::mesh_error>("only some ranks of a mesh have a queue that", [&] {
      host_mesh(world, {2, 2, 1}, queue);
    });
  });
}

TEST_CASE("groups along the axes of a reproducible mesh do not add up rounded numbers") {
  on_threads(4, [](const communicator& world) {
    const host_mesh m(world, {2, 2, 1}, reproducible_queue());
    const char* const what = "is not available on a reproducible mesh: its sums depend on the mesh";
    const partita::axis_set row = partita::axis::row;
    std::vector<double> x{1};
    const std::vector<double> two(2, 1);
    for (const auto* group : {&m.along(row), &m.control(row)}) {
      test_support::expect_error<partita::error>(what, [&] { group->all_reduce(x); });
      test_support::expect_error<partita::error>(what, [&] { (void)group->reduce_scatter(two); });
      group->all_reduce(x, partita::reduction::max);
      CHECK(group->all_reduce(partita::global_index{1}) == 2);
    }
    const host_mesh part = host_mesh::alone(m);
    for (const auto* ranks : {&m.world(), &m.whole(), &part.whole()}) {
      test_support::expect_error<partita::error>(what, [&] { ranks->all_reduce(x); });
      CHECK(ranks->all_reduce(1.0, partita::reduction::max) == 1);
      CHECK(ranks->all_reduce(partita::global_index{1}) == 4);
    }
    CHECK(m.with_exact_sums().world().all_reduce(1.0) == 4);
    CHECK(part.with_exact_sums().whole().all_reduce(1.0) == 4);
    CHECK(host_mesh(m.world(), m.shape()).world().all_reduce(1.0) == 4);
    test_support::expect_error<partita::error>(what, [&] { m.sum_along(row, x); });
    test_support::expect_error<partita::error>(what, [&] { m.sum_along(partita::axis::depth, x); });
    m.sum_along({}, x);
    CHECK(m.with_exact_sums() == m);
    CHECK(!m.with_exact_sums().reproducible());
    CHECK(&m.with_exact_sums().along(row) != &m.along(row));
    m.with_exact_sums().sum_along(row, x);
    CHECK(x == std::vector<double>{2});
  });
}

TEST_CASE("a part of a mesh is one rank, and sums over all of them only where sums are reproducible") {
  for (const bool all : {false, true})
    on_threads(6, [&](const communicator& world) {
      const host_mesh m(world, {2, 3, 1},
                        all ? reproducible_queue() : partita::device_queue<partita::host>());
      const host_mesh part = host_mesh::alone(m);
      CHECK(part.size() == 1);
      CHECK(part.reproducible() == all);
      CHECK(part.is_part() == all);
      CHECK(!m.is_part());
      CHECK(m.whole().size() == 6);
      CHECK(part.whole().size() == (all ? 6 : 1));
      CHECK(part.whole().rank() == (all ? world.rank() : 0));
    });
}

}  // namespace test_comm_mesh
