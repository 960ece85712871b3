#pragma once
/// The parameters of a model: replicated matrices in one buffer, their gradients in another, so that one
/// all-reduce sums all gradients.

#include <string>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/local/kernels.hpp"
#include "partita/local/view.hpp"

namespace partita {

/// Names one matrix of a parameter set.
struct parameter {
  std::string name;
  extent shape;
  double decay = 0;  ///< weight decay
  std::size_t offset = 0;

  std::size_t size() const { return static_cast<std::size_t>(shape.rows * shape.cols); }
};

/// Every rank holds the same values; gradients are this rank's part until sum_gradients.
template <class T, class Place>
class parameters {
 public:
  explicit parameters(partita::mesh<Place> m) : mesh_(std::move(m)) {}

  /// A new matrix of zeros; its index. Earlier values stay.
  std::size_t add(std::string name, extent shape, double decay = 0) {
    const parameter p{std::move(name), shape, decay, values_.size()};
    grow(values_, p.size());
    grow(gradients_, p.size());
    list_.push_back(p);
    return list_.size() - 1;
  }

  const std::vector<parameter>& list() const { return list_; }
  const partita::mesh<Place>& mesh() const { return mesh_; }
  matrix_view<T> value(std::size_t i) { return view(values_, i); }
  matrix_view<T> gradient(std::size_t i) { return view(gradients_, i); }
  std::span<T> values() { return values_.span(); }
  std::span<T> gradients() { return gradients_.span(); }

  /// gradient = the sum of the ranks' parts, all matrices at once. Every rank must call.
  /// What travels: one all-reduce of as many elements as there are parameters.
  void sum_gradients() {
    if (mesh_.size() > 1) mesh_.along(every_axis).all_reduce(gradients_.span());
  }
  /// What this rank receives in sum_gradients.
  volume predicted() const {
    collective op;
    op.kind = operation::all_reduce;
    op.count = static_cast<global_index>(values_.size());
    return received(op, mesh_.rank(), mesh_.size());
  }

 private:
  matrix_view<T> view(buffer<T, Place>& b, std::size_t i) {
    const parameter& p = list_[i];
    return {b.data() + p.offset, narrow(p.shape.rows, "the rows of a parameter"),
            narrow(p.shape.cols, "the columns of a parameter"), p.shape.cols};
  }
  void grow(buffer<T, Place>& b, std::size_t by) {
    buffer<T, Place> larger(mesh_.queue(), b.size() + by);
    copy(mesh_.queue(), std::span<const T>(b.span()), larger.span().first(b.size()));
    const std::size_t added = larger.size() - b.size();
    fill(mesh_.queue(), T(0),
         matrix_view<T>{larger.data() + b.size(), 1,
                        narrow(static_cast<global_index>(added), "the size of a parameter"),
                        static_cast<std::ptrdiff_t>(added)});
    b = std::move(larger);
  }

  partita::mesh<Place> mesh_;
  std::vector<parameter> list_;
  buffer<T, Place> values_, gradients_;
};

}  // namespace partita
