// SPDX-License-Identifier: Apache-2.0
#include "warp.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

namespace emulator::ptx {

namespace {

constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
/// Jumps back before another group of the warp, or another warp, has its turn.
constexpr unsigned group_patience = 1 << 12, warp_patience = 1 << 16;

std::string to_hex(lane_mask m) {
  char text[16];
  std::snprintf(text, sizeof text, "%#010x", m);
  return text;
}

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

constexpr special specials[] = {
    {"%tid.x", 4, true, [](warp& w, unsigned l) -> std::uint64_t { return w.thread(l).x; }},
    {"%tid.y", 4, true, [](warp& w, unsigned l) -> std::uint64_t { return w.thread(l).y; }},
    {"%tid.z", 4, true, [](warp& w, unsigned l) -> std::uint64_t { return w.thread(l).z; }},
    {"%ntid.x", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.what().block.x; }},
    {"%ntid.y", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.what().block.y; }},
    {"%ntid.z", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.what().block.z; }},
    {"%ctaid.x", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.block().at.x; }},
    {"%ctaid.y", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.block().at.y; }},
    {"%ctaid.z", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.block().at.z; }},
    {"%nctaid.x", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.what().grid.x; }},
    {"%nctaid.y", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.what().grid.y; }},
    {"%nctaid.z", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.what().grid.z; }},
    {"%laneid", 4, true, [](warp&, unsigned l) -> std::uint64_t { return l; }},
    {"%warpid", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.number(); }},
    {"%nwarpid", 4, false,
     [](warp& w, unsigned) -> std::uint64_t { return (w.block().threads() + warp_size - 1) / warp_size; }},
    {"%smid", 4, false, [](warp& w, unsigned) -> std::uint64_t { return w.block().number % 4; }},
    {"%nsmid", 4, false, [](warp&, unsigned) -> std::uint64_t { return 4; }},
    {"%gridid", 8, false, [](warp&, unsigned) -> std::uint64_t { return 0; }},
    {"%clock", 4, false, [](warp&, unsigned) -> std::uint64_t { return now(); }},
    {"%clock64", 8, false, [](warp&, unsigned) -> std::uint64_t { return now(); }},
    {"%globaltimer", 8, false, [](warp&, unsigned) -> std::uint64_t { return now(); }},
    {"%lanemask_eq", 4, true, [](warp&, unsigned l) -> std::uint64_t { return 1ull << l; }},
    {"%lanemask_lt", 4, true, [](warp&, unsigned l) -> std::uint64_t { return (1ull << l) - 1; }},
    {"%lanemask_le", 4, true, [](warp&, unsigned l) -> std::uint64_t { return (2ull << l) - 1; }},
    {"%lanemask_gt", 4, true, [](warp&, unsigned l) -> std::uint64_t { return ~((2ull << l) - 1); }},
    {"%lanemask_ge", 4, true, [](warp&, unsigned l) -> std::uint64_t { return ~((1ull << l) - 1); }},
    {"%dynamic_smem_size", 4, false,
     [](warp& w, unsigned) -> std::uint64_t { return w.what().dynamic_shared; }},
    {"%total_smem_size", 4, false,
     [](warp& w, unsigned) -> std::uint64_t {
       return w.what().kernel->shared_bytes + w.what().dynamic_shared;
     }},
};

}  // namespace

const special* find_special(std::string_view name) {
  const auto found = std::ranges::find(specials, name, &special::name);
  return found == std::end(specials) ? nullptr : found;
}

void warp::prepare_registers() {
  const program& p = *what().kernel;
  if (prepared_for_ == block_->what) return;
  if (p.register_bytes > register_capacity_) {
    registers_.reset(static_cast<std::byte*>(::operator new (p.register_bytes, std::align_val_t{64})));
    register_capacity_ = p.register_bytes;
  }
  for (const program::constant& c : p.constants) {
    if (c.bytes == 0) {
      mask(c.where) = c.bits != 0 ? every_lane : 0;
      continue;
    }
    visit_bits(c.bytes, [&]<class T>(T) {
      std::fill_n(lanes<T>(c.where), warp_size, static_cast<T>(c.bits));
      return 0;
    });
  }
  for (const program::relocation& r : p.relocations)
    std::fill_n(lanes<std::uint64_t>(r.where), warp_size,
                what().memory->address_of(std::string(r.variable)) + static_cast<std::uint64_t>(r.offset));
  prepared_for_ = block_->what;
}

void warp::begin(block_state& b, unsigned number) {
  block_ = &b;
  number_ = number;
  phase_ = 0;
  prepare_registers();
  const unsigned threads = std::min(b.threads() - number * warp_size, warp_size);
  live_ = threads == warp_size ? every_lane : (lane_mask{1} << threads) - 1;
  waiting_ = blocked_ = 0;
  next_.fill(0);
  local_.clear(what().kernel->local_bytes * warp_size);
  fill_specials();
}

void warp::fill_specials() {
  for (const auto& [where, which] : what().kernel->specials) {
    const auto fill = [&, s = which, to = where]<class T>(T) {
      if (!s->of_lane) return static_cast<void>(std::fill_n(lanes<T>(to), warp_size, T(s->value(*this, 0))));
      for (unsigned l = 0; l < warp_size; ++l) lanes<T>(to)[l] = static_cast<T>(s->value(*this, l));
    };
    which->bytes == 8 ? fill(std::uint64_t{}) : fill(std::uint32_t{});
  }
}

pause warp::run() {
  unsigned patience = warp_patience;
  while (live_ != 0) {
    if (!choose_group()) {
      if (blocked_ == live_) return pause::barrier;
      const auto lane = static_cast<unsigned>(std::countr_zero(waiting_));
      const operation& o = what().kernel->code[next_[lane]];
      fail(lane, o,
           "waits for lanes of its warp that never come: it names " + to_hex(lanes<lane_mask>(o.e)[lane]) +
               ", of which " + to_hex(waiting_) + " wait and " + to_hex(live_) + " have not ended");
    }
    if (!run_group(patience)) return pause::slice;
  }
  return pause::ended;
}

bool warp::choose_group() {
  std::uint32_t first = nowhere, in_turn = nowhere;
  const lane_mask runnable = live_ & ~waiting_ & ~blocked_;
  for (lane_mask left = runnable; left != 0; left &= left - 1) {
    const std::uint32_t at = next_[static_cast<unsigned>(std::countr_zero(left))];
    first = std::min(first, at);
    if (at >= turn_) in_turn = std::min(in_turn, at);
  }
  if (first == nowhere) return false;
  pc_ = in_turn != nowhere ? in_turn : first;
  turn_ = 0;
  active_ = 0;
  limit_ = nowhere;
  for (lane_mask left = runnable; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (next_[lane] == pc_)
      active_ |= lane_mask{1} << lane;
    else if (next_[lane] > pc_)
      limit_ = std::min(limit_, next_[lane]);
  }
  return true;
}

void warp::leave(lane_mask lanes, std::uint32_t at) {
  for (; lanes != 0; lanes &= lanes - 1) next_[static_cast<unsigned>(std::countr_zero(lanes))] = at;
}

bool warp::run_group(unsigned& patience) {
  const operation* const code = what().kernel->code.data();
  const lane_mask active = active_;
  const bool alone = (live_ & ~waiting_ & ~blocked_) == active;
  unsigned group_left = group_patience;
  std::uint64_t threads = 0, steps = 0;
  const operation* now = nullptr;
  const auto finish = [&](std::uint32_t at, lane_mask stay, bool in_time = true) {
    leave(stay, at);
    block_->instructions += threads;
    block_->warp_instructions += steps;
    return in_time;
  };
  try {
    for (std::uint32_t pc = pc_;;) {
      const operation& o = *(now = &code[pc]);
      const lane_mask acting = active & (mask(o.guard) ^ (o.unless ? every_lane : 0));
      threads += static_cast<unsigned>(std::popcount(acting));
      ++steps;
      switch (o.what) {
        case flow::plain:
          if (acting != 0) o.run(*this, o, acting);
          ++pc;
          break;
        case flow::branch:
          if (acting == 0) {
            ++pc;
          } else if (acting == active) {
            const bool back = o.target <= pc;
            pc = o.target;
            if (back && --patience == 0) return finish(pc, active, false);
            if (back && !alone && --group_left == 0) {  // others may do what it waits for
              turn_ = limit_ != nowhere ? limit_ : 0;
              return finish(pc, active);
            }
          } else {
            leave(acting, o.target);
            return finish(pc + 1, active & ~acting);
          }
          break;
        case flow::table:
          for (lane_mask left = acting; left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(left));
            const auto& table = what().kernel->tables[o.target];
            const std::uint32_t n = lanes<std::uint32_t>(o.a)[lane];
            if (n >= table.size())
              throw lane_fault(lane, "branch " + std::to_string(n) + " of a table that has fewer");
            next_[lane] = table[n];
          }
          return finish(pc + 1, active & ~acting);
        case flow::exit:
          live_ &= ~acting;
          if (acting != 0) complete_meetings();
          if (acting != 0) return finish(pc + 1, active & ~acting);
          ++pc;
          break;
        case flow::warp_wide:
          if (acting != 0 && !meet(o, acting, pc)) return finish(pc + 1, active & ~acting);
          ++pc;
          break;
        case flow::barrier:
          blocked_ |= acting;
          leave(acting, pc);
          if (acting != 0) return finish(pc + 1, active & ~acting);
          ++pc;
          break;
      }
      if (pc >= limit_) return finish(pc, active);
    }
  } catch (const lane_fault& f) {
    fail(f.lane, *now, f.what());
  }
}

bool warp::meet(const operation& o, lane_mask arriving, std::uint32_t at) {
  const auto* const named = lanes<lane_mask>(o.e);
  bool complete = true;
  for (lane_mask left = arriving; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if ((named[lane] >> lane & 1) == 0)
      throw lane_fault(lane, "meets lanes " + to_hex(named[lane]) + ", and is none of them");
    complete &= (named[lane] & live_) == arriving;
  }
  if (complete) {
    std::array<const operation*, warp_size> same;
    same.fill(&o);
    perform_meeting(*this, arriving, same);
    ++phase_;
    return true;
  }
  waiting_ |= arriving;
  leave(arriving, at);
  complete_meetings();
  return false;
}

void warp::complete_meetings() {
  const operation* const code = what().kernel->code.data();
  for (lane_mask left = waiting_; left != 0;) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const operation& o = code[next_[lane]];
    const lane_mask named = lanes<lane_mask>(o.e)[lane], wanted = named & live_;
    left &= ~(lane_mask{1} << lane);
    bool complete = (wanted & ~waiting_) == 0;
    std::array<const operation*, warp_size> operations{};
    for (lane_mask m = wanted; complete && m != 0; m &= m - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(m));
      operations[other] = &code[next_[other]];
      complete =
          operations[other]->meets == o.meets && lanes<lane_mask>(operations[other]->e)[other] == named;
    }
    if (!complete) continue;
    try {
      perform_meeting(*this, wanted, operations);
    } catch (const lane_fault& f) {  // another lane's operation made the meeting complete
      fail(f.lane, *operations[f.lane], f.what());
    }
    ++phase_;
    waiting_ &= ~wanted;
    left &= ~wanted;
    for (lane_mask m = wanted; m != 0; m &= m - 1) ++next_[static_cast<unsigned>(std::countr_zero(m))];
  }
}

void warp::pass_barrier() {
  for (lane_mask m = blocked_; m != 0; m &= m - 1) ++next_[static_cast<unsigned>(std::countr_zero(m))];
  blocked_ = 0;
}

void warp::fail(unsigned lane, const operation& o, const std::string& what_happened) const {
  std::string text = what_happened + ", in " +
                     name_of_thread(what(), block_->number, number_ * warp_size + lane) + " of " +
                     what().kernel->name;
  if (o.source != nullptr)
    text += ", PTX line " + std::to_string(o.source->line) + ": " + one_line(o.source->text);
  throw fault(text);
}

}  // namespace emulator::ptx
