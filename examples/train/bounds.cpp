// SPDX-License-Identifier: Apache-2.0
#include "bounds.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../ranks/arrangement.hpp"
#include "partita/train/model_file.hpp"

namespace {

/// What this process may have at most, in bytes.
double memory_of_machine() {
  const double there =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return there;
  return std::min(there, static_cast<double>(limit.rlim_cur));
}

/// The least that training needs here: parameters with gradients and two moments on every rank, of which
/// stages share them, and, unless they are far or of batches only, the widest hidden matrix and an embedding.
double least_memory(const command& c, const partita::io::dataset& data, int ranks) {
  const partita::nn::training_options& t = c.training;
  const double element = c.precision == "f64" ? 8 : 4, here = c.comm == "threads" ? ranks : 1;
  const double weights = partita::nn::detail::least_weights({t, data.features, data.classes});
  const double parameters = 4 * weights * element * here / std::max(1, t.pipeline.stages);
  if (!c.far.empty() || (t.mini_batch.batch > 0 && t.mini_batch.sampled_scores)) return parameters;
  double width = 4 * static_cast<double>(t.embedding);
  const partita::nn::model_row* const row = find_row(t);
  for (const partita::global_index h : t.hidden)
    if (row == nullptr || row->reads("hidden")) width = std::max(width, static_cast<double>(h));
  return parameters + static_cast<double>(data.vertices) * width * element * here / ranks;
}

/// What the ranks of this process know of one another: for every rank, which blocks each sends to which.
double least_lists(const command& c, int ranks) {
  constexpr double bytes = 36;  // measured on 128 to 256 ranks
  return bytes * ranks * ranks * (c.comm == "threads" ? ranks : 1);
}

std::string in_gb(double bytes) { return fmt::format("{:.{}f} GB", 1e-9 * bytes, bytes < 1e10 ? 1 : 0); }

}  // namespace

void require_bounds(const command& c, const partita::io::dataset& data, int ranks) {
  const partita::nn::training_options& t = c.training;
  const auto at_most = [](const char* option, partita::global_index given, partita::global_index most,
                          const char* of) {
    if (given > most) throw usage_error(fmt::format("{} {} is more than the {} {}", option, given, most, of));
  };
  at_most("--exchange-chunks", t.exchange_chunks, data.vertices, "vertices");
  at_most("--split-chunks", t.split_chunks, data.vertices, "vertices");
  at_most("--chunks", t.pipeline.chunks, data.vertices, "vertices");
  if (t.mini_batch.replace)
    for (const partita::local_index fanout : t.mini_batch.fanouts)
      at_most("--fanout", fanout, std::max<partita::global_index>(1, std::ssize(data.edges)), "edges");
  const double there = memory_of_machine();
  if (const double needed = least_lists(c, ranks); needed > there)
    throw partita::error(fmt::format("{} ranks need at least {} of memory, and {} are there", ranks,
                                     in_gb(needed), in_gb(there)));
  if (const double needed = least_memory(c, data, ranks); needed > there)
    throw partita::error(fmt::format("this model on this graph needs at least {} of memory, and {} are there",
                                     in_gb(needed), in_gb(there)));
}
