// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Communicators: collectives and point-to-point messages over any transport, recorded in the rank's ledger.

#include <vector>

#include "partita/comm/call_site.hpp"
#include "partita/comm/element_range.hpp"
#include "partita/comm/request.hpp"

namespace partita {

/// A group of ranks. Value handle: copies refer to the same group. Below, p = size() and r = rank().
///
/// Collectives must be called by all ranks of the group in the same order; send and receive by the two ranks
/// they name. Arguments are contiguous ranges of elements (element_range) and ranges of global_index counts;
/// blocks of several ranks are stored in rank order. Returned vectors are in host memory.
///
/// Each operation has a nonblocking form start_..., whose request must be waited for, in the same order on
/// all ranks. Its buffers and counts must outlive the wait and must not be modified before it. On device
/// memory an operation is ordered with the rank's queue: it sees work enqueued before it starts, and work
/// enqueued after the wait sees its result.
///
/// Operations throw communication_error, naming ranks and call sites, if buffers do not match their counts,
/// if ranks disagree (over NCCL: if checked), if a rank leaves or if the transport fails; poisoned_error if
/// another rank failed; device_error if a device failed.
class communicator {
  using source_location = std::source_location;
  template <class Range>
  using vector_of = std::vector<comm::element_of<Range>>;

 public:
  communicator(std::shared_ptr<partita::comm::transport> ranks, std::string axis,
               std::shared_ptr<partita::ledger> account = std::make_shared<partita::ledger>())
      : group_(std::make_shared<const comm::detail::rank_group>(
            comm::detail::rank_group{std::move(ranks), std::move(account), std::move(axis)})) {}

  int rank() const { return group_->ranks->rank(); }
  int size() const { return group_->ranks->size(); }
  /// This rank's ledger, shared by all communicators split from one world.
  partita::ledger& ledger() const { return *group_->account; }
  const std::string& axis() const { return group_->axis; }
  /// The underlying transport; operations issued on it directly are not recorded.
  const std::shared_ptr<partita::comm::transport>& transport() const { return group_->ranks; }

  /// The ranks with the same color, ordered by key, recorded in the ledger under `axis`. Collective over this
  /// group. Communication: an all-gather of colors and keys, not recorded.
  communicator split(int color, int key, std::string axis,
                     source_location where = source_location::current()) const {
    return communicator(transport()->split(color, key, comm::call_site::of(where)), std::move(axis),
                        group_->account);
  }

  /// The same group over device memory (see transport::on_memory), with the same ledger and axis. Operations
  /// on both count as operations of one group: all ranks must start them in the same order.
  communicator on_memory(std::shared_ptr<comm::device_memory> memory) const {
    return with_transport(transport()->on_memory(std::move(memory)));
  }

  /// The same group, ledger and axis over another transport.
  communicator with_transport(std::shared_ptr<partita::comm::transport> other) const {
    return {std::move(other), axis(), group_->account};
  }

  /// The same group and ledger, recorded under another axis name.
  communicator named(std::string axis) const { return {transport(), std::move(axis), group_->account}; }

  /// The same group, ledger and axis, whose reductions throw error instead of adding floating-point numbers;
  /// with `refuses` false, reductions add them.
  communicator refusing_sums(bool refuses = true) const {
    communicator other(*this);
    auto group = std::make_shared<comm::detail::rank_group>(*group_);
    group->refuses_sums = refuses;
    other.group_ = std::move(group);
    return other;
  }

  /// Calls start(), in which this rank starts operations of this group other than sums; they may all begin
  /// when it returns: in one launch over NCCL, where sums throw communication_error.
  template <class Start>
  void together(const Start& start) const {
    partita::comm::transport& ranks = *group_->ranks;
    ranks.open_together();
    try {
      start();
    } catch (...) {
      try {
        ranks.close_together();
      } catch (const communication_error&) {  // caused by the first error
      }
      throw;
    }
    ranks.close_together();
  }

  /// data = data of the root. data (n); n and root must agree on all ranks. Communication: every rank except
  /// the root receives n elements.
  template <comm::writable_range Data>
  void broadcast(Data&& data, int root, source_location where = source_location::current()) const {
    start_broadcast(data, root, where).wait();
  }
  template <comm::writable_range Data>
  [[nodiscard]] request start_broadcast(Data&& data, int root,
                                        source_location where = source_location::current()) const {
    const std::span all = comm::detail::output_of(data);
    return start_broadcast(type_of<Data>, all.data(), all.data(), ssize(all), root, where);
  }
  /// Out-of-place form: to = `from` of the root; `to` is not written on the root. from (n) on the root, to
  /// (n) on the others. Communication: every rank except the root receives n elements.
  template <comm::lasting_range From, comm::writable_like<From> To>
  [[nodiscard]] request start_broadcast(From&& from, To&& to, int root,
                                        source_location where = source_location::current()) const {
    const std::span sent = comm::detail::input_of(from);
    const std::span received = comm::detail::output_of(to);
    return start_broadcast(type_of<To>, sent.data(), received.data(),
                           rank() == root ? ssize(sent) : ssize(received), root, where);
  }
  /// Returns the root's value. Communication: every rank except the root receives one element.
  template <comm::transferable T>
  T broadcast(T value, int root, source_location where = source_location::current()) const {
    broadcast(std::span(&value, 1), root, where);
    return value;
  }

  /// all = (mine of rank 0, ..., mine of rank p - 1). mine (counts[r]), all (sum of counts); counts (p) must
  /// agree on all ranks. Communication: each rank receives every block except its own.
  template <comm::element_range Mine, comm::count_range Counts, comm::writable_like<Mine> All>
  void all_gather(const Mine& mine, const Counts& counts, All&& all,
                  source_location where = source_location::current()) const {
    start_all_gather(mine, counts, all, where).wait();
  }
  template <comm::lasting_range Mine, comm::lasting_count_range Counts, comm::writable_like<Mine> All>
  [[nodiscard]] request start_all_gather(Mine&& mine, Counts&& counts, All&& all,
                                         source_location where = source_location::current()) const {
    const std::span block = comm::detail::input_of(mine);
    const std::span counted = comm::detail::input_of(counts);
    const std::span blocks = comm::detail::output_of(all);
    return start_all_gather(type_of<Mine>, block.data(), ssize(block), blocks.data(), ssize(blocks), counted,
                            where);
  }
  /// As above; returns `all`.
  template <comm::element_range Mine, comm::count_range Counts>
  vector_of<Mine> all_gather(const Mine& mine, const Counts& counts,
                             source_location where = source_location::current()) const {
    vector_of<Mine> all(comm::total_of(comm::detail::input_of(counts)));
    all_gather(mine, counts, all, where);
    return all;
  }
  /// As above with mine (n), n equal on all ranks; returns p n elements.
  template <comm::element_range Mine>
  vector_of<Mine> all_gather(const Mine& mine, source_location where = source_location::current()) const {
    return all_gather(mine, equal_counts(ssize(comm::detail::input_of(mine))), where);
  }
  /// Returns the values of all ranks, in rank order. Communication: each rank receives p - 1 elements.
  template <comm::transferable T>
  std::vector<T> all_gather(T value, source_location where = source_location::current()) const {
    return all_gather(std::span<const T>(&value, 1), where);
  }

  /// mine = sum (or maximum) over ranks q, in rank order, of block r of rank q's `blocks`. blocks (sum of
  /// counts), mine (counts[r]); counts (p) must agree on all ranks. Communication: each rank receives p - 1
  /// blocks of counts[r] elements.
  template <comm::element_range Blocks, comm::count_range Counts, comm::writable_like<Blocks> Mine>
  void reduce_scatter(const Blocks& blocks, const Counts& counts, Mine&& mine,
                      reduction reduce = reduction::sum,
                      source_location where = source_location::current()) const {
    start_reduce_scatter(blocks, counts, mine, reduce, where).wait();
  }
  template <comm::lasting_range Blocks, comm::lasting_count_range Counts, comm::writable_like<Blocks> Mine>
  [[nodiscard]] request start_reduce_scatter(Blocks&& blocks, Counts&& counts, Mine&& mine,
                                             reduction reduce = reduction::sum,
                                             source_location where = source_location::current()) const {
    const std::span all = comm::detail::input_of(blocks);
    const std::span counted = comm::detail::input_of(counts);
    const std::span block = comm::detail::output_of(mine);
    return start_reduce_scatter(type_of<Blocks>, all.data(), ssize(all), block.data(), ssize(block), counted,
                                reduce, where);
  }
  /// As above with n elements per rank, blocks (p n); returns n elements.
  template <comm::element_range Blocks>
  vector_of<Blocks> reduce_scatter(const Blocks& blocks, reduction reduce = reduction::sum,
                                   source_location where = source_location::current()) const {
    const global_index n = equal_part(comm::detail::input_of(blocks), operation::reduce_scatter, where);
    vector_of<Blocks> mine(static_cast<std::size_t>(n));
    reduce_scatter(blocks, equal_counts(n), mine, reduce, where);
    return mine;
  }

  /// In place: data = sum (or maximum) over ranks, in rank order, of their data. data (n), n equal on all
  /// ranks. Communication: a rank that reduces a share of s elements receives (p - 1) s elements to reduce
  /// and n - s reduced ones; 2 n (p - 1) / p in total if p divides n.
  template <comm::writable_range Data>
  void all_reduce(Data&& data, reduction reduce = reduction::sum,
                  source_location where = source_location::current()) const {
    start_all_reduce(data, reduce, where).wait();
  }
  template <comm::writable_range Data>
  [[nodiscard]] request start_all_reduce(Data&& data, reduction reduce = reduction::sum,
                                         source_location where = source_location::current()) const {
    const std::span all = comm::detail::output_of(data);
    return start_all_reduce(type_of<Data>, all.data(), ssize(all), reduce, where);
  }
  /// Returns the sum (or maximum) of the ranks' values, in rank order. Communication: rank 0 receives p - 1
  /// elements, every other rank one.
  template <comm::transferable T>
  T all_reduce(T value, reduction reduce = reduction::sum,
               source_location where = source_location::current()) const {
    all_reduce(std::span(&value, 1), reduce, where);
    return value;
  }

  /// Block q of `from` = block r of rank q's `to`. to (sum of to_counts), from (sum of from_counts), counts
  /// (p); from_counts[q] must equal to_counts[r] on rank q. Communication: each rank receives all of `from`
  /// except its own block.
  template <comm::element_range To, comm::count_range ToCounts, comm::writable_like<To> From,
            comm::count_range FromCounts>
  void all_to_all(const To& to, const ToCounts& to_counts, From&& from, const FromCounts& from_counts,
                  source_location where = source_location::current()) const {
    start_all_to_all(to, to_counts, from, from_counts, where).wait();
  }
  template <comm::lasting_range To, comm::lasting_count_range ToCounts, comm::writable_like<To> From,
            comm::lasting_count_range FromCounts>
  [[nodiscard]] request start_all_to_all(To&& to, ToCounts&& to_counts, From&& from, FromCounts&& from_counts,
                                         source_location where = source_location::current()) const {
    const std::span sent = comm::detail::input_of(to);
    const std::span send_counts = comm::detail::input_of(to_counts);
    const std::span received = comm::detail::output_of(from);
    const std::span recv_counts = comm::detail::input_of(from_counts);
    return start_all_to_all(type_of<To>, sent.data(), ssize(sent), send_counts, received.data(),
                            ssize(received), recv_counts, where);
  }
  /// As above; returns `from`.
  template <comm::element_range To, comm::count_range ToCounts, comm::count_range FromCounts>
  vector_of<To> all_to_all(const To& to, const ToCounts& to_counts, const FromCounts& from_counts,
                           source_location where = source_location::current()) const {
    vector_of<To> from(comm::total_of(comm::detail::input_of(from_counts)));
    all_to_all(to, to_counts, from, from_counts, where);
    return from;
  }
  /// As above with n elements per rank, to (p n), n equal on all ranks; returns p n elements.
  template <comm::element_range To>
  vector_of<To> all_to_all(const To& to, source_location where = source_location::current()) const {
    const auto counts = equal_counts(equal_part(comm::detail::input_of(to), operation::all_to_all, where));
    return all_to_all(to, counts, counts, where);
  }

  /// Sends data (n) to rank `to`, which must call receive; completes when it has been received. Messages
  /// between the same pair with the same tag do not overtake each other. Communication: rank `to` receives n
  /// elements.
  template <comm::element_range Data>
  void send(const Data& data, int to, int tag = 0, source_location where = source_location::current()) const {
    start_send(data, to, tag, where).wait();
  }
  template <comm::lasting_range Data>
  [[nodiscard]] request start_send(Data&& data, int to, int tag = 0,
                                   source_location where = source_location::current()) const {
    const std::span message = comm::detail::input_of(data);
    comm::collective op = describe_operation(operation::send, type_of<Data>, where);
    op.peer = to;
    op.tag = tag;
    op.count = ssize(message);
    op.input = message.data();
    return start(op);
  }
  /// Receives data (n) from rank `from`, which must call send with the same n. Communication: this rank
  /// receives n elements.
  template <comm::writable_range Data>
  void receive(Data&& data, int from, int tag = 0, source_location where = source_location::current()) const {
    start_receive(data, from, tag, where).wait();
  }
  template <comm::writable_range Data>
  [[nodiscard]] request start_receive(Data&& data, int from, int tag = 0,
                                      source_location where = source_location::current()) const {
    const std::span message = comm::detail::output_of(data);
    comm::collective op = describe_operation(operation::receive, type_of<Data>, where);
    op.peer = from;
    op.tag = tag;
    op.count = ssize(message);
    op.output = message.data();
    return start(op);
  }

 private:
  template <class T>
  static global_index ssize(std::span<T> s) {
    return static_cast<global_index>(s.size());
  }
  template <class Range>
  static constexpr comm::element_type type_of = comm::element_type_of<comm::element_of<Range>>::value;

  static comm::collective describe_operation(operation kind, comm::element_type type, source_location where) {
    comm::collective op;
    op.kind = kind;
    op.type = type;
    op.where = comm::call_site::of(where);
    return op;
  }

  /// The operations on raw pointers.
  request start_broadcast(comm::element_type type, const void* from, void* to, global_index count, int root,
                          source_location where) const {
    comm::collective op = describe_operation(operation::broadcast, type, where);
    op.peer = root;
    op.count = count;
    if (rank() == root)
      op.input = from;
    else
      op.output = to;
    return start(op);
  }
  request start_all_gather(comm::element_type type, const void* mine, global_index count, void* all,
                           global_index size, std::span<const global_index> counts,
                           source_location where) const {
    comm::collective op = describe_operation(operation::all_gather, type, where);
    require(op, counts, size, "gathered buffer");
    require_block(op, counts, count);
    op.count = count;
    op.input = mine;
    op.output = all;
    op.output_counts = counts;
    return start(op);
  }
  request start_reduce_scatter(comm::element_type type, const void* blocks, global_index size, void* mine,
                               global_index count, std::span<const global_index> counts, reduction reduce,
                               source_location where) const {
    comm::collective op = describe_operation(operation::reduce_scatter, type, where);
    require(op, counts, size, "reduce-scatter input");
    require_block(op, counts, count);
    op.reduce = reduce;
    op.count = count;
    op.input = blocks;
    op.output = mine;
    op.input_counts = counts;
    return start(op);
  }
  request start_all_reduce(comm::element_type type, void* data, global_index count, reduction reduce,
                           source_location where) const {
    comm::collective op = describe_operation(operation::all_reduce, type, where);
    op.reduce = reduce;
    op.count = count;
    op.output = data;
    return start(op);
  }
  request start_all_to_all(comm::element_type type, const void* to, global_index sent,
                           std::span<const global_index> to_counts, void* from, global_index received,
                           std::span<const global_index> from_counts, source_location where) const {
    comm::collective op = describe_operation(operation::all_to_all, type, where);
    require(op, to_counts, sent, "send buffer");
    require(op, from_counts, received, "receive buffer");
    op.count = sent;
    op.input = to;
    op.output = from;
    op.input_counts = to_counts;
    op.output_counts = from_counts;
    return start(op);
  }
  request start(const comm::collective& op) const {
    if (group_->refuses_sums && comm::adds_rounded(op))
      base::throw_error<error>(
          {describe(op), " is not available on a reproducible mesh: its sums depend on the mesh"});
    return request(group_, op);
  }

  std::vector<global_index> equal_counts(global_index each) const {
    return std::vector<global_index>(static_cast<std::size_t>(size()), each);
  }
  /// Size of one of p equal blocks.
  template <class T>
  global_index equal_part(std::span<const T> blocks, operation kind, source_location where) const {
    if (ssize(blocks) % size() != 0)
      base::throw_error<communication_error>(
          {describe(describe_operation(kind, comm::element_type_of<T>::value, where)), ": ", blocks.size(),
           " elements cannot be divided evenly among ", size(), " ranks"});
    return ssize(blocks) / size();
  }
  void require(const comm::collective& op, std::span<const global_index> counts, global_index elements,
               const char* what) const {
    if (ssize(counts) != size())
      base::throw_error<communication_error>(
          {describe(op), ": ", counts.size(), " counts for ", size(), " ranks"});
    if (comm::offset_of(counts, size()) != elements)
      base::throw_error<communication_error>({describe(op), ": the ", what, " has ", elements,
                                              " elements, the counts say ", comm::offset_of(counts, size())});
  }
  void require_block(const comm::collective& op, std::span<const global_index> counts,
                     global_index elements) const {
    if (const global_index expected = counts[static_cast<std::size_t>(rank())]; expected != elements)
      base::throw_error<communication_error>({describe(op), ": the block of rank ", rank(), " has ", elements,
                                              " elements, the counts say ", expected});
  }

  std::shared_ptr<const comm::detail::rank_group> group_;
};

}  // namespace partita
