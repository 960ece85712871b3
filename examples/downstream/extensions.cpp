// SPDX-License-Identifier: Apache-2.0
/// An option, a model and a schedule of learning rates of one's own, each in one place.
#include <cmath>
#include <cstdio>

#include <partita/compiled/host.hpp>
#include <partita/nn/learning_rate.hpp>
#include <partita/partita.hpp>
#include <partita/train/fields.hpp>
using namespace partita;

/// How many times as wide hidden layers are.
constexpr nn::field widening{
    .name = "widening",
    .group = nn::field_group::model,
    .of = [](nn::training_options& o) -> nn::field_value { return &o.own["widening"]; },
    .form = "K",
    .range = {"a number from 1 to 9", 1, 9},
    .kept = nn::field_kept::by_models};

const nn::named_model<double, host> wide_gcn{
    {.name = "wide-gcn", .options = "hidden widening"}, [](const auto& r) {
      auto widths = r.widths();
      for (std::size_t k = 1; k + 1 < widths.size(); ++k)
        widths[k] = static_cast<global_index>(double(widths[k]) * r.options.own.at("widening"));
      return nn::convolutions<nn::gcn_conv>(r.graph, widths, r.with);
    }};

const nn::schedule fading{.warmup = 3, .own = [](int e) { return 1 / std::sqrt(1 + e); }};

int main() {
  const io::dataset club = io::karate_club();
  nn::add_field(widening);
  nn::add_model(wide_gcn);
  nn::training_options o{.model = "wide-gcn", .hidden = {4}, .dropout = 0};
  const nn::field& option = nn::fields.back();
  if (!nn::take(option, o, "3") || nn::text_of(option, o) != "3") throw error("the option is not there");
  threads::run(2, [&](const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1});
    auto net = nn::make_model<double>(m, club, o, row_1d);
    const auto x = generate<vertex_rows, double>(m, {club.vertices, club.features},
                                                 [](auto v, auto j) { return double(v == j); });  // (n, f)
    dense<double, vertex_rows, host> dz(m, {club.vertices, club.classes});                        // (n, C)
    const algebra::vertex_labels<host> known(
        m, dz.row_blocking(), [&](auto v) { return club.split[v] == 1 ? club.labels[v] : -1; });
    nn::adam<double, host> optimizer;
    nn::learning_rate rate(0.1, fading);
    double first = 0, loss = 0;
    for (std::uint64_t epoch = 1; epoch <= 30; ++epoch) {
      loss = algebra::cross_entropy(net.forward(x, {.training = true, .epoch = epoch}), known, dz);
      if (epoch == 1) first = loss;
      net.backward(dz);
      optimizer.set_rate(rate.now());
      optimizer.step(net.parameters());
      rate.end_epoch(loss);
    }
    const global_index width = net.parameters().list()[0].shape().cols;
    if (world.rank() == 0) std::printf("a hidden layer of %d, loss %.3f -> %.3f\n", int(width), first, loss);
    if (width != 12 || loss > first / 2 || rate.now() != 0.1 / std::sqrt(28)) throw error("it did not learn");
  });
}
