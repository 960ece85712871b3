// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of variables, and their adjoints.

#include "partita/algebra/row_products.hpp"
#include "partita/autodiff/tape.hpp"

namespace partita::autodiff {

/// X^T of a variable, as an operand of gemm.
template <class T, class Device>
struct transposed_variable {
  variable<T, Device> of;
};
template <class T, class Device>
transposed_variable<T, Device> transposed(variable<T, Device> x) {
  return {x};
}

namespace detail {

/// A product that applies an epilogue (bias, ReLU, dropout) in the same pass.
template <class T, class Device>
class ended_node : public node<T, Device> {
 public:
  using node<T, Device>::node;
  using typename node<T, Device>::slot;

  bool keeps_output() const final { return false; }
  bool take_bias(slot& bias) override {
    if (bias_ != nullptr || relu_ || drop_) return false;
    bias_ = &bias;
    return true;
  }
  bool take_relu() override { return relu_ || drop_ ? false : (relu_ = true); }
  bool take_dropout(std::function<dropout_mask()> drop) override {
    if (drop_) return false;
    drop_ = std::move(drop);
    return true;
  }
  bool end_with(const epilogue<T, Device>& behind) override {
    if (has_activation()) return false;
    behind_ = &behind;
    return true;
  }

 protected:
  epilogue<T, Device> end() const {
    const T beta = sums_ ? T(1) : T(0);
    auto* const bias = bias_ == nullptr ? nullptr : &bias_->value->whole();
    if (behind_ != nullptr) return {beta, bias, behind_->relu, behind_->drop};
    return {beta, bias, relu_, drop_ ? drop_() : dropout_mask{}};
  }
  bool has_activation() const { return relu_ || drop_; }

  bool sums_ = false;

 private:
  slot* bias_ = nullptr;
  bool relu_ = false;
  std::function<dropout_mask()> drop_;
  const epilogue<T, Device>* behind_ = nullptr;
};

template <class T, class Device>
class spmm_node final : public ended_node<T, Device> {
  using base = ended_node<T, Device>;

 public:
  using planned = std::shared_ptr<product<T, Device>>;

  spmm_node(std::vector<typename base::slot*> from, typename base::slot& to, planned forward,
            planned backward)
      : base(std::move(from), to), forward_(std::move(forward)), backward_(std::move(backward)) {}

  void forward() override {
    if (this->in().sliced) return multiply_slices(*this->in().given->slices());
    this->to().given.reset();
    (*forward_)(*this->in().value, *this->to().value, this->end());
  }
  void backward() override {
    this->in().give([&](auto& d) { (*backward_)(*this->to().gradient, d, {}); });
  }
  bool reads_again() const override { return false; }
  bool reads_as_given(const algebra::operand<T, Device>& h) const override { return h.slices() != nullptr; }
  bool hands_on_slices() const override { return true; }
  traffic predicted_forward() const override { return forward_->predicted(); }
  traffic predicted_backward() const override { return backward_ ? backward_->predicted() : traffic{}; }

 private:
  void multiply_slices(algebra::column_slices<T, Device>& x) {
    auto& product = x.aggregated();
    if (product.shape().rows != this->to().at.rows.size())
      partita::base::throw_error<shape_error>({"spmm: slices of ", x.shape(),
                                               " multiply with their block, which has ", product.shape().rows,
                                               " rows, not with A, which has ", this->to().at.rows.size()});
    this->to().given = product;
  }

  planned forward_, backward_;  ///< Y = A X, dX = A^T dY
};

/// Y = X W.
template <class T, class Device>
class gemm_node final : public ended_node<T, Device> {
  using base = ended_node<T, Device>;

 public:
  using base::base;

  void forward() override {
    partita::gemm(this->in().operand(), this->in(1).value->whole(), this->to().rows(), this->end());
  }
  void backward() override {
    auto &x = this->in(), &w = this->in(1);
    const auto& dy = this->to().gradient->rows();
    w.give([&](auto& d) { algebra::weight_gradient_part(x.operand(), dy, d.whole()); });
    if (!x.needs_gradient || x.sliced) return;
    partita::gemm(dy, partita::transposed(w.value->whole()), x.gradient->rows(), x.written ? T(1) : T(0));
    x.written = true;
  }
  traffic predicted_backward() const override {
    const auto& w = this->in(1);
    const matrix_shape s = w.at.shape();
    return w.needs_gradient ? algebra::predicted_part<T>(w.at.mesh, s.rows * s.cols) : traffic{};
  }
  bool reads_as_given(const algebra::operand<T, Device>& /*x*/) const override { return true; }
  bool reads_again() const override { return this->in(1).needs_gradient || this->in(1).producer != nullptr; }
  bool take_sum() override { return this->has_activation() || this->sums_ ? false : (this->sums_ = true); }
};

/// Y = X W^T.
template <class T, class Device>
class transposed_gemm_node final : public node<T, Device> {
 public:
  using node<T, Device>::node;

  void forward() override {
    partita::gemm(this->in().rows(), partita::transposed(this->in(1).value->whole()), this->to().rows());
  }
  void backward() override {
    auto &x = this->in(), &w = this->in(1);
    const auto& dy = this->to().gradient->rows();
    w.give([&](auto& d) { algebra::weight_gradient_part(dy, x.rows(), d.whole()); });
    x.give([&](auto& d) { partita::gemm(dy, w.value->whole(), d.rows()); });
  }
  traffic predicted_backward() const override {
    const auto& w = this->in(1);
    const matrix_shape s = w.at.shape();
    return w.needs_gradient ? algebra::predicted_part<T>(w.at.mesh, s.rows * s.cols) : traffic{};
  }
  bool keeps_output() const override { return false; }
};

/// Throws shape_error unless X (n x inner) has whole rows and W is replicated and fits.
template <class T, class Device>
void require_weight(const variable<T, Device>& x, const variable<T, Device>& w, global_index inner) {
  if (x.layout() != vertex_rows || w.layout() != replicated)
    base::throw_error<shape_error>(
        {"gemm of variables multiplies whole rows with a replicated weight, not X of ", x.shape(), " with (",
         to_string(x.layout()), ") and W of ", w.shape(), " with (", to_string(w.layout()),
         "); redistribute X to vertex_rows"});
  if (x.shape().cols != inner)
    base::throw_error<shape_error>({"gemm: X of ", x.shape(), " does not fit W of ", w.shape(), ", of which ",
                                    inner, " columns are summed"});
}

}  // namespace detail

/// Y = A X (m x f = m x k times k x f), X and Y in one layout; adjoint: dX = A^T dY. Collective over the
/// mesh. What travels: see spmm_plan, in each direction; nothing in backward if X needs no gradient.
/// For A^T pass transposed(a).
template <class T, class Device>
variable<T, Device> spmm(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& a,
                         variable<T, Device> x) {
  auto& t = x.on();
  if (!(a.col_blocking() == x.row_blocking()))
    base::throw_error<shape_error>({"spmm: the rows of X of ", x.shape(),
                                    " are not in the blocks of the columns of A of ", a.shape(),
                                    "; give both the same blocking"});
  auto forward = t.make_product(a, x.layout(), x.col_blocking(), false);
  auto backward = x.needs_gradient() ? t.make_product(a, x.layout(), x.col_blocking(), true) : nullptr;
  return t.template record<detail::spmm_node<T, Device>>(
      {t.mesh(), x.layout(), a.row_blocking(), x.col_blocking()}, {x}, false, std::move(forward),
      std::move(backward));
}

/// Y = X W (n x b = n x a times a x b), X with whole rows, W replicated; adjoints: dX = dY W^T, dW = X^T dY.
/// Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> gemm(variable<T, Device> x, variable<T, Device> w) {
  detail::require_weight(x, w, w.shape().rows);
  auto& t = x.on();
  return t.template record<detail::gemm_node<T, Device>>(
      {t.mesh(), vertex_rows, x.row_blocking(), w.col_blocking()}, {x, w}, false);
}
/// Y = X W^T (n x a = n x b times b x a); adjoints: dX = dY W, dW = dY^T X. Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> gemm(variable<T, Device> x, transposed_variable<T, Device> w) {
  detail::require_weight(x, w.of, w.of.shape().cols);
  auto& t = x.on();
  const auto cols = blocking::even(w.of.shape().rows, t.mesh().shape(), nesting::cols);
  return t.template record<detail::transposed_gemm_node<T, Device>>(
      {t.mesh(), vertex_rows, x.row_blocking(), cols}, {x, w.of}, false);
}

}  // namespace partita::autodiff
