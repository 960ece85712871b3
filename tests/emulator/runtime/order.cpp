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
  if (before.who.thread == who.thread) return true;
  return before.who.thread / 32 == who.thread / 32 && before.who.warp_phase < who.warp_phase;
}

std::string race_log::check(word& w, std::uint8_t bytes, ptx::access how, const ptx::accessor& who) const {
  const auto races = [&](const touch& t) {
    return (t.bytes & bytes) != 0 && !(t.strong && is_strong(how)) && !ordered(t, who);
  };
  const auto describe = [&](const touch& t, const char* what) {
    if (t.stream != now_.stream)
      return std::string(what) + " on stream " + std::to_string(t.stream) +
             " that no event orders before this one on stream " + std::to_string(now_.stream);
    return std::string(what) + " by thread " + std::to_string(t.who.thread) + " of block " +
           std::to_string(t.who.block) + " of the same launch";
  };
  if (races(w.writer)) return describe(w.writer, "a write");
  if (writes(how))
    for (const touch& t : w.readers)
      if (races(t)) return describe(t, "a read");
  return {};
}

void race_log::merge(touch& t, std::uint8_t bytes, bool strong, const ptx::accessor& who) const {
  if (t.stream != now_.stream || t.step != now_.step) {
    t = {now_.stream, now_.step, who, bytes, strong, false, false};
    return;
  }
  t.bytes |= bytes;
  t.strong &= strong;
  t.blocks |= t.who.block != who.block;
  if (t.who.block == who.block && t.who.block_phase < who.block_phase)
    t.threads = false;
  else
    t.threads |= t.who.thread != who.thread;
  t.who = who;
}

void race_log::remember(word& w, std::uint8_t bytes, ptx::access how, const ptx::accessor& who) const {
  if (writes(how)) {
    w.readers.clear();
    return merge(w.writer, bytes, is_strong(how), who);
  }
  for (touch& t : w.readers)
    if (t.stream == now_.stream) return merge(t, bytes, is_strong(how), who);
  w.readers.emplace_back();
  merge(w.readers.back(), bytes, is_strong(how), who);
}

std::string race_log::note(std::uint64_t address, std::size_t bytes, ptx::access how,
                           const ptx::accessor& who) {
  const std::uint64_t end = address + bytes;
  for (std::uint64_t at = address / 4; at * 4 < end; ++at) {
    std::uint8_t touched = 0;
    for (unsigned b = 0; b < 4; ++b)
      if (at * 4 + b >= address && at * 4 + b < end) touched |= static_cast<std::uint8_t>(1u << b);
    word& w = who.shared ? shared_[at] : word_at(at);
    if (who.shared) {  // memory of one block after another
      if (w.writer.who.block != who.block) w.writer = {};
      std::erase_if(w.readers, [&](const touch& t) { return t.who.block != who.block; });
    }
    if (std::string race = check(w, touched, how, who); !race.empty()) return race;
    remember(w, touched, how, who);
  }
  return {};
}

void race_log::note_range(const void* memory, std::size_t bytes, bool writes, const char* what) {
  if (!enabled_) return;
  const std::string race = note(reinterpret_cast<std::uint64_t>(memory), bytes,
                                writes ? ptx::access::write : ptx::access::read, no_thread);
  if (!race.empty()) throw ptx::fault(std::string(what) + " races with " + race);
}

void race_log::begin_block(const void* memory, std::size_t bytes) {
  if (!enabled_) return;
  forget(memory, bytes);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  births_[begin] = {begin + bytes, {now_.stream, now_.step, no_thread, 0xf, false, false, false}};
}

void race_log::end_block(const void* memory, std::size_t bytes) {
  if (!enabled_) return;
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  word_at(begin / 4);  // its making, if nothing else touched it
  for (std::uint64_t at = begin; at < begin + bytes; at += 4 * page_words)
    if (pages_.count(at / 4 / page_words) != 0)
      note_range(reinterpret_cast<const void*>(at), std::min<std::size_t>(4 * page_words, begin + bytes - at),
                 true, "freeing memory");
  forget(memory, bytes);
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
