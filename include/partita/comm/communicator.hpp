#pragma once
/// A communicator: a value handle over any model of transport, with the ledger of its rank. Copies are the
/// same group.
///
/// Every collective must be called by all ranks of the group, in the same order. Each has a form that starts
/// now and is waited for later, in the same order by all ranks; memory and counts given to it must live, and
/// stay untouched, until then. Over memory of a device, an operation takes its place in the work of the
/// rank's queue: it sees what was enqueued before, and what is enqueued after its wait sees it.

#include <chrono>
#include <utility>

#include "partita/comm/ledger.hpp"
#include "partita/comm/transport.hpp"

namespace partita {

class communicator;

/// An operation in flight. It must be waited for; destroying it earlier (while an exception passes) fails the
/// group.
class request {
 public:
  request() = default;
  request(request&& other) noexcept { swap(other); }
  request& operator=(request&& other) noexcept {
    request(std::move(other)).swap(*this);
    return *this;
  }
  ~request() {
    if (transport_) transport_->abandon(operation_, token_);
  }

  /// Returns when the output is written and the input may be reused. Throws what the group failed with.
  void wait();
  bool pending() const { return transport_ != nullptr; }

 private:
  friend class communicator;
  request(const communicator& c, const collective& op);

  void swap(request& other) noexcept {
    std::swap(transport_, other.transport_);
    std::swap(ledger_, other.ledger_);
    std::swap(axis_, other.axis_);
    std::swap(operation_, other.operation_);
    std::swap(token_, other.token_);
    std::swap(seconds_, other.seconds_);
  }

  std::shared_ptr<transport> transport_;
  std::shared_ptr<ledger> ledger_;
  std::shared_ptr<const std::string> axis_;
  collective operation_;
  std::uint64_t token_ = 0;
  double seconds_ = 0;
};

class communicator {
 public:
  communicator(std::shared_ptr<transport> model, std::string axis,
               std::shared_ptr<partita::ledger> account = std::make_shared<partita::ledger>())
      : transport_(std::move(model)),
        ledger_(std::move(account)),
        axis_(std::make_shared<const std::string>(std::move(axis))) {}

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  /// The account of this rank, shared by all communicators split from one world.
  partita::ledger& ledger() const { return *ledger_; }
  const std::string& axis() const { return *axis_; }
  /// What carries the operations; operations that are given to it directly are in no account.
  const std::shared_ptr<transport>& model() const { return transport_; }

  /// Groups of ranks of equal color, ordered by key, entered in the ledger under `axis`.
  communicator split(int color, int key, std::string axis) const {
    return communicator(transport_->split(color, key), std::move(axis), ledger_);
  }

  /// The same ranks for memory of a device (see transport::over), with the same account and axis. Operations
  /// of both are operations of one group: all ranks start them in the same order.
  communicator over(std::shared_ptr<device_memory> memory) const {
    return with(transport_->over(std::move(memory)));
  }

  /// The same ranks, account and axis over another model.
  communicator with(std::shared_ptr<transport> model) const {
    communicator c = *this;
    c.transport_ = std::move(model);
    return c;
  }

  /// The same ranks and account, entered there under another name.
  communicator entered_under(std::string axis) const { return {transport_, std::move(axis), ledger_}; }

  /// data of `root` to all. Others receive data.size() elements.
  template <class T>
  request start_broadcast(std::span<T> data, int root,
                          std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::broadcast, where);
    op.peer = root;
    op.count = ssize(data);
    op.output = data.data();
    return request(*this, op);
  }

  /// The same with a buffer of its own at the root, which is only read: `from` of the root arrives in `to` of
  /// the others.
  template <class T>
  request start_broadcast(std::span<const T> from, std::span<T> to, int root,
                          std::source_location where = std::source_location::current()) const {
    return start_broadcast(rank() == root ? std::span<T>(const_cast<T*>(from.data()), from.size()) : to, root,
                           where);
  }

  /// all = the blocks of every rank, in rank order; counts[q] elements come from rank q.
  template <class T>
  request start_all_gather(std::span<const T> mine, std::span<const global_index> counts, std::span<T> all,
                           std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::all_gather, where);
    require(op, counts, ssize(all), "gathered buffer");
    require_block(op, counts, ssize(mine));
    op.count = ssize(mine);
    op.input = mine.data();
    op.output = all.data();
    op.output_counts = counts;
    return request(*this, op);
  }

  /// mine = the reduction over ranks of their block number rank(); counts[q] elements go to rank q. Summed in
  /// rank order.
  template <class T>
  request start_reduce_scatter(std::span<const T> blocks, std::span<const global_index> counts,
                               std::span<T> mine, reduction reduce = reduction::sum,
                               std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::reduce_scatter, where);
    require(op, counts, ssize(blocks), "buffer to be scattered");
    require_block(op, counts, ssize(mine));
    op.reduce = reduce;
    op.count = ssize(mine);
    op.input = blocks.data();
    op.output = mine.data();
    op.input_counts = counts;
    return request(*this, op);
  }

  /// data = the reduction over ranks of data, in place, summed in rank order.
  template <class T>
  request start_all_reduce(std::span<T> data, reduction reduce = reduction::sum,
                           std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::all_reduce, where);
    op.reduce = reduce;
    op.count = ssize(data);
    op.output = data.data();
    return request(*this, op);
  }

  /// Block q of `to` goes to rank q; block q of `from` comes from rank q.
  template <class T>
  request start_all_to_all(std::span<const T> to, std::span<const global_index> to_counts, std::span<T> from,
                           std::span<const global_index> from_counts,
                           std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::all_to_all, where);
    require(op, to_counts, ssize(to), "buffer to be sent");
    require(op, from_counts, ssize(from), "buffer to be received");
    op.count = ssize(to);
    op.input = to.data();
    op.output = from.data();
    op.input_counts = to_counts;
    op.output_counts = from_counts;
    return request(*this, op);
  }

  /// A message to one rank; complete when that rank has received it. Messages of one pair and tag keep their
  /// order.
  template <class T>
  request start_send(std::span<const T> data, int to, int tag = 0,
                     std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::send, where);
    op.peer = to;
    op.tag = tag;
    op.count = ssize(data);
    op.input = data.data();
    return request(*this, op);
  }
  template <class T>
  request start_receive(std::span<T> data, int from, int tag = 0,
                        std::source_location where = std::source_location::current()) const {
    collective op = describe_operation<T>(operation::receive, where);
    op.peer = from;
    op.tag = tag;
    op.count = ssize(data);
    op.output = data.data();
    return request(*this, op);
  }

  template <class T>
  void broadcast(std::span<T> data, int root,
                 std::source_location where = std::source_location::current()) const {
    start_broadcast(data, root, where).wait();
  }
  template <class T>
  void all_gather(std::span<const T> mine, std::span<const global_index> counts, std::span<T> all,
                  std::source_location where = std::source_location::current()) const {
    start_all_gather(mine, counts, all, where).wait();
  }
  template <class T>
  void reduce_scatter(std::span<const T> blocks, std::span<const global_index> counts, std::span<T> mine,
                      reduction reduce = reduction::sum,
                      std::source_location where = std::source_location::current()) const {
    start_reduce_scatter(blocks, counts, mine, reduce, where).wait();
  }
  template <class T>
  void all_reduce(std::span<T> data, reduction reduce = reduction::sum,
                  std::source_location where = std::source_location::current()) const {
    start_all_reduce(data, reduce, where).wait();
  }
  template <class T>
  void all_to_all(std::span<const T> to, std::span<const global_index> to_counts, std::span<T> from,
                  std::span<const global_index> from_counts,
                  std::source_location where = std::source_location::current()) const {
    start_all_to_all(to, to_counts, from, from_counts, where).wait();
  }
  template <class T>
  void send(std::span<const T> data, int to, int tag = 0,
            std::source_location where = std::source_location::current()) const {
    start_send(data, to, tag, where).wait();
  }
  template <class T>
  void receive(std::span<T> data, int from, int tag = 0,
               std::source_location where = std::source_location::current()) const {
    start_receive(data, from, tag, where).wait();
  }

 private:
  friend class request;

  template <class T>
  static global_index ssize(std::span<T> s) {
    return static_cast<global_index>(s.size());
  }
  template <class T>
  static collective describe_operation(operation kind, std::source_location where) {
    collective op;
    op.kind = kind;
    op.type = element_type_of<T>::value;
    op.where = where;
    return op;
  }
  void require(const collective& op, std::span<const global_index> counts, global_index elements,
               const char* what) const {
    if (ssize(counts) != size())
      throw communication_error(describe(op) + ": " + std::to_string(counts.size()) + " counts for " +
                                std::to_string(size()) + " ranks");
    if (offset_of(counts, size()) != elements)
      throw communication_error(describe(op) + ": the " + what + " has " + std::to_string(elements) +
                                " elements, the counts say " + std::to_string(offset_of(counts, size())));
  }
  void require_block(const collective& op, std::span<const global_index> counts,
                     global_index elements) const {
    if (const global_index expected = counts[static_cast<std::size_t>(rank())]; expected != elements)
      throw communication_error(describe(op) + ": the block of rank " + std::to_string(rank()) + " has " +
                                std::to_string(elements) + " elements, the counts say " +
                                std::to_string(expected));
  }

  std::shared_ptr<transport> transport_;
  std::shared_ptr<partita::ledger> ledger_;
  std::shared_ptr<const std::string> axis_;
};

namespace detail {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace detail

inline request::request(const communicator& c, const collective& op)
    : ledger_(c.ledger_), axis_(c.axis_), operation_(op) {
  const double begin = detail::seconds_now();
  if ((op.kind == operation::broadcast || op.kind == operation::send || op.kind == operation::receive) &&
      (op.peer < 0 || op.peer >= c.size()))
    throw communication_error(describe(op) + ": there is no rank " + std::to_string(op.peer) + " among " +
                              std::to_string(c.size()));
  token_ = c.transport_->start(op);
  transport_ = c.transport_;
  seconds_ = detail::seconds_now() - begin;
}

inline void request::wait() {
  if (!transport_) return;
  const double begin = detail::seconds_now();
  const std::shared_ptr<transport> t = std::exchange(transport_, nullptr);
  t->finish(operation_, token_);
  if (t->size() > 1)
    ledger_->enter(operation_, *axis_, received(operation_, t->rank(), t->size()),
                   seconds_ + detail::seconds_now() - begin);
}

}  // namespace partita
