// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parameters of a model: replicated matrices in one buffer, their gradients in another, so that one
/// all-reduce sums all gradients; and the builder that layers make theirs with.

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

/// One replicated matrix of a set and its gradient, which is this rank's summand until
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
  std::optional<matrix> value_, gradient_;  ///< views of the buffers of the set
};

/// Every rank holds the same values. Layers keep references to members of the set, so it is not copied.
template <class T, class Device>
class parameters {
 public:
  using matrix = dense<T, replicated, Device>;

  explicit parameters(partita::mesh<Device> m) : mesh_(std::move(m)) { view_all(); }
  parameters(const parameters&) = delete;
  parameters& operator=(const parameters&) = delete;

  /// A new matrix of zeros. Earlier values stay.
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
  /// All values, and all gradients, as one row (1 x their number), in the order of the list.
  matrix& values() { return *all_values_; }
  const matrix& values() const { return *all_values_; }
  matrix& gradients() { return *all_gradients_; }

  /// gradient = the sum of the ranks' summands, all matrices at once. Every rank must call.
  /// What travels: one all-reduce of as many elements as there are parameters.
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

/// What is known about the input of a layer.
enum class layer_input : std::uint8_t {
  varying,      ///< needs a gradient
  no_gradient,  ///< changes from epoch to epoch (dropout), but nobody needs its gradient
  constant      ///< never changes: a product of it with the graph is computed once
};

/// What models are made with.
struct model_options {
  std::uint64_t seed = 0;
  double weight_decay = 0;       ///< of the first layer's parameters
  double convolution_decay = 0;  ///< of the convolutions of gcnii
  double dropout = 0;            ///< of the input and behind every hidden layer; of gat's coefficients too
  spmm_options products = {};
  coefficient_gradient coefficients = coefficient_gradient::automatic;  ///< of attention
};

namespace detail {

/// Uniform in [-bound, bound), as the field `word` has it at (i, j).
template <class T>
struct uniform_entry {
  std::uint64_t word;
  double bound;
  constexpr T operator()(global_index i, global_index j, T) const {
    return static_cast<T>((2 * random_uniform(word, i, j) - 1) * bound);
  }
};

}  // namespace detail

/// What layers are constructed with: it makes their parameters and matrices and knows what came before them.
/// A handle: copies share the parameters. The layers of a model are made in their order; until the first
/// parameter is made, the input needs no gradient.
template <class T, class Device>
class builder {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// For matrices whose rows are cut by `rows`, those of a sparse matrix that layers multiply with.
  builder(const partita::mesh<Device>& m, const blocking& rows, const model_options& options = {})
      : state_(std::make_shared<state>(m, rows, options)) {}
  explicit builder(const sparse<T, dynamic_layout, Device>& a, const model_options& options = {})
      : builder(a.mesh(), a.row_blocking(), options) {}

  const partita::mesh<Device>& mesh() const { return state_->set.mesh(); }
  const blocking& row_blocking() const { return state_->rows; }
  const model_options& options() const { return state_->options; }
  /// The set that all copies of the builder add to.
  std::shared_ptr<nn::parameters<T, Device>> parameters() const { return {state_, &state_->set}; }

  /// The same builder, whose parameters are called name + suffix, or decay. Without a suffix parameters of
  /// one name are numbered from 0.
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

  /// A new parameter of zeros, or of `value`s.
  parameter<T, Device>& filled(const std::string& name, matrix_shape shape, T value = 0) const {
    state_->input = layer_input::varying;
    const std::string suffix = suffix_ ? *suffix_ : std::to_string(state_->made[name]++);
    auto& p = state_->set.add(name + suffix, shape, decay_);
    if (value != 0) fill(p.value(), value);
    return p;
  }
  /// A new parameter uniform in [-a, a), a = sqrt(6 / (rows + cols)), the same at any number of ranks.
  /// Source: Glorot, Bengio (AISTATS 2010), eq. 16.
  parameter<T, Device>& glorot(const std::string& name, matrix_shape shape) const {
    const std::size_t index = state_->set.list().size();
    auto& p = filled(name, shape);
    const double a = std::sqrt(6.0 / static_cast<double>(shape.rows + shape.cols));
    const std::uint64_t word = random_key{options().seed, 0, 0x67000000u + index}.word();
    transform_indexed(p.value(), p.value(), detail::uniform_entry<T>{word, a});
    return p;
  }

  /// The cuts of `width` columns, and an uninitialised matrix (n x width).
  blocking columns(global_index width) const { return blocking::even(width, mesh().shape(), nesting::cols); }
  matrix rows(global_index width) const { return {mesh(), row_blocking(), columns(width)}; }

  /// What the next layer will be given. A layer must ask before it makes its first parameter: after a
  /// parameter every input needs a gradient.
  layer_input input() const { return state_->input; }
  /// A layer changes its input from epoch to epoch without parameters.
  void vary_input() const {
    if (state_->input == layer_input::constant) state_->input = layer_input::no_gradient;
  }
  /// A number for random choices: of dropouts 0, 1, ..., in the order of their making.
  std::uint64_t next_dropout() const { return state_->dropouts++; }
  /// The same for attentions.
  std::uint64_t next_attention() const { return (1u << 20) + state_->attentions++; }

 private:
  struct state {
    state(const partita::mesh<Device>& m, const blocking& cuts, const model_options& o)
        : set(m), rows(cuts), options(o) {}

    nn::parameters<T, Device> set;
    blocking rows;
    model_options options;
    layer_input input = layer_input::constant;
    std::map<std::string, int> made;
    std::uint64_t dropouts = 0, attentions = 0;
  };

  std::shared_ptr<state> state_;
  std::optional<std::string> suffix_;
  double decay_ = 0;
};

}  // namespace partita::nn
