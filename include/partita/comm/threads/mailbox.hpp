#pragma once
/// Messages between two ranks of a group of threads. The sender posts where its message lies; the receiver
/// copies it from there, and the sender's operation is complete when it has.

#include <list>
#include <map>
#include <tuple>

#include "partita/comm/threads/rendezvous.hpp"

namespace partita::detail {

/// Every call is made with the lock of the rendezvous.
class mailbox {
 public:
  using lock = rendezvous::lock;

  explicit mailbox(rendezvous& at) : at_(at) {}

  /// Returns the token of a send.
  std::uint64_t send(const std::shared_ptr<thread_endpoint>& me, const comm::collective& op) {
    std::unique_ptr<operation_events> events = me->borrow_events();
    me->begin(*events);
    const std::uint64_t number = ++channels_[{me->rank(), op.peer, op.tag}].sent;
    messages_.push_back({++last_, number, {op, me}, std::move(events)});
    at_.changed.notify_all();
    return last_;
  }
  /// Returns the token of a receive: the number of its message.
  std::uint64_t receive(const thread_endpoint& me, const comm::collective& op) {
    return ++channels_[{op.peer, me.rank(), op.tag}].received;
  }

  void finish_send(lock& held, thread_endpoint& me, const comm::collective& op, std::uint64_t token) {
    const auto m = find(token);
    const auto wait_on_reader = [&] { me.wait_on(*m->events, operation_events::read); };
    const auto received = [&] {
      at_.wait(
          held, op, [&] { return m->received; }, [&] { return op.peer; });
      wait_on_reader();
    };
    at_.guarded(held, m->readers, received, wait_on_reader);
    me.return_events(std::move(m->events));
    messages_.erase(m);
  }

  void finish_receive(lock& held, thread_endpoint& me, const comm::collective& op, std::uint64_t number) {
    auto m = messages_.end();
    const auto arrived = [&] {
      for (m = messages_.begin(); m != messages_.end(); ++m)
        if (m->post.endpoint->rank() == op.peer && m->post.op.peer == me.rank() && m->post.op.tag == op.tag &&
            m->number == number)
          return true;
      return false;
    };
    at_.wait(held, op, arrived, [&] { return op.peer; });
    const posted_operation& sent = m->post;
    if (sent.op.count != op.count || sent.op.type != op.type || !me.shares_place_with(*sent.endpoint))
      at_.fail(held, sentence_of({"ranks disagree: rank ", at_.name(me.rank()), " calls ", describe(op),
                                  " for ", op.count, " elements", me.place(), ", ", at_.call(sent)}));
    {
      const rendezvous::reading unlocked(at_, held, m->readers);
      me.wait_on(*m->events, operation_events::posted);
      me.copy(sent.op.input, op.output, op.bytes(op.count));
      me.record(*m->events, operation_events::read);
    }
    m->received = true;
    at_.changed.notify_all();
  }

  /// Returns when nobody reads a message that was given up.
  void abandon_send(lock& held, thread_endpoint& me, std::uint64_t token) {
    const auto m = find(token);
    at_.wait_for_readers(held, m->readers);
    me.wait_on(*m->events, operation_events::read);
  }

 private:
  struct message {
    std::uint64_t id;
    std::uint64_t number;  ///< in its channel
    posted_operation post;
    std::unique_ptr<operation_events> events;
    int readers = 0;
    bool received = false;
  };
  /// Messages of one pair of ranks and one tag: number k that was sent is number k that is received.
  struct channel {
    std::uint64_t sent = 0, received = 0;
  };

  std::list<message>::iterator find(std::uint64_t id) {
    auto m = messages_.begin();
    while (m->id != id) ++m;
    return m;
  }

  rendezvous& at_;
  std::list<message> messages_;
  std::uint64_t last_ = 0;
  std::map<std::tuple<int, int, int>, channel> channels_;  ///< by sender, receiver, tag
};

}  // namespace partita::detail
