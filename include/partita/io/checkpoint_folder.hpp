// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A folder of checkpoints: safetensors files with checksums, of which the newest complete one is used.
/// Needs nlohmann-json and POSIX.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/io/fnv1a.hpp"
#include "partita/io/safetensors.hpp"

namespace partita::io {

namespace detail {

/// The key of a file's checksum in its metadata.
inline constexpr std::string_view checksum_key = "fnv1a_64";

/// A checksum of all names, types, shapes, values and metadata except that key, ordered by name and key.
inline std::string checksum_of(std::span<const named_tensor> tensors, const tensor_metadata& metadata) {
  fnv1a_64 sum;
  const auto add = [&](std::string_view text) {
    sum.add(std::as_bytes(std::span(text)));
    sum.add(std::as_bytes(std::span("\0", 1)));
  };
  std::vector<const named_tensor*> by_name;
  for (const named_tensor& tensor : tensors) by_name.push_back(&tensor);
  std::ranges::sort(by_name, {}, &named_tensor::name);
  for (const named_tensor* const tensor : by_name) {
    add(tensor->name);
    add(tensor->dtype);
    for (const global_index size : tensor->shape) add(std::to_string(size));
    sum.add(tensor->bytes);
  }
  for (const auto& [key, value] : metadata)
    if (key != checksum_key) {
      add(key);
      add(value);
    }
  return sum.text();
}

}  // namespace detail

/// The files checkpoint-EPOCH.safetensors of a folder. Local: one process uses it. Each file is written
/// whole or not at all (write_whole_file).
class checkpoint_folder {
 public:
  /// Creates the folder if necessary, and removes the unfinished files of writers that were killed. `keep`:
  /// the number of files that write leaves. Throws input_error if the folder cannot be made, read or
  /// cleaned, and before that if another object of any process uses it, on file systems with locks; error if
  /// `keep` is below 1.
  checkpoint_folder(std::filesystem::path folder, int keep) : folder_(std::move(folder)), keep_(keep) {
    if (keep < 1) base::throw_error<error>({"at least one checkpoint is kept, not ", keep});
    std::error_code status;
    std::filesystem::create_directories(folder_, status);
    if (status) detail::fail(folder_.string(), "cannot be made (" + status.message() + ")");
    lock_ = std::make_shared<const detail::descriptor>(
        detail::uninterrupted([&] { return ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (::flock(lock_->number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      detail::fail(folder_.string(), "another run is writing its checkpoints there");
    remove_unfinished_files(folder_);
  }

  std::filesystem::path path_of(int epoch) const {
    return folder_ / (std::string(prefix) + std::to_string(epoch) + std::string(suffix));
  }

  /// The epochs that have files, complete or not, newest first. Throws input_error if the folder cannot be
  /// read.
  std::vector<int> epochs() const {
    std::vector<int> found;
    std::error_code status;
    for (const std::string& name : detail::names_in(folder_, status))
      if (const auto epoch = epoch_in(name)) found.push_back(*epoch);
    if (status) detail::fail(folder_.string(), "cannot be read (" + status.message() + ")");
    std::ranges::sort(found, std::ranges::greater());
    return found;
  }

  /// Writes the checkpoint of an epoch, with a checksum in its metadata, then removes those of earlier
  /// epochs except the newest. Throws input_error as save_safetensors does if it cannot be written, and then
  /// leaves the others; also if an earlier one cannot be removed.
  void write(int epoch, std::span<const named_tensor> tensors, tensor_metadata metadata) const {
    metadata[std::string(detail::checksum_key)] = detail::checksum_of(tensors, metadata);
    save_safetensors(path_of(epoch), tensors, metadata);
    int left = keep_;
    for (const int other : epochs()) {
      if (other > epoch || left-- > 0) continue;
      std::error_code status;
      std::filesystem::remove(path_of(other), status);
      if (status) detail::fail(path_of(other).string(), "cannot be removed (" + status.message() + ")");
    }
  }

  /// The newest complete checkpoint, or nothing. `passed_over` receives a sentence for each newer one that
  /// is damaged: truncated, malformed, or with a checksum that does not match.
  std::optional<safetensors_file> newest(const std::function<void(const std::string&)>& passed_over) const {
    for (const int epoch : epochs()) try {
        safetensors_file file = load_safetensors(path_of(epoch));
        const auto sum = file.metadata().find(std::string(detail::checksum_key));
        if (sum == file.metadata().end()) detail::fail(file.name(), "has no checksum");
        if (sum->second != detail::checksum_of(file.tensors(), file.metadata()))
          detail::fail(file.name(), "is not as its checksum says");
        return file;
      } catch (const input_error& e) {
        passed_over(e.what());
      }
    return {};
  }

 private:
  static constexpr std::string_view prefix = "checkpoint-", suffix = ".safetensors";

  static std::optional<int> epoch_in(std::string_view name) {
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
    name.remove_prefix(prefix.size());
    if (name.size() <= suffix.size() || name.front() < '1' || name.front() > '9') return {};
    name.remove_suffix(suffix.size());
    int epoch = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), epoch);
    if (failed != std::errc() || end != name.data() + name.size()) return {};
    return epoch;
  }

  std::filesystem::path folder_;
  int keep_;
  std::shared_ptr<const detail::descriptor> lock_;  ///< shared with copies; released with the last one
};

}  // namespace partita::io
