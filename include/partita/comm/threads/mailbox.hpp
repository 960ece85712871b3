// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Point-to-point messages between thread ranks. The sender posts its buffer; the receiver copies from it,
/// which completes the send.

#include <memory>
#include <vector>

#include "partita/comm/threads/rendezvous.hpp"

namespace partita::comm::detail {

/// All calls require the rendezvous lock.
class mailbox {
 public:
  using lock = rendezvous::lock;

  explicit mailbox(rendezvous& at) : at_(at) {}

  /// Returns the token of a send.
  std::uint64_t send(const std::shared_ptr<thread_endpoint>& me, const comm::collective& op) {
    std::unique_ptr<operation_events> events = me->borrow_events();
    me->begin(*events);
    const std::uint64_t number = ++channel_of(me->rank(), op.peer, op.tag).sent;
    messages_.push_back(std::make_unique<message>(message{++last_, number, {op, me}, std::move(events)}));
    at_.changed.notify_all();
    return last_;
  }
  /// Returns the token of a receive: the number of its message in the channel.
  std::uint64_t receive(const thread_endpoint& me, const comm::collective& op) {
    return ++channel_of(op.peer, me.rank(), op.tag).received;
  }

  void finish_send(lock& held, thread_endpoint& me, const comm::collective& op, std::uint64_t token) {
    message* const m = find(token);
    const auto wait_on_reader = [&] { me.wait_on(*m->events, operation_events::read); };
    const auto received = [&] {
      at_.wait(
          held, me.rank(), op, [&] { return m->received; }, [&](int q) { return q == op.peer; });
      wait_on_reader();
    };
    at_.guarded(held, m->readers, received, wait_on_reader);
    me.return_events(std::move(m->events));
    std::erase_if(messages_, [m](const auto& sent) { return sent.get() == m; });
  }

  void finish_receive(lock& held, thread_endpoint& me, const comm::collective& op, std::uint64_t number) {
    message* m = nullptr;
    const auto arrived = [&] {
      for (const auto& c : messages_)
        if (c->post.endpoint->rank() == op.peer && c->post.op.peer == me.rank() && c->post.op.tag == op.tag &&
            c->number == number)
          m = c.get();
      return m != nullptr;
    };
    at_.wait(held, me.rank(), op, arrived, [&](int q) { return q == op.peer; });
    const posted_operation& sent = m->post;
    if (sent.op.count != op.count || sent.op.type != op.type || !me.shares_place_with(*sent.endpoint))
      at_.fail(held,
               base::sentence_of({"ranks disagree: rank ", at_.name(me.rank()), " calls ", describe(op),
                                  " for ", op.count, " elements", me.device_name(), ", ", at_.call(sent)}));
    {
      const rendezvous::reading unlocked(at_, held, m->readers);
      me.wait_on(*m->events, operation_events::posted);
      me.copy(sent.op.input, op.output, op.bytes(op.count));
      me.record(*m->events, operation_events::read);
    }
    m->received = true;
    at_.changed.notify_all();
  }

  /// Waits until no peer is reading the abandoned message.
  void abandon_send(lock& held, thread_endpoint& me, std::uint64_t token) {
    message* const m = find(token);
    at_.wait_for_readers(held, m->readers);
    me.wait_on(*m->events, operation_events::read);
  }

 private:
  struct message {
    std::uint64_t id;
    std::uint64_t number;  ///< of the message in its channel
    posted_operation post;
    std::unique_ptr<operation_events> events;
    int readers = 0;
    bool received = false;
  };
  /// Messages of one (from, to, tag): the k-th send matches the k-th receive.
  struct channel {
    int from, to, tag;
    std::uint64_t sent = 0, received = 0;
  };

  message* find(std::uint64_t id) const {
    std::size_t m = 0;
    while (messages_[m]->id != id) ++m;
    return messages_[m].get();
  }
  channel& channel_of(int from, int to, int tag) {
    for (channel& c : channels_)
      if (c.from == from && c.to == to && c.tag == tag) return c;
    return channels_.emplace_back(channel{from, to, tag});
  }

  rendezvous& at_;
  std::vector<std::unique_ptr<message>> messages_;
  std::uint64_t last_ = 0;
  std::vector<channel> channels_;
};

}  // namespace partita::comm::detail
