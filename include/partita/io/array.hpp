// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Values of a graph, in memory or in a mapped file.

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace partita::io {

/// A constant vector of values: in memory, or in a mapped file, of which only the pages that are used are
/// read. Copies share a file.
template <class T>
class array {
 public:
  using value_type = T;

  array() = default;
  array(std::vector<T> values) : own_(std::move(values)) {}
  array(std::initializer_list<T> values) : own_(values) {}
  /// `count` values that exist as long as `first`. give_back(first, bytes) may release their memory until
  /// they are read again.
  array(std::shared_ptr<const T> first, std::size_t count,
        void (*give_back)(const void*, std::size_t) = nullptr)
      : mapped_(std::move(first)), count_(count), forget_(give_back) {}

  const T* data() const { return mapped_ ? mapped_.get() : own_.data(); }
  std::size_t size() const { return mapped_ ? count_ : own_.size(); }
  bool is_mapped() const { return mapped_ != nullptr; }
  bool empty() const { return size() == 0; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](std::size_t i) const { return data()[i]; }
  operator std::span<const T>() const { return {data(), size()}; }

  /// Releases the memory of a mapped file's pages; they are read again when their values are.
  void forget() const {
    if (mapped_ && forget_ != nullptr) forget_(mapped_.get(), count_ * sizeof(T));
  }

  /// The values, copied to this array's own memory if necessary, so that they can be changed.
  std::vector<T>& edit() {
    if (mapped_) own_.assign(begin(), end());
    mapped_ = nullptr;
    return own_;
  }
  void push_back(const T& value) { edit().push_back(value); }

  friend bool operator==(const array& a, const array& b) { return std::ranges::equal(a, b); }

 private:
  std::vector<T> own_;
  std::shared_ptr<const T> mapped_;  ///< used instead, unless null
  std::size_t count_ = 0;
  void (*forget_)(const void*, std::size_t) = nullptr;
};

}  // namespace partita::io
