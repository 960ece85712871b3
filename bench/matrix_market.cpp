// SPDX-License-Identifier: Apache-2.0
// Reading a Matrix Market file that the program writes: GB of text per second, per thread and per second of
// CPU time, which others on the machine disturb less, beside adding up the same bytes as they come from the
// page cache. Medians of rounds; the numbers of threads take turns.
#include "partita/io/matrix_market.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "partita/base/random.hpp"
#include "support/median.hpp"
#include "support/options.hpp"

namespace {

namespace fs = std::filesystem;
using partita::global_index;
using clock = std::chrono::steady_clock;

struct problem {
  int megabytes = 200, decimals = 17, rounds = 5;
  std::vector<int> threads{1, 2};
};

/// A folder of its own, gone at the end.
struct scratch {
  fs::path dir = fs::temp_directory_path() / ("partita_bench_" + std::to_string(std::random_device{}()));
  scratch() { fs::create_directories(dir); }
  scratch(const scratch&) = delete;
  ~scratch() { fs::remove_all(dir); }
};

/// Entries at random places of a matrix of 2^20 rows and columns, values between 0 and 1.
void write(const fs::path& path, const problem& p) {
  const auto bytes_of_entry = static_cast<global_index>(16 + std::min(p.decimals, 17) + 2);
  std::vector<partita::triplet<double>> entries(
      static_cast<std::size_t>(p.megabytes * global_index{1'000'000} / bytes_of_entry));
  const double scale = std::pow(10, p.decimals);
  global_index e = 0;
  for (auto& [row, col, value] : entries) {
    row = static_cast<global_index>(partita::base::random_bits(1, e, 0) >> 44);
    col = static_cast<global_index>(partita::base::random_bits(1, e, 1) >> 44);
    value = partita::base::random_uniform(1, e++, 2);
    if (p.decimals < 17) value = std::round(value * scale) / scale;
  }
  partita::io::write_matrix_market(path, {1 << 20, 1 << 20}, entries);
}

/// The sum of the 64-bit words of the file, read in blocks of the reader's size.
std::uint64_t sum_of_words(const partita::io::text_source& text) {
  std::vector<char> block(partita::io::text_block_bytes);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < text.size(); at += block.size()) {
    text.read(at, block.data(), std::min(block.size(), text.size() - at));
    for (std::size_t k = 0; k < block.size(); k += sizeof sum) {
      std::uint64_t word = 0;
      std::memcpy(&word, block.data() + k, sizeof word);
      sum += word;
    }
  }
  return sum;
}

struct times {
  std::vector<double> wall, cpu;

  template <class F>
  void add(const F& f) {
    const std::clock_t used = std::clock();
    const auto begin = clock::now();
    f();
    wall.push_back(std::chrono::duration<double>(clock::now() - begin).count());
    cpu.push_back(static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
  }
};

void measure(const problem& p) {
  const scratch folder;
  const fs::path path = folder.dir / "random.mtx";
  write(path, p);
  const partita::io::text_source text(path);
  std::map<int, times> taken;  // 0: the sum of the bytes
  std::size_t entries = 0;
  std::uint64_t sum = 0;
  for (int round = 0; round < p.rounds; ++round) {
    taken[0].add([&] { sum += sum_of_words(text); });
    for (const int threads : p.threads)
      taken[threads].add([&] { entries = partita::io::read_matrix_market(path, threads).entries.size(); });
  }
  const double size = 1e-9 * static_cast<double>(text.size());
  std::printf("%.3f GB, %zu entries, %.1f bytes each\n", size, entries,
              static_cast<double>(text.size()) / static_cast<double>(entries));
  for (const auto& [threads, t] : taken) {
    const double rate = size / bench::median(t.wall);
    const std::string what = threads == 0 ? "sum of the bytes" : std::to_string(threads) + " threads";
    std::printf("%-16s  %.2f GB/s, %.2f per thread, %.2f per second of CPU time", what.c_str(), rate,
                rate / std::max(threads, 1), size / bench::median(t.cpu));
    if (threads > 0)
      std::printf("; CPU time of the sum: %.0f %% of it",
                  100 * bench::median(taken[0].cpu) / bench::median(t.cpu));
    std::printf("\n");
  }
  if (sum == 0) std::printf("the file is empty\n");  // the sum is needed
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  CLI::App app("Reading a Matrix Market file");
  bench::add_number(app, "--megabytes", p.megabytes, 1, 100'000, "of the file, about");
  bench::add_number(app, "--decimals", p.decimals, 1, 17, "of the values; 17: all that they have");
  bench::add_number(app, "--rounds", p.rounds, 1, 1000, "rounds, of which the median counts");
  app.add_option("--threads", p.threads, "numbers of threads")->delimiter(',');
  try {
    bench::parse(app, argc, argv);
    measure(p);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "matrix_market: %s\n", e.what());
    return 2;
  }
}
