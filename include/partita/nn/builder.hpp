// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What layers are constructed with.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partita/algebra/coefficient_gradient.hpp"
#include "partita/base/random.hpp"
#include "partita/nn/activation_checkpointing.hpp"
#include "partita/nn/graph_product.hpp"
#include "partita/nn/parameters.hpp"
#include "partita/nn/recorded_plans.hpp"

namespace partita::nn {

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
  bool sparse_input = false;   ///< the features are sparse, their product with the graph would not be
  spmm_options products = {};
  operand_precision operands = operand_precision::unrounded;  ///< of builder::product and transposed_product
  /// What activations are kept as until backward, in nn::sequential and in layers that keep them by
  /// builder::kept. bfloat16: for float, on the host, as operands are then.
  operand_precision storage = operand_precision::unrounded;
  /// Pieces of the exchanges before the first and after the last product of a propagation whose graph every
  /// rank has whole; see there.
  std::size_t split_pieces = 1;
  algebra::coefficient_gradient coefficients = algebra::coefficient_gradient::automatic;  ///< in attention
  /// Of the outputs of hidden layers; see nn::sequential.
  activation_checkpointing recompute = activation_checkpointing::never;
};

namespace detail {

/// Uniform in [-bound, bound), from the random field `word` at (i, j).
template <class T>
struct uniform_entry {
  std::uint64_t word;
  double bound;
  constexpr T operator()(global_index i, global_index j, T) const {
    return static_cast<T>((2 * base::random_uniform(word, i, j) - 1) * bound);
  }
};

}  // namespace detail

/// A matrix that later layers of a model read beside their input, and where they add its gradient. The layer
/// that writes it sets `value` in each forward; see nn::skip_source. (n x width)
template <class T, class Device>
struct skip_connection {
  using matrix = dense<T, vertex_rows, Device>;

  const matrix* value = nullptr;
  matrix gradient;
  std::size_t written = 0,
              last_read = 0;  ///< parameters of the model made before it, and before its last reader
};

/// How A H W is evaluated.
struct product_order {
  bool aggregates_first;  ///< (A H) W, not A (H W)
  bool narrow_backward;   ///< backward propagates dZ W^T, not dZ
};

/// Passed to layer constructors: creates their parameters and matrices, the products with the graph, and
/// tracks the properties of each layer's input. A handle: copies share the parameters. Construct the layers
/// of a model in order; until the first parameter is created, no input needs a gradient, unless that of the
/// model is learned. Products and plans are handed out by the builder of one layer, layer::here(). A builder
/// with the parameters of an earlier model hands these out again, one after the other, so that the layers of
/// both share them.
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

  /// The builder of one layer, or of one inside the layer whose builder this is. It keeps what the next
  /// layer's input needs, whatever parameters the layer makes, and records the plans that it hands out.
  builder layer() const {
    builder b = *this;
    b.input_ = state_->input;
    b.plans_ = std::make_shared<recorded_plans>();
    if (plans_) recorded_plans::put(b.plans_, plans_);
    return b;
  }
  /// What the layer's plans receive. Throws error, as all that hand out plans do, where this is not the
  /// builder of a layer.
  const std::shared_ptr<recorded_plans>& plans() const {
    if (!plans_) throw error("a plan is handed out by the builder of a layer, nn::layer::here()");
    return plans_;
  }

  /// From now on, products with the graph are these: of A forward, of A^T backward. What layers multiply
  /// with another matrix, also with A^T forward, is then refused.
  void multiply_with(std::shared_ptr<graph_products<T, Device>> products,
                     const sparse<T, dynamic_layout, Device>& a) const {
    state_->products = std::move(products);
    state_->of_products.emplace(a);
  }
  /// Only the parameters with these numbers, from 0 in order of creation, are those of parameters(); those of
  /// layers outside the slice are in `outside`, without values.
  void slice_parameters(interval numbers, std::shared_ptr<nn::parameters<T, Device>> outside) const {
    state_->slice = numbers;
    state_->outside = std::move(outside);
  }
  /// Parameters handed out so far.
  std::size_t parameters_made() const { return state_->used; }

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

  /// What an activation (n x width) is kept in from forward to backward.
  algebra::kept_matrix<T, Device> kept(const blocking& of, global_index width) const {
    return {mesh(), of, columns(width), options().storage == operand_precision::bfloat16};
  }

  /// A matrix for use within one call of a layer's member, shared by all layers. (n, width)
  std::shared_ptr<matrix> scratch(global_index width) const {
    std::shared_ptr<matrix>& shared = state_->scratch[width];
    if (!shared) shared = std::make_shared<matrix>(rows(width));
    return shared;
  }

  /// Y = A X, in forward, and Y = A^T X, in backward, `times` times each, with X and Y of `width` columns.
  /// Layers of one width share a product. Z then has the rows of A. Collective over the mesh.
  std::shared_ptr<graph_product<T, Device>> product(const sparse<T, dynamic_layout, Device>& a,
                                                    global_index width, global_index times = 1) const {
    return forward_product(a, width, {times, 0}, false);
  }
  std::shared_ptr<graph_product<T, Device>> transposed_product(const sparse<T, dynamic_layout, Device>& a,
                                                               global_index width,
                                                               global_index times = 1) const {
    auto made = given_products(a)
                    ? state_->products->of_transpose(columns(width))
                    : state_->planned(transposed(a), columns(width), options().products, operands());
    plans()->add(made, {0, times});
    return made;
  }
  /// Y = A H for the layer's input H, to be kept by an input_product.
  std::shared_ptr<graph_product<T, Device>> product_of_input(const sparse<T, dynamic_layout, Device>& a,
                                                             global_index width) const {
    return forward_product(a, width, {uses_of_input().forward, 0}, input() != layer_input::varying);
  }
  /// A plan of another kind, made from `a` and what follows it.
  template <class Plan, class... From>
  std::shared_ptr<Plan> plan(plan_uses uses, const sparse<T, dynamic_layout, Device>& a,
                             From&&... from) const {
    auto made = std::make_shared<Plan>(a, std::forward<From>(from)...);
    plans()->add(made, uses);
    if (!(a.row_blocking() == a.col_blocking())) plans()->set_rows(a.row_blocking());
    return made;
  }
  /// The uses of a plan that is applied to the layer's input: in forward unless an input_product keeps what
  /// it gave, in backward where the input needs a gradient.
  plan_uses uses_of_input() const {
    return {input() == layer_input::constant ? 0 : 1, input() == layer_input::varying ? 1 : 0};
  }

  /// How Z = A H W, H the layer's input (n x in), communicates less per epoch. A (H W) propagates `out`
  /// columns forward and backward; (A H) W propagates `in` columns forward (once, for a constant H, unless it
  /// is sparse and wide, since A H is dense) and, when H needs a gradient, the smaller of `in` and `out`
  /// backward. Under model_options::sampled the first layer is evaluated as (A H) W, and on a reproducible
  /// mesh others are where in < out, whatever block of a sample a rank has.
  product_order cheaper_order(const sparse<T, dynamic_layout, Device>& a, global_index in,
                              global_index out) const {
    const bool aggregates = prefers_aggregation(a, in, out);
    return {aggregates, aggregates && (in < out || (options().sampled && input() == layer_input::varying))};
  }

  /// A new matrix of so many columns that later layers read beside their input.
  std::shared_ptr<skip_connection<T, Device>> skip(global_index width) const {
    const std::size_t now = state_->used;
    return state_->skips.emplace_back(std::make_shared<skip_connection<T, Device>>(
        skip_connection<T, Device>{nullptr, rows(width), now, now}));
  }
  /// Notes that the next layer reads it.
  void read(skip_connection<T, Device>& from) const { from.last_read = state_->used; }
  /// All of them.
  const std::vector<std::shared_ptr<skip_connection<T, Device>>>& skips() const { return state_->skips; }

  /// Properties of the layer's input. Throws error where this is not the builder of a layer.
  layer_input input() const {
    (void)plans();
    return input_;
  }
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
    std::size_t used = 0;           ///< parameters handed out
    std::optional<interval> slice;  ///< of parameters that are those of the set
    std::shared_ptr<nn::parameters<T, Device>> outside;
    std::shared_ptr<graph_products<T, Device>> products;
    std::optional<sparse<T, dynamic_layout, Device>> of_products;  ///< their A
    detail::planned_products<T, Device> planned;
    std::map<global_index, std::shared_ptr<matrix>> scratch;
    std::vector<std::shared_ptr<skip_connection<T, Device>>> skips;
    std::map<std::string, int> made;
    std::uint64_t dropouts = 0, attentions = 0;
  };

  /// What is kept as bfloat16 is multiplied as such.
  operand_precision operands() const { return std::max(options().operands, options().storage); }
  struct handed_out {
    parameter<T, Device>& value;
    bool is_new;
  };
  handed_out next(const std::string& name, matrix_shape shape) const {
    state_->input = layer_input::varying;
    const std::string full_name = name + (suffix_ ? *suffix_ : std::to_string(state_->made[name]++));
    std::size_t index = state_->used++;
    nn::parameters<T, Device>& set = set_of(index);
    auto& list = set.list();
    if (index == list.size()) return {set.add(full_name, shape, decay_), &set == state_->set.get()};
    parameter<T, Device>& p = list[index];
    if (p.name() != full_name || p.shape() != shape)
      base::throw_error<shape_error>({"a model needs parameter ", full_name, " of ", shape,
                                      " where the model whose parameters it shares has ", p.name(), " of ",
                                      p.shape()});
    return {p, false};
  }

  /// Whether products with the graph were given, which must be those of a.
  bool given_products(const sparse<T, dynamic_layout, Device>& a) const {
    if (!state_->products) return false;
    if (a.is_stored() && a.analysed() == state_->of_products->analysed()) return true;
    base::throw_error<error>(
        {"the layers of a stage multiply with A forward and with A^T backward, not with another matrix of ",
         a.shape(), ", or with transposed(A) forward; a model that does cannot be cut into stages"});
  }
  std::shared_ptr<graph_product<T, Device>> forward_product(const sparse<T, dynamic_layout, Device>& a,
                                                            global_index width, plan_uses uses,
                                                            bool of_input) const {
    auto made = given_products(a) ? state_->products->of_matrix(columns(width), of_input)
                                  : state_->planned(a, columns(width), options().products, operands());
    plans()->add(made, uses);
    plans()->set_rows(a.row_blocking());
    return made;
  }
  bool prefers_aggregation(const sparse<T, dynamic_layout, Device>& a, global_index in,
                           global_index out) const {
    const bool varies = input() == layer_input::varying, constant = input() == layer_input::constant;
    if (options().sampled) return !varies || (a.mesh().is_part() ? in < out : multiplies_less(a, in, out));
    constexpr global_index few = 64;  // columns of a sparse H whose product may be dense
    if (constant && options().sparse_input && in > few) return false;
    return (constant ? 0 : in) + (varies ? std::min(in, out) : 0) < 2 * out;
  }
  /// Whether (A H) W multiplies less than A (H W), forward and backward.
  static bool multiplies_less(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out) {
    const auto entries = static_cast<global_index>(a.local()->nonzeros);
    const auto [rows, cols] = a.shape();
    return 3 * rows * in * out + 2 * entries * in < 3 * cols * in * out + 2 * entries * out;
  }

  /// The set of parameter `number`, which becomes its number there.
  nn::parameters<T, Device>& set_of(std::size_t& number) const {
    const auto n = static_cast<global_index>(number);
    if (!state_->slice) return *state_->set;
    const interval slice = *state_->slice;
    if (!slice.contains(n)) {
      if (n >= slice.end) number -= static_cast<std::size_t>(slice.size());
      return *state_->outside;
    }
    number -= static_cast<std::size_t>(slice.begin);
    return *state_->set;
  }

  std::shared_ptr<state> state_;
  std::shared_ptr<recorded_plans> plans_;
  layer_input input_ = layer_input::varying;
  std::optional<std::string> suffix_;
  double decay_ = 0;
};

}  // namespace partita::nn
