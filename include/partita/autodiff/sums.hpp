// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums, differences and multiples of variables.

#include <array>

#include "partita/algebra/elementwise.hpp"
#include "partita/autodiff/tape.hpp"
#include "partita/base/function.hpp"

namespace partita::autodiff {

namespace detail {

/// a X; a sum that alone reads it multiplies by a itself.
template <class T, class Device, class Form>
class scaled_node final : public node<T, Device> {
 public:
  using node<T, Device>::node;
  using typename node<T, Device>::slot;

  scaled_node(std::vector<slot*> from, slot& to, T factor)
      : node<T, Device>(std::move(from), to), factor_(factor) {}
  T factor() const { return factor_; }
  void join(node<T, Device>& sum) { this->fuse_into(&sum); }

  void forward() override {
    if (!this->fused())
      partita::transform(Form::read(*this->in().value), Form::write(*this->to().value),
                         base::scaled<T>{factor_});
  }
  void backward() override {
    if (!this->fused()) this->in().add(factor_, *this->to().gradient);
  }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }

 private:
  T factor_;
};

/// a X + b Y, in the memory of one of them that nobody else reads. Where a and b are 1 and nobody else reads
/// either, the later product adds to the other.
template <class T, class Device, class Form>
class sum_node final : public node<T, Device> {
 public:
  using typename node<T, Device>::slot;

  sum_node(std::vector<slot*> from, slot& to, T second_factor)
      : node<T, Device>(std::move(from), to), terms_{{{1, &this->in(0)}, {second_factor, &this->in(1)}}} {}

  void settle() override {
    for (std::size_t k = 0; k < 2; ++k) take_factor(k);
    if (is_added_by_product()) {
      for (const term& x : terms_) x.of->in_place = &this->to();
      return;
    }
    if (!this->alone_reads(*terms_[0].of)) std::swap(terms_[0], terms_[1]);
    if (this->alone_reads(*terms_[0].of)) terms_[0].of->in_place = &this->to();
  }
  void forward() override {
    const auto& [x, y] = terms_;
    if (!this->fused())
      partita::zip(Form::read(*x.of->value), Form::read(*y.of->value), Form::write(*this->to().value),
                   base::linear_combination<T>{x.factor, y.factor});
  }
  void backward() override {
    for (const term& x : terms_)
      if (!is_here(x)) x.of->add(x.factor, *this->to().gradient);
    for (const term& x : terms_) {
      if (!is_here(x)) continue;
      if (scales_in_place(x)) {
        auto& d = Form::write(*this->to().gradient);
        partita::transform(d, d, base::scaled<T>{x.factor});
      }
      x.of->written = true;
    }
  }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }
  bool overwrites_gradient() const override {
    return scales_in_place(terms_[0]) || scales_in_place(terms_[1]);
  }

 private:
  struct term {
    T factor;
    slot* of;
  };

  bool is_here(const term& x) const { return x.of->in_place == &this->to(); }
  bool scales_in_place(const term& x) const { return is_here(x) && x.factor != 1 && x.of->needs_gradient; }
  bool is_added_by_product() {
    if (terms_[0].factor != 1 || terms_[1].factor != 1) return false;
    if (!this->alone_reads(*terms_[0].of) || !this->alone_reads(*terms_[1].of)) return false;
    auto &first = terms_[0].of->producer->performer(), &second = terms_[1].of->producer->performer();
    auto& later = first.number() < second.number() ? second : first;
    if (!later.take_sum()) return false;
    this->fuse_into(&later);
    return true;
  }
  /// Reads what a scaled term was made of.
  void take_factor(std::size_t k) {
    auto* const scaled = dynamic_cast<scaled_node<T, Device, Form>*>(this->in(k).producer);
    if (scaled == nullptr || !this->alone_reads(this->in(k))) return;
    scaled->join(*this);
    this->in(k).in_place = &this->to();
    terms_[k] = {terms_[k].factor * scaled->factor(), scaled->from().front()};
  }

  std::array<term, 2> terms_;
};

template <class T, class Device>
place<Device> place_of(const variable<T, Device>& x) {
  return {x.on().mesh(), x.layout(), x.row_blocking(), x.col_blocking()};
}

template <class T, class Device>
void require_alike(const char* what, const variable<T, Device>& x, const variable<T, Device>& y) {
  if (x.layout() == y.layout() && x.row_blocking() == y.row_blocking() &&
      x.col_blocking() == y.col_blocking())
    return;
  base::throw_error<shape_error>({what, " needs variables of the same layout and blockings, not ", x.shape(),
                                  " with (", to_string(x.layout()), ") and ", y.shape(), " with (",
                                  to_string(y.layout()), ")"});
}

}  // namespace detail

/// x + y, x - y and a x; adjoints: dx = dz and dy = dz; dy = -dz; dx = a dz. a x + b y is computed in one
/// pass where the sum alone reads its terms. Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> operator+(variable<T, Device> x, variable<T, Device> y) {
  detail::require_alike("a sum", x, y);
  return x.on().template record<detail::sum_node<T, Device, detail::whole_matrix>>(detail::place_of(x),
                                                                                   {x, y}, false, T(1));
}
template <class T, class Device>
variable<T, Device> operator-(variable<T, Device> x, variable<T, Device> y) {
  detail::require_alike("a difference", x, y);
  return x.on().template record<detail::sum_node<T, Device, detail::whole_matrix>>(detail::place_of(x),
                                                                                   {x, y}, false, T(-1));
}
template <class T, class Device>
variable<T, Device> operator*(double a, variable<T, Device> x) {
  return x.on().template record<detail::scaled_node<T, Device, detail::whole_matrix>>(
      detail::place_of(x), {x}, false, static_cast<T>(a));
}

}  // namespace partita::autodiff
