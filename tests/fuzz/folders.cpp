// SPDX-License-Identifier: Apache-2.0
// Readers of folders: an input is the number of a file, in one byte, and that file. The others are good.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/readers.hpp"
#include "partita/io/dataset.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/ogb.hpp"

namespace fuzz {

namespace io = partita::io;
namespace fs = std::filesystem;

namespace {

/// A folder of good files, in place of one of which an input may stand.
class good_folder {
 public:
  /// make(path, k) writes file k.
  template <class Make>
  good_folder(std::vector<std::string> names, const Make& make) : names_(std::move(names)) {
    for (std::size_t k = 0; k < names_.size(); ++k) {
      fs::create_directories((folder_ / names_[k]).parent_path());
      make(folder_ / names_[k], k);
    }
  }

  const fs::path& path() const { return folder_.path(); }

  /// Calls read() with `bytes` in place of file k.
  void with(std::size_t k, std::string_view bytes, const auto& read) const {
    const fs::path kept = folder_ / "kept", mine = folder_ / names_[k];
    fs::rename(mine, kept);
    folder_.write(names_[k], bytes);
    taken(read);
    fs::rename(kept, mine);
  }
  std::size_t size() const { return names_.size(); }

 private:
  scratch_folder folder_;
  std::vector<std::string> names_;
};

std::string packed(std::string_view text) {
  std::string result;
  io::gzip_packer packer;
  const auto take = [&](std::span<const std::byte> bytes) { result += text_of(bytes); };
  packer.pack(text, take);
  packer.finish(take);
  return result;
}

}  // namespace

void dataset(input bytes) {
  static const good_folder folder({"edges.npy", "features.npy", "labels.npy", "split.npy", "edge_weight.npy"},
                                  [](const fs::path& path, std::size_t k) {
                                    if (k == 0)
                                      io::write_npy(path, {2, 2}, std::vector<std::int64_t>{0, 1, 1, 0});
                                    if (k == 1)
                                      io::write_npy(path, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
                                    if (k == 2) io::write_npy(path, {3}, std::vector<std::int64_t>{0, 1, -1});
                                    if (k == 3) io::write_npy(path, {3}, std::vector<std::uint8_t>{1, 2, 0});
                                    if (k == 4) io::write_npy(path, {2}, std::vector<double>{1, 2});
                                  });
  if (bytes.empty()) return;
  const auto which = std::to_integer<std::size_t>(bytes[0]) % folder.size();
  folder.with(which, text_of(bytes.subspan(1)), [&] {
    const io::dataset data = io::load_dataset(folder.path());
    for (const io::edge& e : data.edges)
      require(e.source >= 0 && e.source < data.vertices && e.target >= 0 && e.target < data.vertices,
              "an edge is outside the graph");
    require(static_cast<partita::global_index>(data.split.size()) == data.vertices, "vertices without split");
  });
}

void ogb(input bytes) {
  static constexpr std::array<std::string_view, 8> texts{"0,1\n1,2\n",      "3\n", "2\n", "0\nnan\n1\n",
                                                         "1,2\n3,4\n5,6\n", "0\n", "2\n", ""};
  static const good_folder folder(
      {"raw/edge.csv.gz", "raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz", "raw/node-label.csv.gz",
       "raw/node-feat.csv.gz", "split/time/train.csv.gz", "split/time/valid.csv.gz",
       "split/time/test.csv.gz"},
      [](const fs::path& path, std::size_t k) { std::ofstream(path, std::ios::binary) << packed(texts[k]); });
  if (bytes.empty()) return;
  const auto which = std::to_integer<std::size_t>(bytes[0]) % folder.size();
  folder.with(which, packed(text_of(bytes.subspan(1))), [&] {
    const io::dataset data = io::load_ogb(folder.path(), io::inverse_edges::added);
    require(static_cast<partita::global_index>(data.split.size()) == data.vertices, "vertices without split");
  });
}

}  // namespace fuzz
