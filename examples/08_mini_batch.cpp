// SPDX-License-Identifier: Apache-2.0
/// A graph convolutional network trained on sampled neighbourhoods, written with the library's operations:
///   H_0 = R X,   H_l = relu(S_l H_(l-1) W_l + b_l);   S_l: sampled blocks of A, R: selects the rows they
///   need
/// Rows of X and sums are all that travels. Which rank has which roots decides how many rows, not the losses.
#include <cmath>
#include <cstdio>
#include <vector>

#include <partita/partita.hpp>
#include <partita/train/mini_batch.hpp>
using namespace partita;

constexpr int ranks = 4;
constexpr global_index n = 4000, f = 16, batch = 256, part = n / ranks;

/// The loss of the last iteration, and the rows of X that ranks received from others. Collective.
std::pair<double, global_index> train(const communicator& world, bool at_owners) {
  const mesh<host> m(world, {.row = ranks}), whole(world, {.col = ranks}), alone(self::world(), mesh_shape{});
  std::vector<triplet<double>> mine;  // A takes the mean over v, eight vertices of its part, and one of any
  for (global_index v = world.rank(); v < n; v += ranks)
    for (global_index k = 0; k < 10; ++k)
      mine.push_back({v, k < 9 ? v / part * part + (v + 97 * k * (v % 7 + 1)) % part : v * v % n, 0.1});
  const auto a = distribute(whole, feature_column, {n, n}, mine, symmetry::one_way);  // (n, n) on every rank
  const auto value = [](auto v, auto j) { return base::random_uniform(1, v, j) + (v / part == j ? 0.5 : 0); };
  const auto x = generate<vertex_rows, double>(m, {n, f}, value);  // (n/P, f)

  const sampling::vertex_owners owners{x.row_blocking(), vertex_rows.rows, ranks};
  const sampling::graph<double> graph(a);
  sampling::neighbour_sampler<double> draw(graph, {.fanouts = {5, 5}, .keep_diagonal = true});
  sampling::sample<double> s;
  gather_rows_plan rows(x);
  std::shared_ptr<nn::parameters<double, host>> parameters;  // of the networks of all iterations
  nn::adam<double, host> optimizer(0.02);
  std::pair<double, global_index> result;
  for (global_index i = 0; i < 30; ++i) {
    std::vector<global_index> roots;
    for (global_index k = i * batch; k < (i + 1) * batch; ++k) roots.push_back(k * 1597 % n);
    const auto lists = at_owners ? owner_shares(graph, roots, owners) : sampling::equal_shares(roots, ranks);
    draw(lists[world.rank()], i, s);
    rows.assign(s.vertices);
    dense<double, vertex_rows, host> h(alone, rows.shape(0));  // (n_0, f)
    rows(x, h);                                                // H_0 = R X

    const nn::builder<double, host> b(alone, h.row_blocking(), {.sampled = true}, parameters);
    auto net = nn::convolutions<nn::gcn_conv>(nn::block_matrices(alone, s.blocks, false), {f, 16, ranks}, b);
    const auto class_of = [&](auto r) { return s.vertices[r] / part; };  // the roots are the first vertices
    const algebra::vertex_labels<host> labels(alone, net.row_blocking(), class_of);
    const auto& z = net.forward(h, {.training = true});     // (roots here, classes)
    dense<double, vertex_rows, host> dz(alone, z.shape());  // (roots here, classes)
    const double share = double(z.shape().rows) / batch, loss = share * algebra::cross_entropy(z, labels, dz);
    transform(dz, dz, base::scaled<double>{share});  // the gradient of the mean over the whole batch
    net.backward(dz);
    parameters = b.parameters();
    world.all_reduce(parameters->gradients().values());
    optimizer.step(*parameters);
    result = {world.all_reduce(loss), result.second + world.all_reduce(rows.remote_rows())};
  }
  return result;
}

int main() {
  threads::run(ranks, [](const communicator& world) {
    const auto [loss, rows] = train(world, false);
    const auto [again, fewer] = train(world, true);
    if (std::abs(loss - again) > 1e-12 || loss > 0.5 || 2 * fewer > rows) throw error("not as expected");
    if (world.rank() == 0)
      std::printf("loss %.3f; rows from other ranks: %d, and %d with roots at their owners\n", loss,
                  int(rows), int(fewer));
  });
}
