// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parameters of a model: replicated matrices in one buffer and their gradients in another, so that a
/// single all-reduce sums all gradients; and the builder with which layers create them.

#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "partita/algebra/coefficient_gradient.hpp"
#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/base/random.hpp"

namespace partita::nn {

/// One replicated matrix of a set and its gradient, which is this rank's contribution until
/// parameters::sum_gradients.
template <class T, class Device>
class parameter {
 public:
  using matrix = dense<T, replicated, Device>;

  parameter(std::string name, matrix_shape shape, double decay, std::size_t offset)
      : name_(std::move(name)), shape_(shape), decay_(decay), offset_(offset) {}

  const std::string& name() const { return name_; }
  matrix_shape shape() const { return shape_; }
  /// Weight decay.
  double decay() const { return decay_; }

  matrix& value() { return *value_; }
  matrix& gradient() { return *gradient_; }

 private:
  template <class, class>
  friend class parameters;

  std::string name_;
  matrix_shape shape_;
  double decay_;
  std::size_t offset_;
  std::optional<matrix> value_, gradient_;  ///< views into the set's buffers
};

/// The parameters of a model, with the same values on every rank. Not copyable, since layers hold references
/// to members.
template <class T, class Device>
class parameters {
 public:
  using matrix = dense<T, replicated, Device>;

  explicit parameters(partita::mesh<Device> m) : mesh_(std::move(m)) { view_all(); }
  parameters(const parameters&) = delete;
  parameters& operator=(const parameters&) = delete;

  /// Adds a zero-initialised matrix; existing values are preserved.
  parameter<T, Device>& add(std::string name, matrix_shape shape, double decay = 0) {
    list_.emplace_back(std::move(name), shape, decay, values_.size());
    const auto size = static_cast<std::size_t>(shape.rows * shape.cols);
    grow(values_, size);
    grow(gradients_, size);
    view_all();
    return list_.back();
  }

  const partita::mesh<Device>& mesh() const { return mesh_; }
  std::deque<parameter<T, Device>>& list() { return list_; }
  /// All values, and all gradients, as one row (1 x number of elements), in list order.
  matrix& values() { return *all_values_; }
  const matrix& values() const { return *all_values_; }
  matrix& gradients() { return *all_gradients_; }

  /// gradient = the sum over the ranks, for all matrices at once. Collective over the mesh. What travels: one
  /// all-reduce of all parameter elements.
  void sum_gradients() {
    if (mesh_.size() > 1) mesh_.along(every_axis).all_reduce(gradients_.span());
  }
  /// What this rank receives in sum_gradients.
  traffic predicted() const {
    comm::collective op;
    op.kind = operation::all_reduce;
    op.count = static_cast<global_index>(values_.size());
    return received(op, mesh_.rank(), mesh_.size());
  }

 private:
  void grow(buffer<T, Device>& b, std::size_t by) {
    buffer<T, Device> larger(mesh_.queue(), b.size() + by);
    copy(mesh_.queue(), std::span<const T>(b.span()), larger.span().first(b.size()));
    matrix added = view({1, static_cast<global_index>(by)}, larger.span().subspan(b.size()));
    fill(added, 0);
    b = std::move(larger);
  }
  matrix view(matrix_shape shape, std::span<T> values) const {
    return matrix::view(mesh_, replicated, blocking::even(shape.rows, mesh_.shape(), nesting::rows),
                        blocking::even(shape.cols, mesh_.shape(), nesting::cols), values);
  }
  void view_all() {
    const matrix_shape row{1, static_cast<global_index>(values_.size())};
    all_values_.emplace(view(row, values_.span()));
    all_gradients_.emplace(view(row, gradients_.span()));
    for (parameter<T, Device>& p : list_) {
      const auto size = static_cast<std::size_t>(p.shape().rows * p.shape().cols);
      p.value_.emplace(view(p.shape(), values_.span().subspan(p.offset_, size)));
      p.gradient_.emplace(view(p.shape(), gradients_.span().subspan(p.offset_, size)));
    }
  }

  partita::mesh<Device> mesh_;
  std::deque<parameter<T, Device>> list_;
  buffer<T, Device> values_, gradients_;
  std::optional<matrix> all_values_, all_gradients_;
};

/// Properties of a layer's input.
enum class layer_input : std::uint8_t {
  varying,      ///< needs a gradient
  no_gradient,  ///< changes between epochs (dropout), but its gradient is not needed
  constant      ///< never changes: its product with the graph is computed once
};

/// Options of model construction.
struct model_options {
  std::uint64_t seed = 0;
  double weight_decay = 0;       ///< for the first layer's parameters
  double convolution_decay = 0;  ///< for the convolutions of gcnii
  double dropout = 0;          ///< of the input and after every hidden layer; in gat also of the coefficients
  bool sampled = false;        ///< on blocks of sampled neighbours; then no input is constant
  bool learned_input = false;  ///< the input of the first layer needs a gradient, too
  spmm_options products = {};
  coefficient_gradient coefficients = coefficient_gradient::automatic;  ///< in attention
};

namespace detail {

/// Uniform in [-bound, bound), from the random field `word` at (i, j).
template <class T>
struct uniform_entry {
  std::uint64_t word;
  double bound;
  constexpr T operator()(global_index i, global_index j, T) const {
    return static_cast<T>((2 * random_uniform(word, i, j) - 1) * bound);
  }
};

}  // namespace detail

/// Passed to layer constructors: creates their parameters and matrices, and tracks the properties of each
/// layer's input. A handle: copies share the parameters. Construct the layers of a model in order; until the
/// first parameter is created, no input needs a gradient, unless that of the model is learned. A builder with
/// the parameters of an earlier model hands these out again, one after the other, so that the layers of both
/// share them.
template <class T, class Device>
class builder {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// For matrices with row blocking `rows`, that of the sparse matrix the layers multiply with.
  builder(const partita::mesh<Device>& m, const blocking& rows, const model_options& options = {},
          std::shared_ptr<nn::parameters<T, Device>> parameters = nullptr)
      : state_(std::make_shared<state>(m, rows, options, std::move(parameters))) {}
  explicit builder(const sparse<T, dynamic_layout, Device>& a, const model_options& options = {})
      : builder(a.mesh(), a.row_blocking(), options) {}

  const partita::mesh<Device>& mesh() const { return state_->mesh; }
  const blocking& row_blocking() const { return state_->rows; }
  const model_options& options() const { return state_->options; }
  /// The set that all copies of the builder add to.
  std::shared_ptr<nn::parameters<T, Device>> parameters() const { return state_->set; }

  /// The same builder, with parameter names extended by a suffix, or with weight decay. Without a suffix,
  /// parameters of the same name are numbered from 0.
  builder named(std::string suffix) const {
    builder b = *this;
    b.suffix_ = std::move(suffix);
    return b;
  }
  builder decaying(double decay) const {
    builder b = *this;
    b.decay_ = decay;
    return b;
  }

  /// A new parameter, filled with `value`. Throws shape_error if an earlier model had another one here.
  parameter<T, Device>& filled(const std::string& name, matrix_shape shape, T value = 0) const {
    const handed_out p = next(name, shape);
    if (p.is_new && value != 0) fill(p.value.value(), value);
    return p.value;
  }
  /// A new parameter uniform in [-a, a), a = sqrt(6 / (rows + cols)), independent of the number of ranks.
  /// Source: Glorot, Bengio (AISTATS 2010), eq. 16.
  parameter<T, Device>& glorot(const std::string& name, matrix_shape shape) const {
    const std::size_t index = state_->used;
    const handed_out p = next(name, shape);
    if (!p.is_new) return p.value;
    const double a = std::sqrt(6.0 / static_cast<double>(shape.rows + shape.cols));
    const std::uint64_t word = random_key{options().seed, 0, 0x67000000u + index}.word();
    transform_indexed(p.value.value(), p.value.value(), detail::uniform_entry<T>{word, a});
    return p.value;
  }

  /// The column blocking for `width` columns, and an uninitialised matrix (n x width).
  blocking columns(global_index width) const { return blocking::even(width, mesh().shape(), nesting::cols); }
  matrix rows(global_index width) const { return rows(row_blocking(), width); }
  /// The same, with other rows.
  matrix rows(const blocking& of, global_index width) const { return {mesh(), of, columns(width)}; }

  /// Properties of the next layer's input. Query before creating the layer's first parameter: after that
  /// every input needs a gradient.
  layer_input input() const { return state_->input; }
  /// Declares that a layer without parameters changes its input from epoch to epoch.
  void vary_input() const {
    if (state_->input == layer_input::constant) state_->input = layer_input::no_gradient;
  }
  /// A unique number for the random choices of a dropout: 0, 1, ..., in order of construction.
  std::uint64_t next_dropout() const { return state_->dropouts++; }
  /// The same for attentions.
  std::uint64_t next_attention() const { return (1u << 20) + state_->attentions++; }

 private:
  struct state {
    state(const partita::mesh<Device>& m, const blocking& cuts, const model_options& o,
          std::shared_ptr<nn::parameters<T, Device>> parameters)
        : mesh(m),
          set(parameters ? std::move(parameters) : std::make_shared<nn::parameters<T, Device>>(m)),
          rows(cuts),
          options(o),
          input(o.learned_input ? layer_input::varying
                : o.sampled     ? layer_input::no_gradient
                                : layer_input::constant) {}

    partita::mesh<Device> mesh;
    std::shared_ptr<nn::parameters<T, Device>> set;
    blocking rows;
    model_options options;
    layer_input input;
    std::size_t used = 0;  ///< parameters handed out
    std::map<std::string, int> made;
    std::uint64_t dropouts = 0, attentions = 0;
  };

  struct handed_out {
    parameter<T, Device>& value;
    bool is_new;
  };
  handed_out next(const std::string& name, matrix_shape shape) const {
    state_->input = layer_input::varying;
    const std::string full_name = name + (suffix_ ? *suffix_ : std::to_string(state_->made[name]++));
    auto& list = state_->set->list();
    const std::size_t index = state_->used++;
    if (index == list.size()) return {state_->set->add(full_name, shape, decay_), true};
    parameter<T, Device>& p = list[index];
    if (p.name() != full_name || p.shape() != shape)
      throw_error<shape_error>({"a model needs parameter ", full_name, " of ", shape,
                                " where the model whose parameters it shares has ", p.name(), " of ",
                                p.shape()});
    return {p, false};
  }

  std::shared_ptr<state> state_;
  std::optional<std::string> suffix_;
  double decay_ = 0;
};

}  // namespace partita::nn
