// SPDX-License-Identifier: Apache-2.0
// One failure under MPI, named on the command line; mpi_failures.sh runs them and looks at how the job ends.
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "partita/comm/mpi.hpp"

using partita::communicator;
using partita::global_index;
using partita::request;

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
      {"throw-split", throwing([](const communicator& c, test_buffers&) { c.split(0, 0, "part"); })},
      {"throw-in-flight",
       [](const communicator& c, test_buffers& d) {
         request r = c.start_all_reduce(span(d.a));
         if (c.rank() == odd) throw std::runtime_error("the lamp\nfell");
         r.wait();
       }},
      {"kind", differing(all_reduce, all_gather)},
      {"type", differing(all_reduce, reduce_floats)},
      {"count", differing(all_reduce,
                          [](const communicator& c, test_buffers& d) { c.all_reduce(span(d.a).first(3)); })},
      {"reduction",
       differing(all_reduce, [](const communicator& c,
                                test_buffers& d) { c.all_reduce(span(d.a), partita::reduction::max); })},
      {"root",
       differing(broadcast, [](const communicator& c, test_buffers& d) { c.broadcast(span(d.a), 0); })},
      {"split", differing(all_reduce, [](const communicator& c, test_buffers&) { c.split(0, 0, "part"); })},
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
      {"request", differing(all_reduce, give_up)},
      {"request-goes-on", differing(all_reduce, give_up_and_go_on)},
      {"message", long_message},
      {"no-rank", [](const communicator& c, test_buffers& d) { c.send(d.in(), 4); }},
      {"too-many", too_many},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const bool checked = argc < 3 || std::string(argv[2]) != "unchecked";
  return partita::mpi::run(argc, argv,
                           [&](const communicator& world) {
                             test_buffers d(world.size());
                             scenarios().at(name)(world, d);
                           },
                           {.checked = checked});
}
