// SPDX-License-Identifier: Apache-2.0
// One failure under MPI: mpi_failure_program SCENARIO [own|native], where `own` initializes MPI itself and
// `native` leaves collectives to MPI.
// mpi_failures.sh runs them and looks at how the job ends.

#include <map>

#include "partita/comm/mesh.hpp"
#include "partita/comm/mpi.hpp"

using partita::axis, partita::axis_set, partita::communicator, partita::global_index, partita::request;

namespace {

constexpr int odd = 2;  ///< the rank that does something else

/// Buffers with one element for each rank.
struct test_buffers {
  explicit test_buffers(int size)
      : ones(static_cast<std::size_t>(size), 1), a(ones.size()), b(ones.size()), one(1) {}
  std::span<const double> in() const { return a; }
  std::span<const global_index> counts() const { return ones; }

  std::vector<global_index> ones;
  std::vector<double> a, b, one;
};

using scenario = std::function<void(const communicator&, test_buffers&)>;

/// Every rank calls `common`, one throws instead.
scenario throwing(scenario common) {
  return [common](const communicator& c, test_buffers& d) {
    if (c.rank() == odd) throw std::runtime_error("the lamp\nfell");
    common(c, d);
  };
}
/// Every rank calls `common`, one `other`.
scenario differing(scenario common, scenario other) {
  return [common, other](const communicator& c, test_buffers& d) {
    c.rank() == odd ? other(c, d) : common(c, d);
  };
}

using std::span;

void all_reduce(const communicator& c, test_buffers& d) { c.all_reduce(span(d.a)); }
void split(const communicator& c, test_buffers&) { c.split(0, 0, "part"); }
void max(const communicator& c, test_buffers& d) { c.all_reduce(span(d.a), partita::reduction::max); }
void reduce_three(const communicator& c, test_buffers& d) { c.all_reduce(span(d.a).first(3)); }
void broadcast_of_first(const communicator& c, test_buffers& d) { c.broadcast(span(d.a), 0); }
void broadcast(const communicator& c, test_buffers& d) { c.broadcast(span(d.a), odd); }
void all_gather(const communicator& c, test_buffers& d) {
  c.all_gather(d.in().first(1), d.counts(), span(d.b));
}
void reduce_scatter(const communicator& c, test_buffers& d) {
  c.reduce_scatter(d.in(), d.counts(), span(d.one));
}
void all_to_all(const communicator& c, test_buffers& d) {
  c.all_to_all(d.in(), d.counts(), span(d.b), d.counts());
}
void receive(const communicator& c, test_buffers& d) { c.receive(span(d.a), odd); }
void nothing(const communicator&, test_buffers&) {}

void reduce_floats(const communicator& c, test_buffers&) {
  std::vector<float> narrow(4);
  c.all_reduce(span(narrow));
}
void send_too_much(const communicator& c, test_buffers& d) {
  std::vector<global_index> counts = d.ones;
  counts[1] = 2;
  d.a.resize(5);
  c.all_to_all(d.in(), counts, span(d.b), d.counts());
}
void give_up(const communicator& c, test_buffers& d) { request r = c.start_all_reduce(span(d.a)); }
void give_up_and_go_on(const communicator& c, test_buffers& d) {
  give_up(c, d);
  c.all_reduce(span(d.b));
}
void long_message(const communicator& c, test_buffers& d) {
  if (c.rank() == 0) c.send(d.in(), 1);
  if (c.rank() == 1) c.receive(span(d.one), 0);
}
/// All ranks but the odd one go on in their groups along `s` of a 2 x 2 mesh.
scenario leaving(axis_set s) {
  return [s](const communicator& c, test_buffers& d) {
    const partita::mesh<partita::host> m(c, {2, 2, 1});
    const communicator& group = m.along(s);
    group.all_reduce(span(d.a));
    if (c.rank() != odd) group.all_reduce(span(d.a));
  };
}
/// What one rank alone does at the end.
scenario alone(int rank, scenario last) {
  return [=](const communicator& c, test_buffers& d) {
    const communicator pair = c.split(c.rank() / 2, 0, "pair");
    pair.all_reduce(span(d.a));
    c.all_reduce(span(d.a));
    if (c.rank() == rank) last(pair, d);
  };
}
void several_steps(const communicator& c, test_buffers& d) {
  const communicator pair = c.split(c.rank() / 2, 0, "pair");
  for (int step = 0; step < 100; ++step) {
    all_gather(c, d);
    if (step == 60 && c.rank() == odd) return;
    pair.broadcast(span(d.a), step % 2);
    reduce_scatter(c, d);
  }
}
void crash(const communicator&, test_buffers&) { std::raise(SIGSEGV); }
void stop(const communicator&, test_buffers&) { std::abort(); }
void leave_by_exit(const communicator&, test_buffers&) { std::exit(0); }
void send_large(const communicator& c, test_buffers&) { c.send(std::vector<double>(1 << 20), odd, 7); }
void catch_failure(const communicator& c, test_buffers& d) {
  try {
    all_reduce(c, d);
  } catch (const partita::communication_error&) {
  }
}
/// Rank 2 is in the world while its partner waits in their pair.
void different_groups(const communicator& c, test_buffers& d) {
  const communicator pair = c.split(c.rank() / 2, 0, "pair");
  test_buffers two(2);
  if (c.rank() != odd) all_gather(pair, two);
  all_reduce(c, d);
}
[[noreturn]] void compute_for_ever(const communicator&, test_buffers&) {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
void be_stopped(const communicator& c, test_buffers& d) {
  std::raise(SIGSTOP);
  compute_for_ever(c, d);  // continued by mpirun, before it ends the job
}
/// The partner of the stopped rank waits in their pair, the others in the world.
void stop_in_pair(const communicator& c, test_buffers& d) {
  const communicator pair = c.split(c.rank() / 2, 0, "pair");
  if (c.rank() == odd) be_stopped(c, d);
  pair.all_reduce(span(d.a));
  c.all_reduce(span(d.a));
}
void too_many(const communicator& c, test_buffers& d) {
  c.broadcast(span(d.a.data(), std::size_t{1} << 31), 0);  // refused before a byte is touched
}

const std::map<std::string, scenario>& scenarios() {
  static const std::map<std::string, scenario> all = {
      {"throw-all_reduce", throwing(all_reduce)},
      {"throw-broadcast", throwing(broadcast)},
      {"throw-all_gather", throwing(all_gather)},
      {"throw-reduce_scatter", throwing(reduce_scatter)},
      {"throw-all_to_all", throwing(all_to_all)},
      {"throw-receive", throwing(receive)},
      {"throw-split", throwing(split)},
      {"throw-in-flight",
       [](const communicator& c, test_buffers& d) {
         request r = c.start_all_reduce(span(d.a));
         if (c.rank() == odd) throw std::runtime_error("the lamp\nfell");
         r.wait();
       }},
      {"kind", differing(all_reduce, all_gather)},
      {"type", differing(all_reduce, reduce_floats)},
      {"count", differing(all_reduce, reduce_three)},
      {"reduction", differing(all_reduce, max)},
      {"root", differing(broadcast, broadcast_of_first)},
      {"split", differing(all_reduce, split)},
      {"different-groups", different_groups},
      {"group",
       [](const communicator& c,
          test_buffers& d) {  // ranks 3, 2, 1: the odd one there is rank 2 of the world
         const communicator group = c.split(c.rank() == 0 ? 1 : 0, -c.rank(), "three");
         if (c.rank() == 0) return;
         d = test_buffers(3);
         c.rank() == odd ? all_gather(group, d) : all_reduce(group, d);
       }},
      {"all_to_all-counts", differing(all_to_all, send_too_much)},
      {"early-end", differing(all_reduce, nothing)},
      {"late-end", differing(nothing, all_reduce)},
      {"leave-row", leaving(axis::row)},
      {"leave-col", leaving(axis::col)},
      {"leave-row-col", leaving(axis::row | axis::col)},
      {"leave-receive", differing(receive, nothing)},
      {"leave-send", differing(send_large, nothing)},
      {"leave-steps", several_steps},
      {"leave-caught", differing(catch_failure, nothing)},
      {"alone-all_reduce", alone(0, all_reduce)},
      {"alone-all_gather",
       alone(odd, [](const communicator& c, test_buffers& d) { all_gather(c, d = test_buffers(2)); })},
      {"alone-split", alone(0, split)},
      {"exit", differing(all_reduce, leave_by_exit)},
      {"exit-later", alone(odd, leave_by_exit)},
      {"crash", differing(all_reduce, crash)},
      {"crash-later", alone(odd, crash)},
      {"abort", differing(all_reduce, stop)},
      {"compute", differing(all_reduce, compute_for_ever)},
      {"stopped", differing(all_reduce, be_stopped)},
      {"stopped-receive", differing(receive, be_stopped)},
      {"stopped-in-pair", stop_in_pair},
      {"request", differing(all_reduce, give_up)},
      {"request-goes-on", differing(all_reduce, give_up_and_go_on)},
      {"message", long_message},
      {"no-rank", [](const communicator& c, test_buffers& d) { c.send(d.in(), 4); }},
      {"too-many", too_many},
  };
  return all;
}

/// The same in a program that initializes MPI itself.
int run_own(int argc, char** argv, const scenario& body, const partita::mpi::options& o) {
  MPI_Init(&argc, &argv);
  {
    const communicator world = partita::mpi::world(MPI_COMM_WORLD, o);
    test_buffers d(world.size());
    body(world, d);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  partita::mpi::options o;
  o.time_limit = std::chrono::seconds(name == "compute" || name.starts_with("stopped") ? 2 : 40);
  const scenario& body = scenarios().at(name);
  const std::string_view how = argc > 2 ? argv[2] : "";
  if (how == "own") return run_own(argc, argv, body, o);
  if (how == "native") o.collectives = partita::mpi::collectives::native;
  return partita::mpi::run(
      argc, argv,
      [&](const communicator& world) {
        test_buffers d(world.size());
        body(world, d);
      },
      o);
}
