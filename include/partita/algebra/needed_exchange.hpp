// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of needed rows along the row axis, packed: at once, in slices, or in chunks of A's rows. The
/// rows of one slice or chunk are sent while another one is multiplied. Each row is sent once, however many
/// chunks need it.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2: a chunk receives only the needed rows that no
/// earlier chunk needed.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/algebra/chunk_lists.hpp"
#include "partita/local/pass.hpp"

namespace partita::algebra::detail {

/// How rows are encoded, and where the rows and columns of this rank's block begin in X.
struct row_code {
  local::row_encoding how = local::row_encoding::exact;
  global_index first_row = 0, first_col = 0;
};

/// Needed rows of X, in one all-to-all for each step; or, in the other direction, sums for the needed rows.
/// A sum is sent when the last chunk, or its slice, has added to it; its owner adds it, in rank order, when
/// all sums of the block have arrived.
template <class T, class Device>
class needed_exchange final : public row_traffic<T> {
 public:
  /// `merged`: whether each step has one tile for all of its rows, or one for each rank.
  needed_exchange(const mesh<Device>& m, std::shared_ptr<const chunk_lists<Device>> lists, row_flow flow,
                  bool merged, const row_code& code = {})
      : needed_exchange(m.along(axis::row), m.queue(), std::move(lists), flow, merged, code) {}
  /// Over `ranks`, for which the lists were made.
  needed_exchange(communicator ranks, device_queue<Device> q,
                  std::shared_ptr<const chunk_lists<Device>> lists, row_flow flow, bool merged,
                  const row_code& code = {})
      : row_(std::move(ranks)),
        queue_(std::move(q)),
        lists_(std::move(lists)),
        steps_(*lists_),
        merged_(merged),
        rows_come_(flow == row_flow::rows_come),
        code_(code) {
    const bool come = rows_come_, placed = steps_.placed();
    std::size_t in_table = 0;
    std::vector<std::size_t> out(slots()), in(slots());
    for (std::size_t n = 0; n < steps_.size(); ++n) {
      const step& s = steps_[n];
      const std::size_t sent = comm::total_of(s.sent_size), received = comm::total_of(s.received_size);
      if (placed || !come) in_table = std::max(in_table, elements(s.received_in_block));
      if (placed || come) out[slot(n)] = std::max(out[slot(n)], come ? sent : received);
      std::size_t& arriving = in[come ? slot(n) : 0];
      arriving = std::max(arriving, come ? received : elements(s.sent_before) + sent);
    }
    table_ = buffer<T, Device>(queue_, in_table);
    outgoing_.resize(slots());
    incoming_.resize(slots());
    in_flight_.resize(slots());
    requests_.resize(slots());
    for (std::size_t i = 0; i < slots(); ++i) {
      outgoing_[i] = buffer<T, Device>(queue_, out[i]);
      incoming_[i] = buffer<T, Device>(queue_, in[i]);
    }
    if (is_coded()) make_code_buffers();
  }

  std::size_t at_first() const override { return slots(); }
  std::size_t ahead() const override { return steps_.steps_of_block() > 1 ? 2 : 1; }
  void start(std::size_t n, matrix_view<const T> x) override {
    local::pack_rows(queue_, x, steps_[n].rows.span(), outgoing_[slot(n)].data());
    send(n, std::as_const(outgoing_[slot(n)]).span(), &step::sent_size, incoming_[slot(n)].span(),
         &step::received_size);
  }
  matrix_view<const T> arrive(std::size_t n, std::size_t t) override {
    wait(slot(n));
    const step& s = steps_[n];
    if (steps_.placed()) {
      local::unpack_rows(queue_, incoming_[slot(n)].data(), s.places.span(), table(n));
      return table(n);
    }
    const T* const rows = std::as_const(incoming_[slot(n)]).data();
    return merged_ ? view(rows, comm::total_of(s.received)) : of_tile(rows, s, t);
  }

  matrix_view<T> sums(std::size_t n, std::size_t t) override {
    if (!merged_) return of_tile(table_.data(), steps_[n], t);
    if (steps_.placed()) return table(n);
    return view(table_.data() + elements(steps_[n].received_before), comm::total_of(steps_[n].received));
  }
  void leave(std::size_t n, std::size_t t, matrix_view<T>) override {
    if (!merged_ && t != last_tile()) return;
    wait(slot(n));
    std::span<const T> from = std::as_const(table_).span().subspan(elements(steps_[n].received_before));
    if (steps_.placed()) {
      local::pack_rows(queue_, matrix_view<const T>(table(n)), steps_[n].places.span(),
                       outgoing_[slot(n)].data());
      from = std::as_const(outgoing_[slot(n)]).span();
    }
    send(n, from, &step::received_size, incoming_[0].span().subspan(elements(steps_[n].sent_before)),
         &step::sent_size);
  }
  void finish(std::size_t k, matrix_view<T> y) override {
    for (std::size_t i = 0; i < slots(); ++i) wait(i);
    const std::size_t steps = steps_.steps_of_block();
    for (std::size_t r = 0; r < steps_.ranks(); ++r)
      for (std::size_t n = k * steps; n < (k + 1) * steps; ++n) {
        const step& s = steps_[n];
        const auto first = static_cast<std::size_t>(comm::offset_of(s.sent, static_cast<int>(r))),
                   count = static_cast<std::size_t>(s.sent[r]);
        const T* const from = std::as_const(incoming_[0]).data() + elements(s.sent_before + first);
        if constexpr (requires(T sum) { sum += sum; })  // not for types that only store numbers
          if (count > 0) local::add_rows(queue_, from, s.rows.span().subspan(first, count), y);
      }
  }

 private:
  using step = typename chunk_lists<Device>::step;
  using counts = typename chunk_lists<Device>::counts;

  /// The rows received for a chunk are copied to a table, so that others can be received in their place.
  /// Slices ahead are received beside the one that is multiplied, and half of the slices keep their rows.
  std::size_t slots() const {
    return steps_.placed() || !rows_come_ ? 2 : std::max(1 + ahead(), (steps_.steps_of_block() + 1) / 2);
  }
  std::size_t slot(std::size_t n) const { return n % slots(); }
  void send(std::size_t n, std::span<const T> from, counts from_size, std::span<T> to, counts to_size) {
    const auto &gone = steps_[n].*from_size, &come = steps_[n].*to_size;
    if (is_coded()) return send_code(n, from, gone, to, come);
    requests_[slot(n)] =
        row_.start_all_to_all(from.first(comm::total_of(gone)), gone, to.first(comm::total_of(come)), come);
  }
  void wait(std::size_t i) {
    requests_[i].wait();
    if (!is_coded() || in_flight_[i].to == nullptr) return;
    flight& f = in_flight_[i];
    if constexpr (std::is_floating_point_v<T>)
      decode_rows(queue_, f.rows,
                  local::decoded_row<T>{code_.how, std::as_const(f.incoming).data(), steps_.width(), f.to});
    f.to = nullptr;
  }

  /// A message of encoded rows.
  struct flight {
    buffer<std::uint8_t, Device> outgoing, incoming;
    std::vector<global_index> gone, come;  ///< bytes to and from each rank
    T* to = nullptr;                       ///< where received rows are decoded
    std::size_t rows = 0;
  };

  bool is_coded() const { return code_.how != local::row_encoding::exact && steps_.width() > 0; }
  void make_code_buffers() {
    if (!std::is_floating_point_v<T>)
      base::throw_error<error>(
          {"rows in ", local::name_of(code_.how), " are for numbers of float or double"});
    std::vector<std::size_t> out(slots()), in(slots());
    for (std::size_t n = 0; n < steps_.size(); ++n) {
      const std::size_t sent = comm::total_of(steps_[n].sent), received = comm::total_of(steps_[n].received);
      out[slot(n)] = std::max(out[slot(n)], rows_come_ ? sent : received);
      in[slot(n)] = std::max(in[slot(n)], rows_come_ ? received : sent);
    }
    for (std::size_t i = 0; i < slots(); ++i) {
      in_flight_[i].outgoing = buffer<std::uint8_t, Device>(queue_, out[i] * bytes_of_row());
      in_flight_[i].incoming = buffer<std::uint8_t, Device>(queue_, in[i] * bytes_of_row());
    }
  }
  std::size_t bytes_of_row() const {
    return static_cast<std::size_t>(local::sent_of_row(code_.how, steps_.width()));
  }
  /// All counts are numbers of elements.
  void send_code(std::size_t n, std::span<const T> from, const std::vector<global_index>& gone,
                 std::span<T> to, const std::vector<global_index>& come) {
    flight& f = in_flight_[slot(n)];
    const auto bytes = [&](const std::vector<global_index>& elements, std::vector<global_index>& all) {
      all.clear();
      for (const global_index size : elements)
        all.push_back(size / steps_.width() * static_cast<global_index>(bytes_of_row()));
      return comm::total_of(all);
    };
    const std::size_t out = bytes(gone, f.gone), in = bytes(come, f.come);
    if (n == 0) ++calls_;
    const random_key key{.step = calls_,
                         .stream = rows_come_ ? 0 : 1 + static_cast<std::uint64_t>(row_.rank())};
    if constexpr (std::is_floating_point_v<T>)
      encode_rows(queue_, out / bytes_of_row(),
                  local::encoded_row<T>{code_.how, from.data(), steps_.width(),
                                        rows_come_ ? steps_[n].rows.span().data() : nullptr,
                                        rows_come_ ? code_.first_row : 0, code_.first_col, key.word(),
                                        f.outgoing.data()});
    f.to = to.data();
    f.rows = in / bytes_of_row();
    requests_[slot(n)] = row_.start_all_to_all(std::as_const(f.outgoing).span().first(out), f.gone,
                                               f.incoming.span().first(in), f.come);
  }
  template <class U>
  matrix_view<U> view(U* rows, std::size_t count) const {
    return {rows, static_cast<local_index>(count), steps_.width(), steps_.width()};
  }
  /// The rows of tile t, if tiles are not merged.
  template <class U>
  matrix_view<U> of_tile(U* rows, const step& s, std::size_t t) const {
    return view(rows + comm::offset_of(s.received_size, static_cast<int>(t)),
                static_cast<std::size_t>(s.received[t]));
  }
  /// The last tile of another rank.
  std::size_t last_tile() const { return steps_.ranks() - (row_.rank() + 1 == row_.size() ? 2 : 1); }
  /// All needed rows for the block of step n, in rank order.
  matrix_view<T> table(std::size_t n) { return view(table_.data(), steps_[n].received_in_block); }
  std::size_t elements(std::size_t rows) const { return rows * static_cast<std::size_t>(steps_.width()); }

  communicator row_;
  device_queue<Device> queue_;
  std::shared_ptr<const chunk_lists<Device>> lists_;
  const chunk_lists<Device>& steps_;
  bool merged_, rows_come_;
  row_code code_;
  std::uint64_t calls_ = 0;  ///< products so far
  buffer<T, Device> table_;
  std::vector<buffer<T, Device>> outgoing_, incoming_;
  std::vector<flight> in_flight_;
  std::vector<request> requests_;
};

}  // namespace partita::algebra::detail
