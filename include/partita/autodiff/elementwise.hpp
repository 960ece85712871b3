// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Element-wise verbs on variables, in any layout, beside those of sums.hpp: functions by dual numbers, relu,
/// dropout; changes of layout, and of rows.

#include "partita/algebra/row_products.hpp"
#include "partita/autodiff/sums.hpp"
#include "partita/base/dual.hpp"
#include "partita/base/function.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita::autodiff {

namespace detail {

/// d f'(x).
template <class Function>
struct chained {
  Function f;
  template <class T>
  constexpr T operator()(T x, T d) const {
    return d * f(base::dual<T, 1>::input(x, 0)).slope[0];
  }
};

/// d f / d operand K.
template <class Function, int K>
struct slope_of_two {
  Function f;
  template <class T>
  constexpr T operator()(T x, T y) const {
    using dual = base::dual<T, 1>;
    return f(K == 0 ? dual::input(x, 0) : dual(x), K == 1 ? dual::input(y, 0) : dual(y)).slope[0];
  }
};

template <class T, class Device, class Form, class Function>
class transform_node final : public node<T, Device> {
  using base = node<T, Device>;

 public:
  transform_node(std::vector<typename base::slot*> from, typename base::slot& to, Function f)
      : base(std::move(from), to), f_(f) {}
  void forward() override {
    partita::transform(Form::read(*this->in().value), Form::write(*this->to().value), f_);
  }
  void backward() override {
    this->in().give([&](auto& d) {
      partita::zip(Form::read(*this->in().value), Form::read(*this->to().gradient), Form::write(d),
                   chained<Function>{f_});
    });
  }
  bool keeps_output() const override { return false; }

 private:
  Function f_;
};

template <class T, class Device, class Form, class Function>
class zip_node final : public node<T, Device> {
  using base = node<T, Device>;

 public:
  zip_node(std::vector<typename base::slot*> from, typename base::slot& to, Function f)
      : base(std::move(from), to), f_(f) {}
  void forward() override {
    partita::zip(Form::read(*this->in().value), Form::read(*this->in(1).value),
                 Form::write(*this->to().value), f_);
  }
  void backward() override {
    give<0>();
    give<1>();
  }
  bool keeps_output() const override { return false; }

 private:
  template <int K>
  void give() {
    this->in(K).give([&](auto& d) {
      auto& into = Form::write(d);
      partita::zip(Form::read(*this->in().value), Form::read(*this->in(1).value), into,
                   slope_of_two<Function, K>{f_});
      partita::zip(into, Form::read(*this->to().gradient), into, std::multiplies<>{});
    });
  }

  Function f_;
};

/// Works in the memory of what it reads, where nobody else reads that.
template <class T, class Device, class Form>
class in_place_node : public node<T, Device> {
 public:
  using node<T, Device>::node;
  using typename node<T, Device>::slot;

  void settle() override {
    if (!this->alone_reads(this->in(), drops())) return;
    this->in().in_place = &this->to();
    if (auto* const p = this->maker(); fuses(*p)) this->fuse_into(p);
  }
  bool reads_again() const final { return false; }
  void forward() override {
    if (!this->fused()) compute(Form::read(*this->in().value), Form::write(*this->to().value));
  }
  void backward() override {
    if (is_in_place()) {
      if (!this->in().needs_gradient) return;
      auto& d = Form::write(*this->to().gradient);
      pull(d, d);
      this->in().written = true;
    } else {
      this->in().give([&](auto& d) { pull(Form::read(*this->to().gradient), Form::write(d)); });
    }
  }

 protected:
  using matrix = typename Form::template matrix<T, Device>;

  bool is_in_place() const { return this->in().in_place == &this->to(); }
  virtual bool drops() const { return false; }
  virtual bool fuses(node<T, Device>& p) = 0;
  virtual void compute(const matrix& x, matrix& y) = 0;
  /// dx from dy, which may be the same.
  virtual void pull(const matrix& dy, matrix& dx) = 0;
};

struct passes_positive {
  template <class T>
  constexpr T operator()(T out, T d) const {
    return out > T(0) ? d : T(0);
  }
};

template <class T, class Device, class Form>
class relu_node final : public in_place_node<T, Device, Form> {
 public:
  using in_place_node<T, Device, Form>::in_place_node;
  using typename in_place_node<T, Device, Form>::matrix;

  bool allows_dropout() const override { return true; }
  bool overwrites_gradient() const override { return this->is_in_place(); }

 protected:
  bool fuses(node<T, Device>& p) override { return p.take_relu(); }
  void compute(const matrix& x, matrix& y) override { partita::transform(x, y, base::positive_part{}); }
  void pull(const matrix& dy, matrix& dx) override {
    partita::zip(Form::read(*this->to().value), dy, dx, passes_positive{});
  }
};

template <class T, class Device, class Form>
class dropout_node final : public in_place_node<T, Device, Form> {
 public:
  using typename in_place_node<T, Device, Form>::matrix;
  using typename in_place_node<T, Device, Form>::slot;

  dropout_node(std::vector<slot*> from, slot& to, double rate, random_key key)
      : in_place_node<T, Device, Form>(std::move(from), to), rate_(rate), key_(key) {}
  void begin(const step& s) override {
    mask_ = {s.training ? rate_ : 0, {key_.seed, s.epoch, key_.stream}, s.vertices};
  }
  bool keeps_output() const override { return false; }
  bool overwrites_gradient() const override { return this->is_in_place(); }

 protected:
  bool drops() const override { return true; }
  bool fuses(node<T, Device>& p) override {
    return p.take_dropout([this] { return mask_; });
  }
  void compute(const matrix& x, matrix& y) override { apply(x, y); }
  void pull(const matrix& dy, matrix& dx) override { apply(dy, dx); }

 private:
  void apply(const matrix& x, matrix& y) {
    if (mask_.probability == 0) {
      if (&x != &y) partita::copy(x, y);
    } else if constexpr (std::is_same_v<Form, whole_edges>) {
      drop_edges_(x, y, mask_);
    } else {
      partita::dropout(x, y, mask_);
    }
  }

  double rate_;
  random_key key_;
  dropout_mask mask_;
  algebra::edge_dropout<T, Device> drop_edges_;
};

template <class T, class Device, class Form>
class add_row_node final : public in_place_node<T, Device, Form> {
 public:
  using in_place_node<T, Device, Form>::in_place_node;
  using typename in_place_node<T, Device, Form>::matrix;

  void backward() override {
    this->in(1).give(
        [&](auto& d) { algebra::column_sums_part(Form::read_rows(*this->to().gradient), d.whole()); });
    in_place_node<T, Device, Form>::backward();
  }
  traffic predicted_backward() const override {
    const auto& b = this->in(1);
    if (!b.needs_gradient) return {};
    if constexpr (std::is_same_v<Form, whole_edges>)
      return algebra::predicted_part_of_edges(*this->in().pattern, b.at.cols.size());
    else
      return algebra::predicted_part<T>(b.at.mesh, b.at.cols.size());
  }
  bool keeps_output() const override { return false; }

 protected:
  bool fuses(node<T, Device>& p) override { return p.take_bias(this->in(1)); }
  void compute(const matrix& x, matrix& y) override {
    if (&x != &y) partita::copy(x, y);
    partita::add_row(this->in(1).value->whole(), y);
  }
  void pull(const matrix& dy, matrix& dx) override {
    if (&dx != &dy) partita::copy(dy, dx);
  }
};

template <class T, class Device>
class redistribute_node final : public node<T, Device> {
  using base = node<T, Device>;

 public:
  redistribute_node(std::vector<typename base::slot*> from, typename base::slot& to)
      : base(std::move(from), to), there_(plan(this->in(), to)), back_(plan(to, this->in())) {}
  void forward() override { there_(this->in().value->any(), this->to().value->any()); }
  void backward() override {
    this->in().give([&](auto& d) { back_(this->to().gradient->any(), d.any()); });
  }
  traffic predicted_forward() const override { return there_.predicted(); }
  traffic predicted_backward() const override { return back_.predicted(); }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }

 private:
  static redistribution<T, Device> plan(const typename base::slot& x, const typename base::slot& y) {
    return {x.at.mesh, x.at.rows, x.at.cols, x.at.layout, y.at.layout};
  }
  redistribution<T, Device> there_, back_;
};

/// The first rows of X, copied; of slices of columns, those of their targets.
template <class T, class Device>
class first_rows_node final : public node<T, Device> {
 public:
  using node<T, Device>::node;

  void forward() override {
    auto &x = this->in(), &y = this->to();
    y.given.reset();
    if (x.sliced)
      y.given = x.given->slices()->targets();
    else
      copy(first_rows(std::as_const(x.rows()), y.at.rows), y.rows());
  }
  void backward() override {
    auto& x = this->in();
    if (!x.needs_gradient || x.sliced) return;
    auto first = first_rows(x.sum().rows(), this->to().at.rows);
    partita::zip(first, this->to().gradient->rows(), first, base::linear_combination<T>{1, 1});
  }
  bool reads_as_given(const algebra::operand<T, Device>& h) const override { return h.slices() != nullptr; }
  bool hands_on_slices() const override { return true; }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }
};

inline void require_rate(double rate) {
  if (!(rate >= 0 && rate < 1))
    base::throw_error<error>({"a dropout probability must be in [0, 1), not ", std::to_string(rate)});
}

}  // namespace detail

/// y(i, j) = f(x(i, j)), f a function of generic arithmetic (see base::dual); adjoint: dx = f'(x) dy. On CUDA
/// f is of a named type. Local.
template <class T, class Device, class Function>
variable<T, Device> transform(variable<T, Device> x, Function f) {
  return x.on().template record<detail::transform_node<T, Device, detail::whole_matrix, Function>>(
      detail::place_of(x), {x}, false, f);
}
/// z(i, j) = f(x(i, j), y(i, j)); adjoints: dx = f_x(x, y) dz, dy = f_y(x, y) dz. Local. Throws shape_error.
template <class T, class Device, class Function>
variable<T, Device> zip(variable<T, Device> x, variable<T, Device> y, Function f) {
  detail::require_alike("zip", x, y);
  return x.on().template record<detail::zip_node<T, Device, detail::whole_matrix, Function>>(
      detail::place_of(x), {x, y}, false, f);
}

/// x y entry by entry; adjoints: dx = y dz and dy = x dz. Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> operator*(variable<T, Device> x, variable<T, Device> y) {
  return zip(x, y, std::multiplies<>{});
}

/// y(i, j) = x(i, j) + bias(0, j), bias replicated, x with whole rows; adjoints: dx = dy, dbias = the column
/// sums of dy. Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> add_row(variable<T, Device> bias, variable<T, Device> x) {
  if (bias.shape() != matrix_shape{1, x.shape().cols} || bias.layout() != replicated ||
      x.layout() != vertex_rows)
    base::throw_error<shape_error>({"add_row adds a replicated row to whole rows, not ", bias.shape(),
                                    " with (", to_string(bias.layout()), ") to ", x.shape(), " with (",
                                    to_string(x.layout()), ")"});
  return x.on().template record<detail::add_row_node<T, Device, detail::whole_matrix>>(detail::place_of(x),
                                                                                       {x, bias}, false);
}
/// max(x, 0); adjoint: dx = dy where y > 0, else 0. Local.
template <class T, class Device>
variable<T, Device> relu(variable<T, Device> x) {
  return x.on().template record<detail::relu_node<T, Device, detail::whole_matrix>>(detail::place_of(x), {x},
                                                                                    false);
}
/// x / (1 - rate), or 0 with probability `rate`, in training only; the choices are those of seed and stream
/// of `key`, of the step's epoch, and of the global row and column. Adjoint: the same of dy. Local. Throws
/// error unless 0 <= rate < 1.
template <class T, class Device>
variable<T, Device> dropout(variable<T, Device> x, double rate, random_key key = {}) {
  detail::require_rate(rate);
  if (rate == 0) return x;
  return x.on().template record<detail::dropout_node<T, Device, detail::whole_matrix>>(detail::place_of(x),
                                                                                       {x}, true, rate, key);
}
/// The same matrix in another layout; adjoint: the way back. Collective over the mesh. What travels: see
/// redistribution. Throws error for a replicated x or layout: the gradient of a replicated matrix is a sum.
template <class T, class Device>
variable<T, Device> redistribute(variable<T, Device> x, layout l) {
  if (x.layout() == l) return x;
  if (x.layout() == replicated || l == replicated)
    base::throw_error<error>({"a variable of ", x.shape(), " is not redistributed from (",
                              to_string(x.layout()), ") to (", to_string(l),
                              "): gradients of replicated matrices are sums over the ranks"});
  return x.on().template record<detail::redistribute_node<T, Device>>(
      {x.on().mesh(), l, x.row_blocking(), x.col_blocking()}, {x}, false);
}
/// The first rows of x, as many as `rows` has, or x itself where that is all of them: on a block of sampled
/// neighbours the targets, of the sources x. Adjoint: dx += dy in these rows. Local. Throws shape_error
/// unless x has whole rows, and each rank's block of `rows` begins where that of x does.
template <class T, class Device>
variable<T, Device> first_rows(variable<T, Device> x, const blocking& rows) {
  if (rows == x.row_blocking()) return x;
  if (x.layout() != vertex_rows)
    base::throw_error<shape_error>(
        {"first_rows takes whole rows, not ", x.shape(), " with (", to_string(x.layout()), ")"});
  return x.on().template record<detail::first_rows_node<T, Device>>(
      {x.on().mesh(), vertex_rows, rows, x.col_blocking()}, {x}, false);
}

}  // namespace partita::autodiff
