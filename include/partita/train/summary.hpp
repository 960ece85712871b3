#pragma once
/// Figures of all ranks put together.

#include <algorithm>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

/// The maximum and the sum of `mine` over the ranks. Every rank must call.
inline over_ranks summarize(const communicator& world, global_index mine) {
  global_index most[] = {mine}, total[] = {mine};
  world.all_reduce(most, reduction::max);
  world.all_reduce(total);
  return {most[0], total[0]};
}

/// The entries of all ranks' ledgers, added up by phase, operation and axis. Every rank must call.
inline std::vector<ledger_entry> merge_ledgers(const communicator& world,
                                               const std::vector<ledger_entry>& mine) {
  std::ostringstream out;
  out.precision(17);
  for (const ledger_entry& e : mine)
    out << e.phase << '\t' << static_cast<int>(e.kind) << '\t' << e.axis << '\t' << e.received.words << '\t'
        << e.received.messages << '\t' << e.bytes << '\t' << e.seconds << '\n';
  const std::string text = out.str();
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());

  const std::vector<global_index> ones(static_cast<std::size_t>(world.size()), 1);
  std::vector<global_index> sizes(ones.size());
  const global_index size[] = {static_cast<global_index>(bytes.size())};
  world.all_gather(size, ones, sizes);
  std::vector<std::uint8_t> all(
      static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), global_index{0})));
  world.all_gather(bytes, sizes, all);

  std::vector<ledger_entry> merged;
  std::istringstream in(std::string(all.begin(), all.end()));
  for (ledger_entry e; std::getline(in, e.phase, '\t');) {
    int kind = 0;
    in >> kind >> std::ws;
    std::getline(in, e.axis, '\t');
    in >> e.received.words >> e.received.messages >> e.bytes >> e.seconds;
    in.ignore(1);
    e.kind = static_cast<operation>(kind);
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const ledger_entry& m) {
      return m.phase == e.phase && m.kind == e.kind && m.axis == e.axis;
    });
    if (same == merged.end()) {
      merged.push_back(e);
      continue;
    }
    same->received += e.received;
    same->bytes += e.bytes;
    same->seconds += e.seconds;
  }
  return merged;
}

/// The middle value; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace partita::nn
