// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of a dense matrix in any layout, by lists of global row ids, and rows added back.

#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "partita/comm/self.hpp"
#include "partita/local/pass.hpp"
#include "partita/transfer/row_sums.hpp"

namespace partita {

namespace transfer {

/// Which columns gathered rows have: all columns of the matrix, or those of this rank's block, of which
/// nothing travels along axes that cut columns.
enum class gathered_columns : std::uint8_t { whole, own };

/// A cache for this rank's rows of x, which must not change; null unless they are far. Local.
template <class T, layout L, class Device>
std::unique_ptr<memory::row_cache> make_row_cache(const dense<T, L, Device>& x) {
  return local::make_row_cache<T>(x.mesh().queue(), x.local(), x.row_range().begin);
}

}  // namespace transfer

/// Y_c = R_c X, where row i of R_c is the unit row of the i-th id of list c: the rows of X in the order of
/// the ids, as often as they occur. Every rank has its own lists, of any ids in any order, which may be
/// empty; one per consumer of the rows. And the adjoint, X += sum over ranks and lists of R_c^T G_c.
///
///     gather_rows_plan rows(x);
///     rows.assign(lists);           // again for other ids
///     rows.start(x), rows.finish();
///     rows.rows(c, x, y);           // for any c
///     rows.add(c, g), rows.scatter(x);  // or rows.take(sums)
///
/// X: n x f in any layout; Y_c, G_c: ids of list c x f or the columns of this rank's block, on a mesh of one
/// rank. Collective over the mesh: constructor, assign, start, finish, operator(), scatter, touched_rows,
/// take and predicted_scatter. What travels: with assign the indices of rows; with start, from each other
/// rank of those that differ along the axes that cut X (that cut its rows, for gathered_columns::own), its
/// part of each distinct row in any of the lists; with scatter the sums of G per distinct row the other way
/// (predicted_scatter). Where X is replicated, a rank asks the copy with its own coordinates. Memory is kept
/// from one assign to the next and grows geometrically; assign takes time proportional to the number of ids.
template <class T, class Device>
class gather_rows_plan {
 public:
  /// For matrices placed like `of`, without lists.
  gather_rows_plan(const mesh<Device>& m, const partition::block_layout& of,
                   transfer::gathered_columns columns = transfer::gathered_columns::whole)
      : mesh_(m),
        of_(of),
        group_(parting(m, columns == transfer::gathered_columns::whole ? of.axes.used() : of.axes.rows)),
        requests_(
            transfer::row_owners(m.shape(), group_, m.at(), of,
                                 columns == transfer::gathered_columns::whole ? interval{0, of.cols.size()}
                                                                              : of.block(m.at()).cols),
            of.rows.size()),
        sums_(m, group_, parting(m, partition::every_axis - of.axes.used())) {
    m.along(group_);
    m.control(group_);
  }
  /// For x and matrices placed like it.
  template <layout L>
  explicit gather_rows_plan(const dense<T, L, Device>& x,
                            transfer::gathered_columns columns = transfer::gathered_columns::whole)
      : gather_rows_plan(x.mesh(), {x.row_blocking(), x.col_blocking(), x.layout()}, columns) {}

  /// Replaces the lists by others; rows that arrived and sums that were not scattered are dropped. Throws
  /// shape_error naming an id that is no row, before anything is sent, and error between start and finish.
  void assign(std::span<const std::vector<global_index>> lists,
              std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require_idle("assign");
    requests_.assign(lists, mesh_.control(group_));
    arrived_ = false;
    sums_.forget();
    table_ = nullptr;
    find_starts({});
    transfer::upload(mesh_.queue(), requests_.exchanged().rows, sent_rows_);
    outgoing_.grow(mesh_.queue(), comm::total_of(requests_.sent()));
    incoming_.grow(mesh_.queue(), comm::total_of(requests_.received()));
  }
  /// A single list.
  void assign(const std::vector<global_index>& ids,
              std::source_location where = std::source_location::current()) {
    assign(std::span<const std::vector<global_index>>(&ids, 1), where);
  }

  /// Until the next assign this rank's own rows are taken from the cache instead of X. Starts to read them.
  void read_own(memory::row_cache& cache) {
    const std::span<const local_index> places = cache.assign(requests_.own_rows());
    if (places.empty()) return;
    table_ = reinterpret_cast<const T*>(cache.data());
    find_starts(places);
  }

  /// Packs the rows that other ranks need and begins to exchange them. x must not change until rows are no
  /// longer read. Throws shape_error unless X is as planned.
  template <layout L>
  void start(const dense<T, L, Device>& x, std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require_idle("start");
    require(x);
    arrived_ = false;
    local::pack_rows<T>(mesh_.queue(), x.local(), std::as_const(sent_rows_).span(), outgoing_.data());
    request_ = mesh_.along(group_).start_all_to_all(std::as_const(outgoing_).span(), requests_.sent(),
                                                    incoming_.span(), requests_.received());
  }
  void finish(std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    if (!request_.pending()) throw error("gather_rows_plan: finish was called without start");
    request_.wait();
    arrived_ = true;
  }
  /// y = the rows of list c; x: as given to start. Local. Throws shape_error unless y is as in shape(c), and
  /// error before finish.
  template <layout L, layout To>
  void rows(std::size_t c, const dense<T, L, Device>& x, dense<T, To, Device>& y) const {
    require(x);
    require(c, y, "Y");
    if (!arrived_) throw error("gather_rows_plan: the rows of the lists have not been received");
    const matrix_view<T> to = y.local();
    const std::size_t all = requests_.numbers().size();
    for (std::size_t s = 0; s < owners().slices().size(); ++s) {
      const interval cols = owners().slices()[s];
      gather_rows_of_two(
          mesh_.queue(), table_ != nullptr ? table_ : x.local().data, incoming_.data(),
          starts_.span().subspan(s * all + requests_.begin(c), static_cast<std::size_t>(to.rows)),
          to.block(0, static_cast<local_index>(cols.begin - owners().wanted().begin), to.rows,
                   static_cast<local_index>(cols.size())));
    }
  }
  /// y = the rows of the only list.
  template <layout L, layout To>
  void operator()(const dense<T, L, Device>& x, dense<T, To, Device>& y,
                  std::source_location where = std::source_location::current()) {
    require(0, y, "Y");
    start(x, where);
    finish(where);
    rows(0, x, y);
  }

  /// Adds G to the sums for the rows of list c, rows of repeated ids in their order. Local. Throws
  /// shape_error unless G is as in shape(c).
  template <layout From>
  void add(std::size_t c, const dense<T, From, Device>& g) {
    require(c, g, "G");
    sums_.add(requests_, c, g.local());
  }
  /// X += the sums of all ranks, which are 0 afterwards. Bit-reproducible: owners add in rank order, and all
  /// copies of a replicated block in one order. Throws shape_error unless X is as planned.
  template <layout L>
  void scatter(dense<T, L, Device>& x, std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    require(x);
    sums_.scatter(requests_, x.local());
  }

  /// The rows of X of which this rank has a part and for which any rank has an id, as indices within its
  /// block, each once: those that scatter adds to. Nothing travels, but where X is replicated the indices of
  /// such rows once after assign.
  const std::vector<global_index>& touched_rows() { return sums_.touched(requests_); }
  /// Instead of scatter: G = the sums of all ranks for the touched rows, in that order, which are 0
  /// afterwards. G: touched rows x columns of this rank's block, on a mesh of one rank. What travels: see
  /// scatter. Throws shape_error unless G has this shape.
  template <layout To>
  void take(dense<T, To, Device>& g, std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    const matrix_shape wanted{static_cast<global_index>(touched_rows().size()),
                              of_.block(mesh_.at()).cols.size()};
    if (g.shape() != wanted || g.mesh().size() != 1)
      base::throw_error<shape_error>({"the sums of touched rows are ", wanted, " on one rank, but G is ",
                                      g.shape(), " on mesh ", g.mesh().shape()});
    sums_.take(requests_, g.local());
  }

  /// Number of lists, and of the rows and columns of the c-th.
  std::size_t consumers() const { return requests_.lists(); }
  matrix_shape shape(std::size_t c) const {
    if (c >= consumers())
      base::throw_error<shape_error>({"list ", c, " of a plan of ", consumers(), " lists"});
    return {requests_.size(c), owners().wanted().size()};
  }
  /// Rows asked for in all lists; distinct ones; those of which another rank owns a part.
  global_index requested_rows() const { return static_cast<global_index>(requests_.numbers().size()); }
  global_index unique_rows() const { return static_cast<global_index>(requests_.rows().size()); }
  global_index remote_rows() const { return requests_.remote_rows(); }

  /// What this rank receives in one start and finish: from each other rank of the group, the columns that it
  /// owns of the distinct rows that it owns.
  traffic predicted() const { return transfer::received_rows(requests_.received()); }
  /// What it received in the last assign: from each other rank of the group a number of rows, and as many
  /// indices.
  traffic predicted_assign() const { return requests_.predicted_assign(); }
  /// What it receives in one scatter or take: for each other rank of the group, this rank's part of each
  /// distinct row that it asked for; and from each other copy of this rank's block its columns of each
  /// distinct row that the ranks of the copy's group need. Where X is replicated, the first call of this and
  /// scatter after assign also exchanges the indices of these rows.
  traffic predicted_scatter() { return sums_.predicted(requests_); }

 private:
  static axis_set parting(const mesh<Device>& m, axis_set s) {
    for (const axis a : partition::all_axes)
      if (m.shape()[a] == 1) s = s - a;
    return s;
  }
  const transfer::row_owners& owners() const { return requests_.owners(); }
  void find_starts(std::span<const local_index> places) {
    starts_here_.clear();
    for (std::size_t s = 0; s < owners().slices().size(); ++s)
      requests_.append_starts(s, starts_here_, places);
    transfer::upload(mesh_.queue(), starts_here_, starts_);
  }
  void require_idle(const char* call) const {
    if (request_.pending())
      base::throw_error<error>({"gather_rows_plan: ", call, " was called between start and finish"});
  }
  template <layout L>
  void require(const dense<T, L, Device>& x) const {
    if (partition::block_layout{x.row_blocking(), x.col_blocking(), x.layout()} == of_) return;
    base::throw_error<shape_error>({"a gather of rows planned for ", of_.shape(), ", ", of_.axes,
                                    ", was given a matrix of ", x.shape(), ", ", x.layout(),
                                    "; shape, layout and blockings must match the plan"});
  }
  template <layout L>
  void require(std::size_t c, const dense<T, L, Device>& y, const char* name) const {
    if (y.shape() == shape(c) && y.mesh().size() == 1) return;
    base::throw_error<shape_error>({"the rows of list ", c, " are ", shape(c), " on one rank, but ", name,
                                    " is ", y.shape(), " on mesh ", y.mesh().shape()});
  }

  mesh<Device> mesh_;
  partition::block_layout of_;
  axis_set group_;
  transfer::row_requests requests_;
  std::vector<global_index> starts_here_;
  buffer<local_index, Device> sent_rows_;
  buffer<global_index, Device> starts_;
  buffer<T, Device> outgoing_, incoming_;
  request request_;
  const T* table_ = nullptr;  ///< where own rows are, if not in X
  bool arrived_ = false;
  transfer::row_sums<T, Device> sums_;
};

/// Y = R X, row i of R the unit row of ids[i] (see gather_rows_plan): Y (ids x f) on a mesh of one rank.
/// Collective over the mesh of X, with ids of its own on every rank. What travels: the indices and then the
/// rows that other ranks own, once. Throws shape_error naming an id that is no row of X.
template <class T, layout L, class Device>
dense<T, vertex_rows, Device> gather_rows(
    const dense<T, L, Device>& x, const std::vector<global_index>& ids,
    transfer::gathered_columns columns = transfer::gathered_columns::whole,
    std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  gather_rows_plan<T, Device> plan(x, columns);
  plan.assign(ids);
  const mesh<Device> alone(self::world(), mesh_shape(), x.mesh().queue());
  dense<T, vertex_rows, Device> y(alone, plan.shape(0));  // (ids, f)
  plan(x, y);
  return y;
}

/// X += sum over ranks of R^T G: X(ids[i], :) += G(i, :), G (ids x f) on a mesh of one rank. Collective over
/// the mesh of X. What travels: the indices, the sums of G per distinct row, and sums between copies of X;
/// see gather_rows_plan. Throws shape_error naming an id that is no row of X, or the shapes if G has others.
template <class T, layout From, layout L, class Device>
void scatter_add_rows(const dense<T, From, Device>& g, const std::vector<global_index>& ids,
                      dense<T, L, Device>& x,
                      transfer::gathered_columns columns = transfer::gathered_columns::whole,
                      std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  gather_rows_plan<T, Device> plan(x, columns);
  plan.assign(ids);
  plan.add(0, g);
  plan.scatter(x);
}

}  // namespace partita
