// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Layers written forward only: a function of verbs on variables, whose backward a tape derives.

#include "partita/autodiff/edge_products.hpp"
#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/messages.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

namespace detail {

/// A graph_product of a builder, on a tape.
template <class T, class Device>
class recorded_product final : public autodiff::product<T, Device> {
 public:
  using typename autodiff::product<T, Device>::views;

  explicit recorded_product(std::shared_ptr<graph_product<T, Device>> of) : of_(std::move(of)) {}
  void operator()(views& x, views& y, const epilogue<T, Device>& e) override {
    of_->apply(x.rows(), y.rows(), e);
  }
  traffic predicted() const override { return of_->predicted(); }

 private:
  std::shared_ptr<graph_product<T, Device>> of_;
};

}  // namespace detail

/// Vectors of edges that layers share, in the order of the entries of the matrix they multiply with; null
/// where there are none.
template <class T, class Device>
using edge_vectors = std::shared_ptr<const edge_matrix<T, Device>>;

/// What the function of a recorded layer makes parameters with: those of the layer's builder, as variables.
template <class T, class Device>
class recorder {
 public:
  using variable = autodiff::variable<T, Device>;
  using edge_variable = autodiff::edge_variable<T, Device>;

  recorder(autodiff::tape<T, Device>& t, const builder<T, Device>& b) : tape_(&t), builder_(&b) {}

  /// See builder::glorot and builder::filled.
  variable glorot(const std::string& name, matrix_shape shape) const {
    return on_tape(builder_->glorot(name, shape));
  }
  variable filled(const std::string& name, matrix_shape shape, T value = 0) const {
    return on_tape(builder_->filled(name, shape, value));
  }
  /// Dropout with a number of its own among those of the model. Throws error unless 0 <= rate < 1.
  variable dropout(variable x, double rate) const {
    return autodiff::dropout(x, rate, {builder_->options().seed, 0, builder_->next_dropout()});
  }
  /// That of an edge matrix is numbered among attentions.
  edge_variable dropout(edge_variable e, double rate) const {
    return autodiff::dropout(e, rate, {builder_->options().seed, 0, builder_->next_attention()});
  }
  /// Features of edges, say. e must outlive the layer.
  edge_variable constant(const edge_matrix<T, Device>& e) const { return tape_->constant(e); }
  edge_variable constant(const edge_matrix<T, Device>&&) const = delete;
  /// A matrix, or an edge matrix, that the layer keeps.
  template <class Matrix>
  auto constant(std::shared_ptr<const Matrix> x) const {
    tape_->own(x);
    return tape_->constant(*x);
  }
  /// Vectors of edges, where a layer has any.
  std::optional<edge_variable> constant_if_any(const edge_vectors<T, Device>& e) const {
    return e ? std::optional(constant(e)) : std::nullopt;
  }
  const model_options& options() const { return builder_->options(); }

 private:
  variable on_tape(parameter<T, Device>& p) const {
    p.is_summed_as(std::nullopt);  // the tape predicts it
    return tape_->parameter(p.value(), p.gradient());
  }

  autodiff::tape<T, Device>* tape_;
  const builder<T, Device>* builder_;
};

/// A layer Z = f(H), forward only: f(make, h) is called once, in the constructor, and returns Z of verbs of
/// autodiff/ on the variable h (n x in) and on the parameters it makes with `make`, a recorder. Its products
/// are the builder's, so that layers of a width share plans, and predictions are exact. What depends on a
/// constant H alone (algebra::operand::constant) is computed once.
///
///     net.add(nn::recorded(b, in, [&](auto& make, auto h) {
///       return spmm(a, gemm(h, make.glorot("W", {in, out})));
///     }));
///
/// What travels: what the verbs send. Collective over the mesh: constructor and members. Throws error for an
/// H that is slices of columns where f does anything but multiply it with A, which is then its own block, and
/// with a weight, and, in a pipeline of stages, where f multiplies with another matrix than A, such as
/// transposed(a).
template <class T, class Device>
class recorded_layer final : public layer<T, Device> {
  using layer<T, Device>::here;

 public:
  using typename layer<T, Device>::matrix;
  using variable = autodiff::variable<T, Device>;

  template <class Function>
  recorded_layer(const builder<T, Device>& b, global_index in, Function f)
      : recorded_layer(b, b.row_blocking(), in, std::move(f)) {}
  /// For an H with these rows.
  template <class Function>
  recorded_layer(const builder<T, Device>& b, const blocking& rows, global_index in, Function f)
      : layer<T, Device>(b), tape_(std::make_unique<autodiff::tape<T, Device>>(b.mesh(), products())) {
    const layer_input input = here().input();
    h_ =
        tape_->input(rows, here().columns(in), input != layer_input::constant, input == layer_input::varying);
    const recorder<T, Device> make(*tape_, here());
    z_ = tape_->keep(f(make, *h_));
    if (z_->layout() != vertex_rows)
      base::throw_error<shape_error>({"a layer gives whole rows, not a matrix of ", z_->shape(), " with (",
                                      to_string(z_->layout()), "); redistribute it to vertex_rows"});
    here().plans()->add(std::make_shared<of_tape>(tape_.get()), {1, 1});
    here().plans()->set_rows(z_->row_blocking());
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    tape_->give(*h_, h);
    const bool there = tape_->compute_in(*z_, z);
    if (there && tape_->end_with(*z_, *behind_)) *behind_ = p.template epilogue_of<T, Device>(nullptr);
    tape_->forward({p.training, p.epoch, p.vertices});
    if (!there) copy(tape_->value(*z_), z);
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    if (this->wants(dh))
      tape_->backward(*z_, dz, *h_, *dh);
    else
      tape_->backward(*z_, dz);
  }
  global_index width() const override { return z_->shape().cols; }
  void forget() override { tape_->release(); }

 private:
  struct of_tape {
    const autodiff::tape<T, Device>* tape;
    traffic predicted_forward() const { return tape->predicted_forward(); }
    traffic predicted() const { return tape->predicted_forward() + tape->predicted_backward(); }
    explicit of_tape(const autodiff::tape<T, Device>* t) : tape(t) {}
  };

  /// Those of the builder, recorded by the tape alone.
  autodiff::product_maker<T, Device> products() const {
    return [b = here().layer()](const sparse<T, dynamic_layout, Device>& a, layout l, const blocking& columns,
                                bool backward) -> std::shared_ptr<autodiff::product<T, Device>> {
      if (l != vertex_rows) return nullptr;
      return std::make_shared<detail::recorded_product<T, Device>>(
          backward ? b.transposed_product(a, columns.size(), 0) : b.product(a, columns.size(), 0));
    };
  }

  std::unique_ptr<autodiff::tape<T, Device>> tape_;
  std::optional<variable> h_, z_;
  std::unique_ptr<epilogue<T, Device>> behind_ = std::make_unique<epilogue<T, Device>>();  ///< of Z
};

/// The layer of a function; see recorded_layer.
template <class T, class Device, class Function>
recorded_layer<T, Device> recorded(const builder<T, Device>& b, global_index in, Function f) {
  return {b, in, std::move(f)};
}
/// The same for an H with these rows: those of the columns of the block that the layer multiplies with, on
/// sampled neighbours. What is of the vertices themselves is then of first_rows(h, those of the block).
template <class T, class Device, class Function>
recorded_layer<T, Device> recorded(const builder<T, Device>& b, const blocking& rows, global_index in,
                                   Function f) {
  return {b, rows, in, std::move(f)};
}

}  // namespace partita::nn
