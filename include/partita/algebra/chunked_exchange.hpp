// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of needed rows along the row axis in chunks of A's rows, so that the rows of a chunk travel
/// while another chunk multiplies. A row travels once, whatever the number of chunks that need it.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2: of the rows that a chunk needs, those travel that
/// no chunk before it needed.

#include <algorithm>
#include <array>
#include <utility>

#include "partita/algebra/chunk_lists.hpp"
#include "partita/local/pass.hpp"

namespace partita::detail {

/// Needed rows of X, which arrive chunk by chunk in a table of all of them: where needed_exchange has them.
template <class T, class Device>
class chunked_rows {
 public:
  using lists = chunk_lists<Device>;

  chunked_rows(const mesh<Device>& m, lists steps)
      : row_(m.along(axis::row)), queue_(m.queue()), steps_(std::move(steps)) {
    std::size_t most = 0;
    for (std::size_t k = 0; k < steps_.group_count(); ++k) most = std::max(most, steps_.wanted_rows(k));
    const auto width = static_cast<std::size_t>(steps_.width());
    table_ = buffer<T, Device>(queue_, most * width);
    for (std::size_t n = 0; n < 2; ++n) {
      outgoing_[n] = buffer<T, Device>(queue_, steps_.most(n, &lists::step::given) * width);
      incoming_[n] = buffer<T, Device>(queue_, steps_.most(n, &lists::step::places) * width);
    }
  }

  const lists& steps() const { return steps_; }
  /// Sends the rows of x that travel in step n. Step n - 2 has arrived.
  void start(std::size_t n, matrix_view<const T> x) {
    const auto& s = steps_[n];
    const auto width = static_cast<std::size_t>(steps_.width());
    local::pack_rows(queue_, x, s.given.span(), outgoing_[n % 2].data());
    requests_[n % 2] = row_.start_all_to_all(
        std::as_const(outgoing_[n % 2]).span().first(s.given.size() * width), s.given_size,
        incoming_[n % 2].span().first(s.places.size() * width), s.wanted_size);
  }
  /// The needed rows of all ranks for the group of step n, in rank order; of them, those of the steps up to n
  /// are there.
  matrix_view<const T> arrive(std::size_t n) {
    requests_[n % 2].wait();
    const auto rows = static_cast<local_index>(steps_.wanted_rows(n / steps_.chunks()));
    const matrix_view<T> table{table_.data(), rows, steps_.width(), steps_.width()};
    local::unpack_rows(queue_, incoming_[n % 2].data(), steps_[n].places.span(), table);
    return table;
  }

 private:
  communicator row_;
  device_queue<Device> queue_;
  lists steps_;
  buffer<T, Device> table_;
  std::array<buffer<T, Device>, 2> outgoing_, incoming_;
  std::array<request, 2> requests_;
};

/// The other way: sums for the needed rows, which travel when the last chunk has added to them and which
/// their owners add when all have arrived, in the order of the ranks.
template <class T, class Device>
class chunked_sums {
 public:
  using lists = chunk_lists<Device>;

  chunked_sums(const mesh<Device>& m, lists steps)
      : row_(m.along(axis::row)), queue_(m.queue()), steps_(std::move(steps)) {
    std::size_t most_wanted = 0, most_given = 0;
    for (std::size_t k = 0; k < steps_.group_count(); ++k) {
      most_wanted = std::max(most_wanted, steps_.wanted_rows(k));
      most_given = std::max(most_given, steps_.given_rows(k));
    }
    const auto width = static_cast<std::size_t>(steps_.width());
    table_ = buffer<T, Device>(queue_, most_wanted * width);
    arrived_ = buffer<T, Device>(queue_, most_given * width);
    for (std::size_t n = 0; n < 2; ++n)
      outgoing_[n] = buffer<T, Device>(queue_, steps_.most(n, &lists::step::places) * width);
  }

  const lists& steps() const { return steps_; }
  /// Where this rank puts its sums for the needed rows of all ranks for group k, in rank order.
  matrix_view<T> sums(std::size_t k) {
    return {table_.data(), static_cast<local_index>(steps_.wanted_rows(k)), steps_.width(), steps_.width()};
  }
  /// Sends the sums that are complete after step n.
  void start(std::size_t n) {
    const auto& s = steps_[n];
    const auto width = static_cast<std::size_t>(steps_.width());
    requests_[n % 2].wait();
    local::pack_rows(queue_, matrix_view<const T>(sums(n / steps_.chunks())), s.places.span(),
                     outgoing_[n % 2].data());
    requests_[n % 2] = row_.start_all_to_all(
        std::as_const(outgoing_[n % 2]).span().first(s.places.size() * width), s.wanted_size,
        arrived_.span().subspan(arrived_before(n) * width, s.given.size() * width), s.given_size);
  }
  /// Adds the sums of the other ranks for group k to their rows of this rank's block y, in rank order.
  void add(std::size_t k, matrix_view<T> y) {
    for (request& r : requests_) r.wait();
    const std::size_t chunks = steps_.chunks();
    for (std::size_t r = 0; r < steps_.ranks(); ++r)
      for (std::size_t n = k * chunks; n < (k + 1) * chunks; ++n) {
        const auto& s = steps_[n];
        const auto before = static_cast<std::size_t>(comm::offset_of(s.asked, static_cast<int>(r))),
                   count = static_cast<std::size_t>(s.asked[r]);
        const std::size_t from = (arrived_before(n) + before) * static_cast<std::size_t>(steps_.width());
        if (count > 0)
          local::add_rows(queue_, std::as_const(arrived_).data() + from,
                          s.given.span().subspan(before, count), y);
      }
  }

 private:
  /// The rows that have arrived for the group of step n in the steps before.
  std::size_t arrived_before(std::size_t n) const {
    std::size_t rows = 0;
    for (std::size_t i = n / steps_.chunks() * steps_.chunks(); i < n; ++i) rows += steps_[i].given.size();
    return rows;
  }

  communicator row_;
  device_queue<Device> queue_;
  lists steps_;
  buffer<T, Device> table_, arrived_;
  std::array<buffer<T, Device>, 2> outgoing_;
  std::array<request, 2> requests_;
};

}  // namespace partita::detail
