// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which matrices of a tape are in the same memory, one after the other.

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "partita/autodiff/variable.hpp"

namespace partita::autodiff::detail {

/// From when to when the nodes of a tape work with a block of memory, and with that of its gradient: with
/// both from the first node that writes the block to the last that reads it, forward or backward.
template <class T, class Device>
struct lifetime {
  std::vector<slot<T, Device>*> slots;  ///< computed in it
  std::size_t first = SIZE_MAX, last = 0;
  bool keeps_value = false, keeps_gradient = false;  ///< for after that
};

/// Those of all matrices that nodes compute, in the order of their first nodes.
template <class T, class Device>
std::vector<lifetime<T, Device>> lifetimes(const std::vector<std::unique_ptr<slot<T, Device>>>& slots,
                                           const std::vector<std::unique_ptr<node<T, Device>>>& nodes) {
  std::map<const slot<T, Device>*, lifetime<T, Device>> found;
  for (const auto& s : slots) {
    if (s->producer == nullptr || !s->producer->computes()) continue;
    auto& here = found[&s->computed_in()];
    here.slots.push_back(s.get());
    here.first = std::min(here.first, s->producer->number());
    here.last = std::max(here.last, s->producer->number());
    here.keeps_gradient = here.keeps_gradient || s->kept;
    here.keeps_value = here.keeps_value || s->kept || !s->varies || s->producer->keeps_output();
  }
  for (const auto& n : nodes)
    for (const slot<T, Device>* x : n->from()) {
      if (x->producer == nullptr) continue;
      auto& here = found[&x->computed_in()];
      here.last = std::max({here.last, n->number(), n->performer().number()});
      here.keeps_value = here.keeps_value || n->reads_again();
    }
  std::vector<lifetime<T, Device>> ordered;
  for (auto& [s, of_s] : found) ordered.push_back(std::move(of_s));
  std::ranges::sort(ordered, {}, &lifetime<T, Device>::first);
  return ordered;
}

/// Has matrices of one shape whose lifetimes do not overlap share memory: `views`, values or gradients, where
/// they are not kept.
template <class T, class Device>
void share_memory(const std::vector<lifetime<T, Device>>& all, bool lifetime<T, Device>::*keeps,
                  std::shared_ptr<matrix_views<T, Device>> slot<T, Device>::*views) {
  struct block {
    const slot<T, Device>* of;
    std::size_t last;
  };
  std::vector<block> blocks;
  for (const auto& now : all) {
    if (now.*keeps) continue;
    const auto free = std::ranges::find_if(
        blocks, [&](const block& b) { return b.last < now.first && b.of->can_share(*now.slots.front()); });
    if (free == blocks.end()) {
      blocks.push_back({now.slots.front(), now.last});
      continue;
    }
    free->last = now.last;
    for (slot<T, Device>* s : now.slots) s->*views = free->of->*views;
  }
}

}  // namespace partita::autodiff::detail
