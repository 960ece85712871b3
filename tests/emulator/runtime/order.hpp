// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happens before what: clocks of streams, and the accesses that no order separates.
#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "../ptx/address_space.hpp"

namespace emulator {

/// How many steps of each stream are done, as far as somebody knows.
struct clock {
  std::map<int, std::uint64_t> steps;

  void join(const clock& other) {
    for (const auto& [stream, n] : other.steps)
      if (std::uint64_t& mine = steps[stream]; mine < n) mine = n;
  }
  std::uint64_t of(int stream) const {
    const auto found = steps.find(stream);
    return found == steps.end() ? 0 : found->second;
  }
};

/// Remembers who touched which memory last, in words of four bytes.
class race_log final : public ptx::race_detector {
 public:
  bool enabled() const { return enabled_; }
  void enable(bool on) {
    enabled_ = on;
    pages_.clear();
    births_.clear();
    shared_.clear();
  }

  /// From now on accesses are those of step `step` of a stream, whose name stays.
  void begin(const clock& before, int stream, std::uint64_t step, const std::string& name) {
    now_ = {&before, stream, step, &name, nullptr};
    shared_.clear();
  }
  /// Says of the step that runs which kernel it is, or what else.
  void call_it(const std::string& work) {
    if (enabled_) now_.work = &*works_.insert(work + " on " + *now_.stream_name).first;
  }
  /// What runs now, to be resumed after a step of another stream that it makes run.
  struct position {
    const clock* before = nullptr;
    int stream = 0;
    std::uint64_t step = 0;
    const std::string* stream_name = nullptr;
    const std::string* work = nullptr;  ///< with the stream's name
  };
  position now() const { return now_; }
  void resume(position p) { now_ = p; }
  std::optional<ptx::race> note(std::uint64_t address, std::size_t bytes, ptx::access how,
                                const ptx::accessor& who) override;
  /// A copy, or whatever else touches memory without threads. Throws ptx::fault; `where` is what the memory
  /// is.
  void note_range(const void* memory, std::size_t bytes, bool writes, const char* what, auto where) {
    if (!enabled_) return;
    call_it(what);
    const auto found = note_range(memory, bytes, writes);
    if (found) throw ptx::fault(std::string(what) + " races with " + found->with + ": " + where());
  }
  /// The step that runs makes a block of memory, which nobody may touch before.
  void begin_block(const void* memory, std::size_t bytes);
  /// The step that runs gives the block back: whoever touched it must be done.
  std::optional<ptx::race> end_block(const void* memory, std::size_t bytes);
  /// Nobody has touched the block.
  void forget(const void* memory, std::size_t bytes);

 private:
  /// Threads of one step that accessed a word in one way, and in which bytes.
  struct touch {
    int stream = -1;
    std::uint64_t step = 0;
    const std::string* work = nullptr;
    ptx::accessor who;
    std::uint8_t bytes = 0;
    ptx::access how = ptx::access::write;
    bool lanes = false;    ///< others of the warp, since it met last
    bool threads = false;  ///< others of the block, since it met last
    bool blocks = false;   ///< and of other blocks
  };
  /// The last plain write, and what came after it or is in no order with it.
  struct word {
    touch writer;
    std::vector<touch> others;
  };

  static constexpr std::size_t page_words = 64;  ///< of 256 bytes, to which blocks are aligned
  using page = std::array<word, page_words>;

  word& word_at(std::uint64_t number);
  std::optional<ptx::race> note_range(const void* memory, std::size_t bytes, bool writes);
  bool ordered(const touch& before, const ptx::accessor& who) const;
  std::optional<ptx::race> check(const word& w, std::uint8_t bytes, ptx::access how,
                                 const ptx::accessor& who) const;
  void remember(word& w, std::uint8_t bytes, ptx::access how, const ptx::accessor& who) const;
  void merge(touch& t, const ptx::accessor& who) const;

  bool enabled_ = false;
  position now_;
  std::set<std::string> works_;
  std::map<std::uint64_t, std::pair<std::uint64_t, touch>> births_;  ///< by address: the end, and who made it
  std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages_;
  std::unordered_map<std::uint64_t, word> shared_;  ///< words of the blocks' shared memory
};

}  // namespace emulator
