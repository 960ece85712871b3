#pragma once
// What happens before what: clocks of streams, and the accesses that no order separates.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
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

  /// From now on accesses are those of step `step` of a stream, whose name errors give.
  void begin(const clock& before, int stream, std::uint64_t step) {
    now_ = {&before, stream, step};
    shared_.clear();
  }
  /// What runs now, to be resumed after a step of another stream that it makes run.
  struct position {
    const clock* before = nullptr;
    int stream = 0;
    std::uint64_t step = 0;
  };
  position now() const { return now_; }
  void resume(position p) { now_ = p; }
  std::string note(std::uint64_t address, std::size_t bytes, ptx::access how,
                   const ptx::accessor& who) override;
  /// A copy, or whatever else touches memory without threads. Throws ptx::fault.
  void note_range(const void* memory, std::size_t bytes, bool writes, const char* what);
  /// The step that runs makes a block of memory, which nobody may touch before.
  void begin_block(const void* memory, std::size_t bytes);
  /// The step that runs gives the block back: whoever touched it must be done. Throws ptx::fault.
  void end_block(const void* memory, std::size_t bytes);
  /// Nobody has touched the block.
  void forget(const void* memory, std::size_t bytes);

 private:
  /// Threads of one step that touched a word, and in which bytes.
  struct touch {
    int stream = -1;
    std::uint64_t step = 0;
    ptx::accessor who;
    std::uint8_t bytes = 0;
    bool strong = false;
    bool threads = false;  ///< others of the block, since it met last
    bool blocks = false;   ///< and of other blocks
  };
  struct word {
    touch writer;
    std::vector<touch> readers;  ///< one of each stream
  };

  static constexpr std::size_t page_words = 64;  ///< of 256 bytes, to which blocks are aligned
  using page = std::array<word, page_words>;

  word& word_at(std::uint64_t number);
  bool ordered(const touch& before, const ptx::accessor& who) const;
  std::string check(word& w, std::uint8_t bytes, ptx::access how, const ptx::accessor& who) const;
  void remember(word& w, std::uint8_t bytes, ptx::access how, const ptx::accessor& who) const;
  void merge(touch& t, std::uint8_t bytes, bool strong, const ptx::accessor& who) const;

  bool enabled_ = false;
  position now_;
  std::map<std::uint64_t, std::pair<std::uint64_t, touch>> births_;  ///< by address: the end, and who made it
  std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages_;
  std::unordered_map<std::uint64_t, word> shared_;  ///< words of the blocks' shared memory
};

}  // namespace emulator
