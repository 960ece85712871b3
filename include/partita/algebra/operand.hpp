// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The input of a layer: a dense or sparse matrix with whole rows on each rank, or slices of its columns.

#include <tuple>
#include <type_traits>
#include <variant>

#include "partita/algebra/column_slices.hpp"

namespace partita {

namespace algebra {

/// A reference to X (n x f), which must outlive it, and, for a sparse X, the plans of passes over its
/// entries; copies share these. `constant`: X has the same entries in every pass, so results that depend on X
/// alone are computed once. A dense X may be stored as base::bfloat16, see stored_as.
template <class T, class Device>
class operand {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using rounded = dense<base::bfloat16, vertex_rows, Device>;
  using passes = local::entry_passes<Device>;

  operand(const matrix& x, bool constant = false) : x_(&x), constant_(constant) {}
  operand(const rounded& x, bool constant = false) requires stored_as<base::bfloat16, T, Device>
      : x_(&x), constant_(constant) {}
  operand(const sparse_rows<T, Device>& x, bool constant = false,
          std::shared_ptr<passes> planned = std::make_shared<passes>())
      : x_(&x), constant_(constant), passes_(std::move(planned)) {}
  operand(algebra::column_slices<T, Device>& x) : x_(&x), constant_(false) {}

  /// An operand for a sparse x with the pattern of X; it shares the plans of passes.
  operand like(const sparse_rows<T, Device>& x) const { return {x, false, passes_}; }

  bool constant() const { return constant_; }
  matrix_shape shape() const {
    return visit([](const auto& x) { return x.shape(); });
  }
  const partita::mesh<Device>& mesh() const {
    return visit([](const auto& x) -> const partita::mesh<Device>& { return x.mesh(); });
  }
  const blocking& row_blocking() const {
    return visit([](const auto& x) -> const blocking& { return x.row_blocking(); });
  }

  /// The slices, or null if X is of another kind.
  algebra::column_slices<T, Device>* slices() const {
    const auto* const found = std::get_if<algebra::column_slices<T, Device>*>(&x_);
    return found == nullptr ? nullptr : *found;
  }

  /// The matrix stored as base::bfloat16, or null if X is of another kind.
  const rounded* stored() const {
    if constexpr (stored_as<base::bfloat16, T, Device>)
      if (const auto* const found = std::get_if<const rounded*>(&x_)) return *found;
    return nullptr;
  }

  /// visitor(x), where x is a const dense<T, vertex_rows, Device>, or one of base::bfloat16 if that is
  /// stored_as, a const sparse_rows<T, Device>, or an algebra::column_slices<T, Device>, which keeps what its
  /// products save for their gradients.
  template <class Visitor>
  decltype(auto) visit(Visitor visitor) const {
    return std::visit([&](auto* x) -> decltype(auto) { return visitor(*x); }, x_);
  }
  /// The same, but visitor(x, plans of passes) for a sparse_rows<T, Device>.
  template <class Visitor>
  void visit_planned(Visitor visitor) const {
    std::visit(
        [&](auto* x) {
          if constexpr (std::is_same_v<decltype(x), const sparse_rows<T, Device>*>)
            visitor(*x, passes_.get());
          else
            visitor(*x);
        },
        x_);
  }

  /// visitor(x) for a dense X. Throws error for any other kind.
  template <class Visitor>
  void visit_dense(Visitor visitor) const {
    visit([&](auto& x) {
      if constexpr (requires { x.local(); })
        visitor(x);
      else
        throw error("a dense matrix is needed here, not a sparse one or one whose columns are cut");
    });
  }

 private:
  template <class... More>
  using one_of =
      std::variant<const matrix*, const sparse_rows<T, Device>*, algebra::column_slices<T, Device>*, More...>;

  std::conditional_t<stored_as<base::bfloat16, T, Device>, one_of<const rounded*>, one_of<>> x_;
  bool constant_;
  std::shared_ptr<passes> passes_;
};

}  // namespace algebra

/// The operations of row_products.hpp for any kind of X; for slices, collective over their ranks.
template <class T, class Device>
void gemm(const algebra::operand<T, Device>& x, const dense<T, replicated, Device>& w,
          dense<T, vertex_rows, Device>& y, const std::type_identity_t<epilogue<T, Device>>& e = {}) {
  x.visit_planned([&](auto& h, auto*... passes) { gemm(h, w, y, e, passes...); });
}
namespace algebra {

template <class T, class Device>
void weight_gradient_part(const operand<T, Device>& x, const dense<T, vertex_rows, Device>& g,
                          dense<T, replicated, Device>& dw, dense<T, replicated, Device>* dbias = nullptr) {
  x.visit_planned([&](auto& h, auto*... passes) { weight_gradient_part(h, g, dw, dbias, passes...); });
}

template <class T, class Device>
void gemm_relu_backward(const dense<T, vertex_rows, Device>& g, const dense<T, replicated, Device>& w,
                        const operand<T, Device>& h, dense<T, vertex_rows, Device>& y) {
  h.visit_dense([&](const auto& x) { gemm_relu_backward(g, w, x, y); });
}

}  // namespace algebra
template <class T, class Device>
void copy(const algebra::operand<T, Device>& x, dense<T, vertex_rows, Device>& y) {
  x.visit([&](const auto& h) { copy(h, y); });
}
namespace algebra {

template <class T, class Device>
[[noreturn]] void copy(const column_slices<T, Device>& x, const dense<T, vertex_rows, Device>&) {
  base::throw_error<error>({"a matrix of ", x.shape(), " whose columns are cut cannot be written out"});
}

/// The first rows of X, as many as a given blocking has: X itself if these are all its rows, else a view of a
/// dense X; for slices, the rows of their targets.
template <class T, class Device>
class first_rows_operand {
 public:
  /// Valid until the next call. Throws shape_error as first_rows does, and for a part of any other kind of X.
  const operand<T, Device>& operator()(const operand<T, Device>& x, const blocking& rows) {
    rows_ = x.visit([&](auto& h) { return part(h, rows); });
    return *rows_;
  }

 private:
  template <class S>
  operand<T, Device> part(const dense<S, vertex_rows, Device>& x, const blocking& rows) {
    if (rows == x.row_blocking()) return x;
    return std::get<std::optional<dense<S, vertex_rows, Device>>>(views_).emplace(first_rows(x, rows));
  }
  operand<T, Device> part(column_slices<T, Device>& x, const blocking&) { return x.targets(); }
  operand<T, Device> part(const sparse_rows<T, Device>& x, const blocking& rows) {
    if (rows == x.row_blocking()) return x;
    base::throw_error<shape_error>(
        {"the first ", rows.size(), " rows of a sparse X of ", x.shape(), " cannot be viewed; make X dense"});
  }

  std::tuple<std::optional<dense<T, vertex_rows, Device>>,
             std::optional<dense<base::bfloat16, vertex_rows, Device>>>
      views_;
  std::optional<operand<T, Device>> rows_;
};

/// Y (n x f), kept from its computation until it is read: unchanged, or rounded to base::bfloat16 in half of
/// the bytes.
template <class T, class Device>
class kept_matrix {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// Unchanged.
  kept_matrix(matrix y) : own_(std::move(y)) {}
  /// Throws error if Y is to be rounded but base::bfloat16 is not stored_as.
  kept_matrix(const mesh<Device>& m, const blocking& rows, const blocking& cols, bool rounds) {
    if (!rounds)
      own_.emplace(m, rows, cols);
    else if constexpr (stored_as<base::bfloat16, T, Device>)
      rounded_.emplace(m, rows, cols);
    else
      throw error("activations are kept as bfloat16 for float, on the host");
  }

  /// Where to compute Y before keep(): in its own memory or, if it is rounded, in `wide`, or if that is null
  /// in temporary memory.
  matrix& place(matrix* wide = nullptr) {
    if (own_) return *own_;
    return wide != nullptr
               ? *wide
               : wide_.emplace(rounded_->mesh(), rounded_->row_blocking(), rounded_->col_blocking());
  }
  /// Y has been computed in this place.
  void keep(const matrix& y) {
    if constexpr (stored_as<base::bfloat16, T, Device>)
      if (rounded_) copy(y, *rounded_);
    wide_.reset();
  }

  operand<T, Device> read() const {
    if constexpr (stored_as<base::bfloat16, T, Device>)
      if (rounded_) return *rounded_;
    return *own_;
  }
  bool is_rounded() const { return rounded_.has_value(); }
  /// Y itself, or, if it is rounded, its elements written to `wide`.
  const matrix& widened(matrix& wide) const {
    if (own_) return *own_;
    copy(read(), wide);
    return wide;
  }
  /// Y, if it is not rounded.
  const matrix& values() const { return *own_; }

 private:
  std::optional<matrix> own_, wide_;
  std::optional<dense<base::bfloat16, vertex_rows, Device>> rounded_;
};

/// X as a dense matrix; a sparse X is expanded into a matrix that is kept.
template <class T, class Device>
class dense_operand {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  const matrix& operator()(const operand<T, Device>& x) {
    return x.visit([&](const auto& h) -> const matrix& { return whole(h); });
  }
  /// The same, but elements stored as base::bfloat16 are converted into `wide`.
  const matrix& operator()(const operand<T, Device>& x, matrix& wide) {
    if (x.stored() == nullptr) return (*this)(x);
    copy(x, wide);
    return wide;
  }
  /// Frees the expanded matrix.
  void release() { densified_.reset(); }

 private:
  const matrix& whole(const matrix& x) { return x; }
  template <class X>
  const matrix& whole(const X& x) {
    if (!densified_)
      densified_.emplace(x.mesh(), x.row_blocking(),
                         blocking::even(x.shape().cols, x.mesh().shape(), nesting::cols));
    copy(x, *densified_);
    return *densified_;
  }

  std::optional<matrix> densified_;
};

}  // namespace algebra

}  // namespace partita
