// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <cstdio>
#include <fmt/core.h>
#include <utility>

partita::comm::progress work_printer(counted_work work, int from_all, line_times when) {
  using clock = std::chrono::steady_clock;
  using partita::global_index;
  const double scale = from_all / work.size;
  return [work = std::move(work), scale, when, begin = clock::now(), last = clock::now(),
          first = global_index{0}, before = global_index{0}, begun = false,
          shown = false](global_index done, global_index all) mutable {
    const auto now = clock::now();
    if (!begun || done < before) {
      begin = last = now;
      first = done;
      shown = false;
    }
    before = done;
    begun = done < all;
    if (done <= first || now - last < (shown ? when.between : when.first)) return;
    last = now;
    shown = true;
    const double elapsed = std::chrono::duration<double>(now - begin).count();
    const auto of = static_cast<double>(all), so_far = static_cast<double>(done);
    fmt::print("{}: {:.0f} of {:.0f} {}, {:.0f} s left\n", work.name, so_far * scale, of * scale, work.unit,
               elapsed / static_cast<double>(done - first) * (of - so_far));
    std::fflush(stdout);
  };
}
