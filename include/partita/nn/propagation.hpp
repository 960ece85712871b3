#pragma once
/// Products with a graph between vertex_rows, where the neural-network part works, by way of the policy's own
/// layout.

#include <optional>

#include "partita/nn/graph_operator.hpp"

namespace partita {

/// X in the policy's dense layout and back: nothing when it has the blocks of vertex_rows on this mesh.
template <class T, class Place>
class policy_passage {
 public:
  policy_passage(const graph_operator<T, Place>& a, const blocking& features) : mesh_(a.mesh()) {
    const cut inner = a.dense_cut(), outer = vertex_rows::value;
    if (mesh_.shape().size(outer.rows - inner.rows) == 1 && mesh_.shape().size(inner.cols) == 1) return;
    enter_.emplace(mesh_, a.col_blocking(), features, outer, inner);
    leave_.emplace(mesh_, a.row_blocking(), features, inner, outer);
  }

  /// An uninitialised block of the policy's layout; empty where the outer block serves.
  buffer<T, Place> make_block() const {
    return enter_ ? buffer<T, Place>(mesh_.queue(), static_cast<std::size_t>(enter_->new_block().size()))
                  : buffer<T, Place>();
  }
  bool travels() const { return enter_.has_value(); }
  matrix_view<T> view(buffer<T, Place>& b) const {
    const rectangle r = enter_->new_block();
    return {b.data(), static_cast<local_index>(r.rows.size()), static_cast<local_index>(r.cols.size()),
            r.cols.size()};
  }
  void enter(matrix_view<const T> x, matrix_view<T> y) { (*enter_)(x, y); }
  void leave(matrix_view<const T> x, matrix_view<T> y) { (*leave_)(x, y); }

  /// What this rank receives in one way and back.
  volume predicted() const { return enter_ ? enter_->predicted() + leave_->predicted() : volume{}; }

 private:
  mesh<Place> mesh_;
  std::optional<redistribution<T, Place>> enter_, leave_;
};

/// A planned Y = A X (n x f), X and Y in vertex_rows.
///
/// Every rank of the mesh must construct and run it. What travels: X goes to the policy's dense layout, the
/// product's own traffic, and Y comes back; each way is nothing when the two layouts have the same blocks on
/// this mesh.
template <class T, class Place>
class propagation {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  propagation(const graph_operator<T, Place>& a, const blocking& features, spmm_options options = {})
      : schedule_(a.mesh(), a.local(), a.row_blocking(), a.col_blocking(), features, a.sparse_cut(),
                  a.dense_cut(), options),
        passage_(a, features),
        x_(passage_.make_block()),
        y_(policy_passage<T, Place>(transposed(a), features).make_block()) {}

  void operator()(const matrix& x, matrix& y) {
    schedule_.require(x.row_blocking(), x.col_blocking(), y.row_blocking(), y.col_blocking());
    if (!passage_.travels()) return schedule_(x.local(), y.local());
    passage_.enter(x.local(), passage_.view(x_));
    schedule_(passage_.view(x_), passage_.view(y_));
    passage_.leave(passage_.view(y_), y.local());
  }

  /// What this rank receives in one run, in closed form.
  volume predicted() const { return schedule_.predicted() + passage_.predicted(); }

 private:
  detail::spmm_schedule<T, Place> schedule_;
  policy_passage<T, Place> passage_;
  buffer<T, Place> x_, y_;
};

}  // namespace partita
