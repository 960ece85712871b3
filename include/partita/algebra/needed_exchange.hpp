// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of needed rows along the row axis, packed, at once or in chunks of A's rows, so that the rows
/// of a chunk travel while another chunk multiplies. A row travels once, whatever the number of chunks that
/// need it.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2: of the rows that a chunk needs, those travel that
/// no chunk before it needed.

#include <array>
#include <memory>
#include <utility>

#include "partita/algebra/chunk_lists.hpp"
#include "partita/local/pass.hpp"

namespace partita::algebra::detail {

/// Needed rows of X, in one all-to-all for each step; or, the other way, sums for the needed rows, which
/// travel when the last chunk has added to them and which their owners add when all of a block have arrived,
/// in the order of the ranks.
template <class T, class Device>
class needed_exchange final : public row_traffic<T> {
 public:
  /// `merged`: whether there is one tile for the rows of all other ranks, else one for each rank.
  needed_exchange(const mesh<Device>& m, std::shared_ptr<const chunk_lists<Device>> lists, row_flow flow,
                  bool merged)
      : row_(m.along(axis::row)),
        queue_(m.queue()),
        lists_(std::move(lists)),
        steps_(*lists_),
        merged_(merged) {
    const bool come = flow == row_flow::rows_come, chunked = steps_.chunks() > 1;
    std::size_t in_table = 0;
    std::array<std::size_t, 2> out{}, in{};
    for (std::size_t n = 0; n < steps_.size(); ++n) {
      const step& s = steps_[n];
      const std::size_t sent = comm::total_of(s.sent_size), received = comm::total_of(s.received_size);
      if (chunked || !come) in_table = std::max(in_table, elements(s.received_in_block));
      if (chunked || come) out[n % 2] = std::max(out[n % 2], come ? sent : received);
      std::size_t& arriving = in[come ? n % 2 : 0];
      arriving = std::max(arriving, come ? received : elements(s.sent_before) + sent);
    }
    table_ = buffer<T, Device>(queue_, in_table);
    for (std::size_t i = 0; i < 2; ++i) {
      outgoing_[i] = buffer<T, Device>(queue_, out[i]);
      incoming_[i] = buffer<T, Device>(queue_, in[i]);
    }
  }

  /// What has come in chunks is copied to a table, and another step can come in its place.
  std::size_t ahead() const override { return steps_.chunks() > 1 ? 2 : 1; }
  void start(std::size_t n, matrix_view<const T> x) override {
    local::pack_rows(queue_, x, steps_[n].rows.span(), outgoing_[n % 2].data());
    send(n, std::as_const(outgoing_[n % 2]).span(), &step::sent_size, incoming_[n % 2].span(),
         &step::received_size);
  }
  matrix_view<const T> arrive(std::size_t n, std::size_t t) override {
    requests_[n % 2].wait();
    const step& s = steps_[n];
    if (steps_.chunks() > 1) {
      local::unpack_rows(queue_, incoming_[n % 2].data(), s.places.span(), table(n));
      return table(n);
    }
    const T* const rows = std::as_const(incoming_[n % 2]).data();
    return merged_ ? view(rows, comm::total_of(s.received)) : of_tile(rows, s, t);
  }

  matrix_view<T> sums(std::size_t n, std::size_t t) override {
    return merged_ ? table(n) : of_tile(table_.data(), steps_[n], t);
  }
  void leave(std::size_t n, std::size_t t, matrix_view<T>) override {
    if (!merged_ && t != last_tile()) return;
    requests_[n % 2].wait();
    std::span<const T> from = std::as_const(table_).span();
    if (steps_.chunks() > 1) {
      local::pack_rows(queue_, matrix_view<const T>(table(n)), steps_[n].places.span(),
                       outgoing_[n % 2].data());
      from = std::as_const(outgoing_[n % 2]).span();
    }
    send(n, from, &step::received_size, incoming_[0].span().subspan(elements(steps_[n].sent_before)),
         &step::sent_size);
  }
  void finish(std::size_t k, matrix_view<T> y) override {
    for (request& r : requests_) r.wait();
    const std::size_t chunks = steps_.chunks();
    for (std::size_t r = 0; r < steps_.ranks(); ++r)
      for (std::size_t n = k * chunks; n < (k + 1) * chunks; ++n) {
        const step& s = steps_[n];
        const auto first = static_cast<std::size_t>(comm::offset_of(s.sent, static_cast<int>(r))),
                   count = static_cast<std::size_t>(s.sent[r]);
        const T* const from = std::as_const(incoming_[0]).data() + elements(s.sent_before + first);
        if constexpr (requires(T sum) { sum += sum; })  // not where numbers are stored only
          if (count > 0) local::add_rows(queue_, from, s.rows.span().subspan(first, count), y);
      }
  }

 private:
  using step = typename chunk_lists<Device>::step;
  using counts = typename chunk_lists<Device>::counts;

  void send(std::size_t n, std::span<const T> from, counts from_size, std::span<T> to, counts to_size) {
    const auto &gone = steps_[n].*from_size, &come = steps_[n].*to_size;
    requests_[n % 2] =
        row_.start_all_to_all(from.first(comm::total_of(gone)), gone, to.first(comm::total_of(come)), come);
  }
  template <class U>
  matrix_view<U> view(U* rows, std::size_t count) const {
    return {rows, static_cast<local_index>(count), steps_.width(), steps_.width()};
  }
  /// Those of tile t, one of those that are not merged.
  template <class U>
  matrix_view<U> of_tile(U* rows, const step& s, std::size_t t) const {
    return view(rows + comm::offset_of(s.received_size, static_cast<int>(t)),
                static_cast<std::size_t>(s.received[t]));
  }
  /// The last one of another rank.
  std::size_t last_tile() const { return steps_.ranks() - (row_.rank() + 1 == row_.size() ? 2 : 1); }
  /// All needed rows for the block of step n, in rank order.
  matrix_view<T> table(std::size_t n) { return view(table_.data(), steps_[n].received_in_block); }
  std::size_t elements(std::size_t rows) const { return rows * static_cast<std::size_t>(steps_.width()); }

  communicator row_;
  device_queue<Device> queue_;
  std::shared_ptr<const chunk_lists<Device>> lists_;
  const chunk_lists<Device>& steps_;
  bool merged_;
  buffer<T, Device> table_;
  std::array<buffer<T, Device>, 2> outgoing_, incoming_;
  std::array<request, 2> requests_;
};

}  // namespace partita::algebra::detail
