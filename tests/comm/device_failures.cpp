// SPDX-License-Identifier: Apache-2.0
// Ranks that fail free others and leave device memory alone that is read; who disagrees is named.
#include <atomic>
#include <barrier>
#include <thread>

#include "emulator/control.hpp"
#include "partita/comm/mesh.hpp"
#include "partita/comm/self.hpp"
#include "support/device_fixture.hpp"
#include "support/ranks.hpp"
#include "support/staged_threads.hpp"

namespace test_comm_device_failures {

namespace laws = test_support::laws;
using namespace test_support;

struct lamp_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Blocks with one element for each rank.
struct test_buffers {
  explicit test_buffers(const laws::device_fixture& r)
      : fixture(r),
        ones(static_cast<std::size_t>(r.c.size()), 1),
        a(fixture.make<double>(ones.size())),
        b(fixture.make<double>(ones.size())),
        one(fixture.make<double>(1)) {}

  laws::device_fixture fixture;
  std::vector<global_index> ones;
  laws::device_block<double> a, b, one;
};

/// An operation of a rank; `other` is root or partner.
struct named_operation {
  std::string name;
  std::function<void(test_buffers&, int other)> call;
};

std::vector<named_operation> every_operation() {
  using laws::in;
  return {
      {"broadcast", [](test_buffers& d, int other) { d.fixture.c.broadcast(d.a.out(), other); }},
      {"all_gather", [](test_buffers& d, int) { d.fixture.c.all_gather(d.one.in(), in(d.ones), d.b.out()); }},
      {"reduce_scatter",
       [](test_buffers& d, int) { d.fixture.c.reduce_scatter(d.a.in(), in(d.ones), d.one.out()); }},
      {"all_reduce", [](test_buffers& d, int) { d.fixture.c.all_reduce(d.a.out()); }},
      {"all_to_all",
       [](test_buffers& d, int) { d.fixture.c.all_to_all(d.a.in(), in(d.ones), d.b.out(), in(d.ones)); }},
      {"send", [](test_buffers& d, int other) { d.fixture.c.send(d.a.in(), other); }},
      {"receive", [](test_buffers& d, int other) { d.fixture.c.receive(d.a.out(), other); }},
      {"split", [](test_buffers& d, int) { d.fixture.c.split(0, 0, "part"); }},
  };
}

void sleep_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

TEST_CASE("a rank that throws frees ranks that wait in any operation") {
  for (const bool staged : {false, true})
    for (const int failing : {0, 3})
      for (const named_operation& op : every_operation())
        for (const bool late : {false, true}) {
          INFO("staged ", staged, ", failing ", failing, ", op.name ", op.name);
          std::atomic<int> freed = 0;
          expect_error<lamp_error>(4, "the lamp fell", [&](const communicator& c) {
            test_buffers d(laws::on_a_device(staged ? test_support::staging(c) : c));
            if (late) sleep_a_little();
            if (c.rank() == failing) throw lamp_error("the lamp fell");
            if (!late) sleep_a_little();
            try {
              op.call(d, failing);
              d.fixture.c.all_reduce(d.b.out());
            } catch (const partita::poisoned_error&) {
              ++freed;
              throw;
            }
          });
          CHECK(freed == 3);
        }
}

/// Until so many ranks wait, and a time in which they enqueue what they read.
void let_enqueue(const std::atomic<int>& waiting, int ranks) {
  while (waiting < ranks) std::this_thread::yield();
  for (int k = 0; k < 10; ++k) sleep_a_little();
}

TEST_CASE("what ranks that fail or leave have given stays until it has been read") {
  for (const std::size_t leaver : {0U, 1U}) {  // rank 1 fails, and rank 0 must leave
    std::array<std::shared_ptr<laws::pinned_pool>, 3> pools;
    std::atomic<int> waiting = 0;
    expect_error<lamp_error>(3, "the lamp fell", [&](const communicator& c) {
      const laws::device_fixture fixture = laws::on_a_device(c);
      pools[static_cast<std::size_t>(c.rank())] = fixture.pool;
      const std::vector<global_index> ones(3, 1);
      try {
        auto mine = fixture.put(std::vector<double>{1.0 + c.rank()}), all = fixture.make<double>(3);
        request r = fixture.c.start_all_gather(mine.in(), laws::in(ones), all.out());
        if (c.rank() == 1) {
          let_enqueue(waiting, 2);
          throw lamp_error("the lamp fell");
        }
        try {
          ++waiting;
          r.wait();
        } catch (const partita::poisoned_error&) {
          if (c.rank() == 0) throw;
          sleep_a_little();
          sleep_a_little();
          CHECK(all.get() == std::vector<double>{1, 2, 3});
          throw;
        }
      } catch (const std::runtime_error&) {
        if (fixture.pool == pools[leaver]) fixture.pool->queue.synchronize();  // its memory is gone
        throw;
      }
    });
  }
}

TEST_CASE("a message stays until it has been read, whatever happens to its sender") {
  std::atomic<int> waiting = 0;
  expect_error<lamp_error>(2, "the lamp fell", [&](const communicator& c) {
    const laws::device_fixture fixture = laws::on_a_device(c);
    try {
      auto data = fixture.put(std::vector<float>{4.0F + static_cast<float>(c.rank())});
      if (c.rank() == 0) {
        request r = fixture.c.start_send(data.in(), 1);
        let_enqueue(waiting, 1);
        throw lamp_error("the lamp fell");
      }
      ++waiting;
      fixture.c.receive(data.out(), 0);
      sleep_a_little();
      sleep_a_little();
      CHECK(data.get() == std::vector<float>{4});
    } catch (const lamp_error&) {
      fixture.pool->queue.synchronize();  // the memory is gone
      throw;
    }
  });
}

TEST_CASE("page-locked memory of an operation that was given up stays, since others may still write it") {
  std::barrier both(2);
  expect_error<partita::poisoned_error>(2, "a rank gave up its all_reduce", [&](const communicator& c) {
    const partita::device_queue<partita::cuda_device> q;
    partita::buffer<double, partita::cuda_device> data(q, 4);
    const std::vector<double> ones(4, 1);
    copy(q, std::span<const double>(ones), data.span());
    std::optional<communicator> staged(test_support::staging(c).on_memory(device_memory_of(q)));
    {
      const request r = staged->start_all_reduce(data.span());
      both.arrive_and_wait();
    }
    both.arrive_and_wait();
    const std::uint64_t before = emulator::calls("cudaFreeHost");
    both.arrive_and_wait();
    staged.reset();
    both.arrive_and_wait();
    CHECK(emulator::calls("cudaFreeHost") == before);
    both.arrive_and_wait();
    std::array<std::int32_t, 1> nothing{};
    c.all_reduce(std::span<std::int32_t>(nothing));
  });
}

TEST_CASE("a call of the device that fails ends all ranks with its name") {
  for (const char* call : {"cudaEventRecord", "cudaStreamWaitEvent", "a kernel's launch"})
    for (const int successes : {0, 1, 2, 3}) {
      INFO("call ", call, ", successes ", successes);
      expect_error<partita::device_error>(3, call, [&](const communicator& c) {
        const laws::device_fixture fixture = laws::on_a_device(c);
        auto data = fixture.put(std::vector<double>(7));
        const std::vector<global_index> ones(3, 1);
        std::array<std::int32_t, 1> nothing{};
        c.all_reduce(std::span<std::int32_t>(nothing));
        if (c.rank() == 0) emulator::make_fail(call, cudaErrorUnknown, successes);
        for (int round = 0; round < 3; ++round) fixture.c.all_reduce(data.out());
      });
    }
}

TEST_CASE("memory of the host and of a device do not meet") {
  expect_error<communication_error>(3, "elements on cuda device 0", [](const communicator& c) {
    test_buffers d(laws::on_a_device(c));
    std::vector<double> here(3);
    c.rank() == 2 ? c.all_reduce(std::span(here)) : d.fixture.c.all_reduce(d.a.out());
  });
  expect_error<communication_error>(
      2, "ranks disagree: rank 1 calls receive of f64", [](const communicator& c) {
        test_buffers d(laws::on_a_device(c));
        std::vector<double> here(2);
        c.rank() == 1 ? c.receive(std::span(here), 0) : d.fixture.c.send(d.a.in(), 1);
      });
}

TEST_CASE("threads on two devices are told so") {
  emulator::set_device_count(2);
  expect_error<communication_error>(2, "elements on cuda device 1", [](const communicator& c) {
    const partita::device_queue<partita::cuda_device> q(c.rank());
    partita::buffer<double, partita::cuda_device> data(q, 4);
    c.on_memory(device_memory_of(q)).all_reduce(data.span());
  });
  emulator::set_device_count(1);
}

TEST_CASE("the device adds up as the host does") {
  const laws::device_fixture fixture = laws::on_a_device(partita::self::world());
  const auto memory = device_memory_of(fixture.pool->queue);
  const auto check = [&]<class T>(T) {
    for (const reduction how : {reduction::sum, reduction::max})
      for (const int sources : {1, 2, 9, 128, 129, 300})
        for (const std::size_t in_place : {std::size_t{0}, static_cast<std::size_t>(sources - 1)}) {
          const global_index n = 1100;
          std::vector<std::vector<T>> here;
          std::vector<laws::device_block<T>> there;
          std::vector<const void*> from, device_from;
          for (int q = 0; q < sources; ++q) here.push_back(laws::values<T>(q, 0, n));
          here[0][5] = std::numeric_limits<T>::max();
          for (auto& v : here) {
            there.push_back(fixture.put(v));
            from.push_back(v.data());
            device_from.push_back(there.back().in().data());
          }
          partita::comm::reduce_in_order(partita::comm::element_type_of<T>::value, how, from,
                                         here[in_place].data(), n);
          memory->reduce(partita::comm::element_type_of<T>::value, how, device_from,
                         there[in_place].out().data(), n);
          CHECK(laws::same_bits(there[in_place].get(), here[in_place]));
        }
  };
  check(std::uint8_t{});
  check(std::int32_t{});
  check(std::int64_t{});
  check(float{});
  check(double{});
}

TEST_CASE("a mesh of a device carries its memory along axes, and the host's beside it") {
  on_threads(6, [](const communicator& c) {
    const partita::device_queue<partita::cuda_device> q;
    const partita::mesh<partita::cuda_device> m(c, {3, 2, 1}, q);
    std::vector<double> here = {1};
    partita::buffer<double, partita::cuda_device> there(q, 1);
    copy(q, std::span<const double>(here), there.span());
    m.along(partita::axis::row).all_reduce(there.span());
    m.control(partita::axis::row).all_reduce(std::span(here));
    m.along(partita::partition::every_axis).all_reduce(there.span());
    m.world().all_reduce(std::span(here));
    CHECK(partita::on_cuda::read(q, there.data()) == 18);
    CHECK(here[0] == 18);
    CHECK(m.along(partita::partition::every_axis).rank() == m.rank());
    CHECK(m.along(partita::axis::col).axis() == "col");
    CHECK(&m.along(partita::axis::col).ledger() == &m.ledger());
  });
}

}  // namespace test_comm_device_failures
