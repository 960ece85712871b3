// SPDX-License-Identifier: Apache-2.0
/// Values in the place of classes: Huber's loss, and RMSE, MAE and R^2 of members that were held out. The
/// value of a member is the mean place, 0 to 1, in the list of those whom it knows.
#include <cstdio>
#include <limits>

#include <partita/algebra/value_loss.hpp>
#include <partita/compiled/host.hpp>
#include <partita/partita.hpp>
using namespace partita;

int main() {
  io::dataset club = io::karate_club();
  club.classes = 1;  // as many values
  std::vector<double> value(club.vertices), known(club.vertices);
  for (const io::edge& e : club.edges) value[e.target] += double(e.source) / 33, ++known[e.target];
  for (std::size_t v = 0; v < value.size(); ++v) value[v] /= known[v];

  threads::run(2, [&](const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1});
    auto net = nn::make_model<double>(m, club, {.hidden = {16}, .dropout = 0}, row_1d);
    const auto x = generate<vertex_rows, double>(m, {club.vertices, club.features},
                                                 [](auto v, auto j) { return double(v == j); });  // (n, f)
    const auto targets = [&](bool held_out) {  // (n, 1); not a number: not counted
      return generate<vertex_rows, double>(m, {club.vertices, 1}, [&](auto v, auto) {
        return (v % 4 == 1) == held_out ? value[v] : std::numeric_limits<double>::quiet_NaN();
      });
    };
    const auto t = targets(false);
    dense<double, vertex_rows, host> dz(m, t.shape());  // (n, 1)
    nn::adam<double, host> optimizer(0.02);
    double first = 0, loss = 0;
    for (std::uint64_t epoch = 1; epoch <= 100; ++epoch) {
      const auto& z = net.forward(x, {.training = true, .epoch = epoch});
      loss = algebra::value_loss(z, t, dz, algebra::huber_error(0.25));
      if (epoch == 1) first = loss;
      net.backward(dz);
      optimizer.step(net.parameters());
    }
    const algebra::value_scores s = algebra::score_values(net.forward(x, {}), targets(true));
    if (world.rank() == 0)
      std::printf("loss %.5f -> %.5f; held out: RMSE %.3f, MAE %.3f, R^2 %.2f\n", first, loss,
                  s.root_mean_square, s.mean_absolute, s.r_squared);
    if (loss > first / 10 || s.r_squared < 0.3) throw error("it did not learn");
  });
}
