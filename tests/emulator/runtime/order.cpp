// SPDX-License-Identifier: Apache-2.0
#include "order.hpp"

#include <algorithm>

namespace emulator {

namespace {

/// A copy has no threads: it is one, of a block of its own.
constexpr ptx::accessor no_thread{~std::uint64_t{0}, 0, 0, 0, false};

bool writes(ptx::access how) { return how == ptx::access::write || how == ptx::access::strong_write; }
bool is_strong(ptx::access how) {
  return how == ptx::access::strong_read || how == ptx::access::strong_write;
}

}  // namespace

bool race_log::ordered(const touch& before, const ptx::accessor& who) const {
  if (before.stream < 0) return true;
  if (before.stream != now_.stream) return now_.before->of(before.stream) >= before.step;
  if (before.step != now_.step) return true;
  if (before.blocks || before.who.block != who.block) return false;
  if (before.who.block_phase < who.block_phase) return true;
  if (before.threads) return false;
  if (before.who.thread == who.thread && !before.lanes) return true;
  return before.who.thread / 32 == who.thread / 32 && before.who.warp_phase < who.warp_phase;
}

std::optional<ptx::race> race_log::check(const word& w, std::uint8_t bytes, ptx::access how,
                                         const ptx::accessor& who) const {
  const auto races = [&](const touch& t) {
    return (t.bytes & bytes) != 0 && (writes(t.how) || writes(how)) &&
           !(is_strong(t.how) && is_strong(how)) && !ordered(t, who);
  };
  const auto describe = [&](const touch& t) {
    const std::string what = writes(t.how) ? "a write" : "a read";
    if (t.stream == now_.stream) return ptx::race{what, t.who};
    return ptx::race{what + " by " + (t.work == nullptr ? "work" : *t.work) +
                         " that no event orders before this one on " + *now_.stream_name,
                     {}};
  };
  if (races(w.writer)) return describe(w.writer);
  for (const touch& t : w.others)
    if (races(t)) return describe(t);
  return {};
}

void race_log::merge(touch& t, const ptx::accessor& who) const {
  if (t.stream != now_.stream || t.step != now_.step) {
    t = {now_.stream, now_.step, now_.work, who, t.bytes, t.how, false, false, false};
    return;
  }
  const bool met = t.who.block_phase < who.block_phase, same_warp = t.who.thread / 32 == who.thread / 32;
  t.blocks |= t.who.block != who.block;
  t.threads = !met && (t.threads || !same_warp);
  t.lanes =
      !met && same_warp && t.who.warp_phase == who.warp_phase && (t.lanes || t.who.thread != who.thread);
  t.who = who;
}

/// A plain write came after all that it did not race with, which may be forgotten.
void race_log::remember(word& w, std::uint8_t bytes, ptx::access how, const ptx::accessor& who) const {
  const touch now{now_.stream, now_.step, now_.work, who, bytes, how, false, false, false};
  if (how == ptx::access::write) {
    const auto covered = [&](const touch& t) { return (t.bytes & ~bytes) == 0; };
    std::erase_if(w.others, covered);
    if (!covered(w.writer)) w.others.push_back(w.writer);
    w.writer = now;
    return;
  }
  for (touch& t : w.others)
    if (t.stream == now_.stream && t.how == how && t.bytes == bytes) return merge(t, who);
  w.others.push_back(now);
}

std::optional<ptx::race> race_log::note(std::uint64_t address, std::size_t bytes, ptx::access how,
                                        const ptx::accessor& who) {
  const std::uint64_t end = address + bytes;
  for (std::uint64_t at = address / 4; at * 4 < end; ++at) {
    std::uint8_t touched = 0;
    for (unsigned b = 0; b < 4; ++b)
      if (at * 4 + b >= address && at * 4 + b < end) touched |= static_cast<std::uint8_t>(1u << b);
    word& w = who.shared ? shared_[at] : word_at(at);
    if (who.shared) {  // memory of one block after another
      const auto elsewhere = [&](const touch& t) { return t.who.block != who.block; };
      if (elsewhere(w.writer)) w.writer = {};
      std::erase_if(w.others, elsewhere);
    }
    if (auto race = check(w, touched, how, who)) return race;
    remember(w, touched, how, who);
  }
  return {};
}

std::optional<ptx::race> race_log::note_range(const void* memory, std::size_t bytes, bool writes) {
  return note(reinterpret_cast<std::uint64_t>(memory), bytes, writes ? ptx::access::write : ptx::access::read,
              no_thread);
}

void race_log::begin_block(const void* memory, std::size_t bytes) {
  if (!enabled_) return;
  forget(memory, bytes);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  call_it("its allocation");
  births_[begin] = {
      begin + bytes,
      {now_.stream, now_.step, now_.work, no_thread, 0xf, ptx::access::write, false, false, false}};
}

std::optional<ptx::race> race_log::end_block(const void* memory, std::size_t bytes) {
  if (!enabled_) return {};
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  word_at(begin / 4);  // its making, if nothing else touched it
  std::optional<ptx::race> found;
  for (std::uint64_t at = begin; !found && at < begin + bytes; at += 4 * page_words)
    if (pages_.count(at / 4 / page_words) != 0)
      found = note_range(reinterpret_cast<const void*>(at),
                         std::min<std::size_t>(4 * page_words, begin + bytes - at), true);
  if (!found) forget(memory, bytes);
  return found;
}

void race_log::forget(const void* memory, std::size_t bytes) {
  if (!enabled_) return;
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  births_.erase(begin);
  for (std::uint64_t at = begin; at < begin + bytes; at += 4 * page_words) pages_.erase(at / 4 / page_words);
}

/// Of a page that is new, all words were written when its block was made.
race_log::word& race_log::word_at(std::uint64_t number) {
  auto& found = pages_[number / page_words];
  if (found == nullptr) {
    found = std::make_unique<page>();
    const std::uint64_t address = number / page_words * page_words * 4;
    auto next = births_.upper_bound(address);
    if (next != births_.begin() && (--next)->second.first > address)
      for (word& w : *found) w.writer = next->second.second;
  }
  return (*found)[number % page_words];
}

}  // namespace emulator
