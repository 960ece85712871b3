// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products with the matrix of a graph, as layers use them.

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/operand.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/memory/captured.hpp"

namespace partita::nn {

/// What the dense operands of products with a graph are rounded to before they travel and are multiplied.
enum class operand_precision : std::uint8_t { unrounded, bfloat16 };

/// Y = A X (m x f = m x k times k x f), X and Y with whole rows on each rank, planned once and used by all
/// layers of this width. Collective over the mesh: constructor and call.
template <class T, class Device>
class graph_product {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;

  graph_product() = default;
  graph_product(const graph_product&) = delete;
  virtual ~graph_product() = default;

  /// y = A x. y must not alias x.
  virtual void operator()(const matrix& x, matrix& y) = 0;
  /// y = drop(clamp(A x + bias)), see epilogue; its beta is 0.
  virtual void apply(const matrix& x, matrix& y, const epilogue<T, Device>& e) {
    (*this)(x, y);
    algebra::finish(y, e);
  }
  /// y = A x, x stored as base::bfloat16: for products whose operands are rounded to that. Throws error
  /// for others.
  virtual void of_stored(const typename operand::rounded&, matrix&) {
    throw error("an X of bfloat16 is for products that round their operands to that");
  }
  /// What this rank receives in one call, in closed form.
  virtual traffic predicted() const = 0;
};

/// The products that the layers of a model multiply with in place of those of their own matrices.
template <class T, class Device>
class graph_products {
 public:
  using product = std::shared_ptr<graph_product<T, Device>>;

  graph_products() = default;
  graph_products(const graph_products&) = delete;
  virtual ~graph_products() = default;

  /// Of A and of A^T with matrices of so many columns, for the next layer; `of_input`: its X is the input of
  /// the model, before any parameter.
  virtual product of_matrix(const blocking& columns, bool of_input) = 0;
  virtual product of_transpose(const blocking& columns) = 0;
};

namespace detail {

template <class T, class Device>
class planned_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;

  planned_product(const sparse<T, dynamic_layout, Device>& a, const blocking& columns, spmm_options options)
      : plan_(a, vertex_rows, columns, options) {}
  void operator()(const matrix& x, matrix& y) override { plan_(x, y); }
  void apply(const matrix& x, matrix& y, const epilogue<T, Device>& e) override { plan_(1, x, y, e); }
  traffic predicted() const override { return plan_.predicted(); }

 private:
  spmm_plan<T, Device> plan_;
};

/// The same, of X rounded to bfloat16, which is what travels and is multiplied; sums are of T.
template <class T, class Device>
class rounded_product final : public graph_product<T, Device> {
 public:
  using typename graph_product<T, Device>::matrix;
  using stored = typename graph_product<T, Device>::operand::rounded;

  rounded_product(const sparse<T, dynamic_layout, Device>& a, const blocking& columns, spmm_options options)
      : plan_(a, vertex_rows, columns, options) {}
  void operator()(const matrix& x, matrix& y) override { plan_(rounded(x), y); }
  void apply(const matrix& x, matrix& y, const epilogue<T, Device>& e) override {
    plan_(1, rounded(x), y, e);
  }
  void of_stored(const stored& x, matrix& y) override { plan_(x, y); }
  traffic predicted() const override { return plan_.predicted(); }

 private:
  /// (k, f)
  const stored& rounded(const matrix& x) {
    if (!x_) x_.emplace(x.mesh(), x.row_blocking(), x.col_blocking());
    copy(x, *x_);
    return *x_;
  }

  spmm_plan<T, Device, base::bfloat16> plan_;
  std::optional<stored> x_;
};

/// Throws error for operands that cannot be rounded on this device.
template <class T, class Device>
std::shared_ptr<graph_product<T, Device>> make_product(const sparse<T, dynamic_layout, Device>& a,
                                                       const blocking& columns, spmm_options options,
                                                       operand_precision operands) {
  if (operands == operand_precision::unrounded)
    return std::make_shared<planned_product<T, Device>>(a, columns, options);
  if constexpr (algebra::multiplies_bfloat16<T, Device>)
    return std::make_shared<rounded_product<T, Device>>(a, columns, options);
  base::throw_error<error>({"products with operands of bfloat16 are for float"});
}

/// A product for each matrix and width, made when it is first asked for.
template <class T, class Device>
class planned_products {
 public:
  using product = std::shared_ptr<graph_product<T, Device>>;

  product operator()(const sparse<T, dynamic_layout, Device>& a, const blocking& columns,
                     spmm_options options, operand_precision operands) {
    const bool stored = a.is_stored();
    const std::shared_ptr<const void> block = stored ? a.local() : transposed(a).local();
    entry& made = made_[{block.get(), stored, columns.size()}];
    if (!made.second) made = {block, make_product(a, columns, options, operands)};
    return made.second;
  }

 private:
  using entry = std::pair<std::shared_ptr<const void>, product>;
  std::map<std::tuple<const void*, bool, global_index>, entry> made_;
};

}  // namespace detail

/// Y = f(X), X the input of a layer (n x f, n x f). Collective over the mesh. What travels: that of f, in the
/// first call with a constant X, in every call with others.
template <class T, class Device>
class input_product {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;

  /// `y`: where f(X) is put.
  explicit input_product(algebra::kept_matrix<T, Device> y) : y_(std::move(y)) {}

  /// f(x), with f(const matrix& x, matrix& y); where f is a product with A, also of column slices. `numbers`:
  /// see pass.
  template <class F>
  const operand& operator()(const operand& x, F&& f, memory::step_numbers* numbers = nullptr) {
    if constexpr (std::is_convertible_v<F&, graph_product<T, Device>&>)
      if (auto* const slices = x.slices()) return last_.emplace(slices->aggregated());
    if (!(x.constant() && constant_)) {
      matrix& y = y_.place();
      [&] {
        if constexpr (std::is_convertible_v<F&, graph_product<T, Device>&>)
          if (auto* const stored = x.stored()) return f.of_stored(*stored, y);
        f(dense_input_(x), y);
      }();
      y_.keep(y);
    }
    if (x.constant()) dense_input_.release();
    constant_ = x.constant();
    if (numbers != nullptr) numbers->before_each([this, is = constant_] { constant_ = is; });
    return last_.emplace(y_.read());
  }

  /// What the last call gave.
  const operand& last() const { return *last_; }
  /// The same as a matrix, unless it was of column slices, or is kept as base::bfloat16.
  const matrix& values() const { return y_.values(); }

 private:
  algebra::kept_matrix<T, Device> y_;
  algebra::dense_operand<T, Device> dense_input_;
  std::optional<operand> last_;
  bool constant_ = false;
};

}  // namespace partita::nn
