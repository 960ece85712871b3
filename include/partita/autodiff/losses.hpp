// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Losses of variables with whole rows.

#include "partita/algebra/loss.hpp"
#include "partita/algebra/soft_targets.hpp"
#include "partita/algebra/value_loss.hpp"
#include "partita/autodiff/tape.hpp"

namespace partita::autodiff {

namespace detail {

struct scaled_by {
  double a;
  template <class T>
  constexpr T operator()(T x) const {
    return static_cast<T>(a) * x;
  }
};

template <class T, class Device, class Form, class Function>
class loss_of final : public loss_node<T, Device> {
  using base = loss_node<T, Device>;

 public:
  loss_of(std::vector<typename base::slot*> from, typename base::slot& to, Function f, traffic sent)
      : base(std::move(from), to), f_(std::move(f)), sent_(sent) {}
  void settle() override { this->in().allocate(gradient_); }
  void forward() override {
    this->value_ = f_(Form::read_rows(*this->in().value), Form::write_rows(gradient_));
  }
  void backward() override {
    this->in().give([&](auto& d) {
      if (this->weight_ == 1)
        partita::copy(Form::read(gradient_), Form::write(d));
      else
        partita::transform(Form::read(gradient_), Form::write(d), scaled_by{this->weight_});
    });
  }
  traffic predicted_forward() const override { return sent_; }
  bool reads_again() const override { return false; }

 private:
  Function f_;
  traffic sent_;
  matrix_views<T, Device> gradient_;
};

}  // namespace detail

/// loss = f(z, dz), a function of one's own on matrices with whole rows that returns the loss, the same on
/// every rank, and writes its gradient, as the verbs of algebra/loss.hpp, value_loss.hpp and soft_targets.hpp
/// do. `sent`: what this rank receives in a call. Throws shape_error for a z in another layout.
template <class T, class Device, class Function>
scalar<T, Device> loss(variable<T, Device> z, Function f, traffic sent = {}) {
  if (z.layout() != vertex_rows)
    base::throw_error<shape_error>({"a loss is one of whole rows, not of ", z.shape(), " with (",
                                    to_string(z.layout()), "); redistribute it to vertex_rows"});
  return z.on().template record_loss<detail::loss_of<T, Device, detail::whole_matrix, Function>>(
      z, std::move(f), sent);
}

/// The mean over counted vertices of -log softmax(z)_label; see algebra::cross_entropy. `labels` must outlive
/// the tape.
template <class T, class Device>
scalar<T, Device> cross_entropy(variable<T, Device> z, const algebra::vertex_labels<Device>& labels) {
  return loss(
      z, [&labels](const auto& x, auto& dx) { return algebra::cross_entropy(x, labels, dx); },
      algebra::predicted_sum<double>(z.on().mesh(), 1));
}

/// Cross-entropy with distributions as targets (n x classes); with those of algebra::soft_targets, with class
/// weights and label smoothing. See algebra::soft_cross_entropy. `targets` must outlive the tape.
template <class T, class Device>
scalar<T, Device> soft_cross_entropy(variable<T, Device> z,
                                     const std::type_identity_t<dense<T, vertex_rows, Device>>& targets) {
  return loss(
      z,
      [&targets, memory = buffer<T, Device>()](const auto& x, auto& dx) mutable {
        return algebra::soft_cross_entropy(x, targets, dx, memory);
      },
      algebra::predicted_sum<T>(z.on().mesh(), 1));
}
/// The logistic loss of z against 0/1 targets of several labels (n x classes), -1 in the rows of vertices
/// that are not counted; `counted`: how many are, over all ranks. See algebra::logistic_loss. `targets` must
/// outlive the tape.
template <class T, class Device>
scalar<T, Device> logistic_loss(variable<T, Device> z,
                                const std::type_identity_t<dense<T, vertex_rows, Device>>& targets,
                                global_index counted) {
  return loss(
      z,
      [&targets, counted](const auto& x, auto& dx) {
        return algebra::logistic_loss(x, targets, counted, dx);
      },
      algebra::predicted_sum<T>(z.on().mesh(), 1));
}
/// The mean of error(z - t) over the targets that are numbers, `counted` over all ranks: with
/// algebra::squared_error, absolute_error, huber_error or one of your own. See algebra::value_loss. `targets`
/// must outlive the tape.
template <class Error, class T, class Device>
scalar<T, Device> value_loss(variable<T, Device> z,
                             const std::type_identity_t<dense<T, vertex_rows, Device>>& targets,
                             const Error& error, double counted) {
  return loss(
      z,
      [&targets, error, counted](const auto& x, auto& dx) {
        return algebra::value_loss(x, targets, dx, error, counted);
      },
      algebra::predicted_sum<T>(z.on().mesh(), 1));
}

/// The sum of all entries of x. Collective over the mesh. What travels: see sum.
template <class T, class Device>
scalar<T, Device> sum(variable<T, Device> x) {
  return loss(
      x,
      [](const auto& z, auto& dz) {
        fill(dz, T(1));
        return static_cast<double>(partita::sum(z));
      },
      algebra::predicted_sum<T>(x.on().mesh(), 1));
}

}  // namespace partita::autodiff
