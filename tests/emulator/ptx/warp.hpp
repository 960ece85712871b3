// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp at work: 32 lanes in lockstep until they diverge, which meet again where their ways do.
#include <cstring>
#include <memory>
#include <new>
#include <unordered_set>

#include "address_space.hpp"
#include "program.hpp"

namespace emulator::ptx {

struct extent3 {
  unsigned x = 1, y = 1, z = 1;

  std::uint64_t size() const { return std::uint64_t{x} * y * z; }
};
inline std::string to_string(extent3 e) {
  return "(" + std::to_string(e.x) + ", " + std::to_string(e.y) + ", " + std::to_string(e.z) + ")";
}
/// The place with this number, where x runs fastest.
inline extent3 place_in(extent3 e, std::uint64_t number) {
  return {static_cast<unsigned>(number % e.x), static_cast<unsigned>(number / e.x % e.y),
          static_cast<unsigned>(number / e.x / e.y)};
}

/// A kernel with all that its launch says.
struct launch {
  const program* kernel = nullptr;
  extent3 grid, block;
  std::size_t dynamic_shared = 0;
  std::vector<std::byte> parameters;
  const address_space* memory = nullptr;
  race_detector* races = nullptr;
  bool counts_sectors = false;
};

/// "thread (1, 0, 0) of block (2, 0, 0)"
inline std::string name_of_thread(const launch& l, std::uint64_t block, std::uint64_t thread) {
  return "thread " + to_string(place_in(l.block, thread)) + " of block " + to_string(place_in(l.grid, block));
}

/// A fault of one lane; the warp says whose and where.
struct lane_fault : std::runtime_error {
  lane_fault(unsigned l, const std::string& what) : std::runtime_error(what), lane(l) {}

  unsigned lane;
};

/// Memory of one block or thread, aligned and marked where it was written.
class marked_memory {
 public:
  static constexpr std::align_val_t alignment{1024};

  /// All of it is unwritten then, and filled with what shows.
  void clear(std::size_t bytes) {
    if (bytes > capacity_) {
      data_.reset(static_cast<std::byte*>(::operator new(2 * bytes, alignment)));
      capacity_ = bytes;
    }
    bytes_ = bytes;
    if (bytes == 0) return;
    std::memset(data_.get(), 0xff, bytes);
    std::memset(marks(), 0, bytes);
  }
  std::byte* data() const { return data_.get(); }
  std::uint8_t* marks() const { return reinterpret_cast<std::uint8_t*>(data_.get() + capacity_); }
  std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(data_.get()); }
  window as_window() const { return {begin(), begin() + bytes_, marks(), 0}; }

 private:
  struct release {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<std::byte, release> data_;
  std::size_t capacity_ = 0, bytes_ = 0;
};

/// What has gone to and from the device's memory, in sectors of 32 bytes: what a card moves at once. Every
/// warp that touches a sector in one instruction counts it.
struct traffic {
  std::uint64_t load_sectors = 0, store_sectors = 0;
  std::uint64_t loads = 0, wide_loads = 0;  ///< of warps; wide ones have 16 bytes for each thread

  traffic& operator+=(const traffic& other) {
    load_sectors += other.load_sectors, store_sectors += other.store_sectors;
    loads += other.loads, wide_loads += other.wide_loads;
    return *this;
  }
};

/// What the warps of a block share.
struct block_state {
  const launch* what = nullptr;
  std::uint64_t number = 0;  ///< in the grid
  extent3 at;
  marked_memory shared;
  std::uint64_t phase = 0;  ///< how often all threads have met
  std::array<window, 4> known{};
  unsigned next_known = 0;
  std::uint64_t instructions = 0, warp_instructions = 0;
  traffic moved;
  std::unordered_set<std::uint64_t> sectors;  ///< touched since the launch began, where they are counted

  unsigned threads() const { return static_cast<unsigned>(what->block.size()); }
};

/// Why a warp stopped running.
enum class pause : std::uint8_t {
  ended,    ///< all threads did
  barrier,  ///< every thread that is left waits for the block
  slice     ///< its time is over; others may do what it waits for
};

template <class T>
using lane_of [[gnu::may_alias]] = T;

class warp {
 public:
  /// The launch is over: another may lie at its address.
  void clear_plans() { prepared_for_ = nullptr; }
  /// Begins the threads `number` * 32 and on of the block.
  void begin(block_state& b, unsigned number);
  /// Throws fault, naming kernel, line, instruction and thread.
  pause run();

  template <class T>
  lane_of<T>* lanes(slot s) {
    return reinterpret_cast<lane_of<T>*>(registers_.get() + s);
  }
  lane_mask& mask(slot s) { return *lanes<lane_mask>(s); }
  void set(slot s, lane_mask lanes, lane_mask value) { mask(s) = (mask(s) & ~lanes) | (value & lanes); }

  block_state& block() { return *block_; }
  const launch& what() const { return *block_->what; }
  lane_mask live() const { return live_; }
  /// Among those of its block.
  unsigned number() const { return number_; }
  extent3 thread(unsigned lane) const { return place_in(what().block, number_ * warp_size + lane); }
  window parameters() const {
    const auto begin = reinterpret_cast<std::uint64_t>(what().parameters.data());
    return {begin, begin + what().parameters.size(), nullptr, 0};
  }
  accessor who(unsigned lane, bool shared) const {
    return {block_->number, number_ * warp_size + lane, block_->phase, phase_, shared};
  }
  /// The address at which a thread's own memory begins.
  std::uint64_t local_begin(unsigned lane) const {
    return local_.begin() + lane * what().kernel->local_bytes;
  }
  const marked_memory& local() const { return local_; }
  /// Without marks: compilers copy local variables that have no value yet.
  window local_window(unsigned lane) const {
    return {local_begin(lane), local_begin(lane) + what().kernel->local_bytes, nullptr, 0};
  }

  /// The barrier at which a thread that is left waits.
  const operation& barrier_of(unsigned lane) const { return what().kernel->code[next_[lane]]; }
  /// Lets all threads that are left go on from their barriers.
  void pass_barrier();
  /// `fault` with the words that say where.
  [[noreturn]] void fail(unsigned lane, const operation& o, const std::string& what) const;

 private:
  struct free_registers {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };

  void prepare_registers();
  void fill_specials();
  /// Picks lanes that go on at the same operation; false where every lane that is left waits.
  bool choose_group();
  /// Runs the group until it ends, waits, or others must be looked at; false when its time is over.
  bool run_group(unsigned& patience);
  /// The lanes go on at `at` when they are chosen again.
  void leave(lane_mask lanes, std::uint32_t at);
  /// Whether lanes that come to operation `at` can go on at once.
  bool meet(const operation& o, lane_mask arriving, std::uint32_t at);
  /// Lets lanes go on that wait for each other and are complete.
  void complete_meetings();

  block_state* block_ = nullptr;
  unsigned number_ = 0;
  std::uint64_t phase_ = 0;
  std::unique_ptr<std::byte, free_registers> registers_;
  std::size_t register_capacity_ = 0;
  const launch* prepared_for_ = nullptr;  ///< the constants in the registers are its
  marked_memory local_;

  lane_mask live_ = 0;     ///< threads that have not ended
  lane_mask waiting_ = 0;  ///< of those, what waits for others of the warp
  lane_mask blocked_ = 0;  ///< and what waits for the block
  lane_mask active_ = 0;   ///< what runs now, in lockstep, from pc_
  std::uint32_t pc_ = 0;
  std::uint32_t limit_ = 0;                      ///< where other lanes are to be met
  std::uint32_t turn_ = 0;                       ///< groups at this operation or behind it come first
  std::array<std::uint32_t, warp_size> next_{};  ///< where each lane that does not run goes on
};

/// Does what lanes do that have met; the operation of each lane is operations[lane].
void perform_meeting(warp& w, lane_mask lanes, const std::array<const operation*, warp_size>& operations);

}  // namespace emulator::ptx
