// SPDX-License-Identifier: Apache-2.0
/// A mesh network that learns one step of heat conduction on 2D meshes of triangles:
///
///   u' = u - dt M^-1 K u,   u' = u on the boundary,
///
/// K the stiffness matrix of linear finite elements and M the lumped masses. Each mesh is a part of one
/// graph: vertices know u and whether they are inside, edges the vector between their ends. Some meshes are
/// for training, others for the test. Prints the error before and after, and writes mesh_network.csv with a
/// line (x, y, u, step, predicted step) for each vertex of the last mesh, to be plotted.

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include <partita/compiled/host.hpp>
#include <partita/partita.hpp>

using namespace partita;

constexpr global_index side = 9, meshes = 8, of_mesh = side * side;
constexpr double h = 1.0 / (side - 1), dt = h * h / 8, step_size = 0.2;

struct plane_mesh {
  std::vector<std::array<double, 2>> at;
  std::vector<std::array<std::size_t, 3>> triangles;
};

/// The unit square, with vertices inside moved at random.
plane_mesh random_mesh(std::uint64_t number) {
  plane_mesh mesh;
  const auto moved = [&](global_index v, global_index axis) {
    return 0.4 * h * (base::random_uniform(number, v, axis) - 0.5);
  };
  for (global_index j = 0; j < side; ++j)
    for (global_index i = 0; i < side; ++i) {
      const bool inside = i > 0 && j > 0 && i + 1 < side && j + 1 < side;
      const global_index v = j * side + i;
      mesh.at.push_back({h * double(i) + inside * moved(v, 0), h * double(j) + inside * moved(v, 1)});
      if (i + 1 == side || j + 1 == side) continue;
      const auto a = std::size_t(v), b = a + 1, c = a + side, d = c + 1;
      mesh.triangles.push_back({a, b, d});
      mesh.triangles.push_back({a, d, c});
    }
  return mesh;
}

/// u' - u.
std::vector<double> heat_step(const plane_mesh& mesh, const std::vector<double>& u) {
  std::vector<double> flow(u.size()), mass(u.size());
  for (const auto& t : mesh.triangles) {
    const auto side_of = [&](int k) {  // the side against corner k
      const auto &p = mesh.at[t[(k + 1) % 3]], &q = mesh.at[t[(k + 2) % 3]];
      return std::array{q[0] - p[0], q[1] - p[1]};
    };
    const std::array sides{side_of(0), side_of(1), side_of(2)};
    const double area = (sides[0][0] * sides[1][1] - sides[0][1] * sides[1][0]) / 2;
    for (int k = 0; k < 3; ++k) {
      mass[t[k]] += area / 3;
      for (int l = 0; l < 3; ++l)
        flow[t[k]] += (sides[k][0] * sides[l][0] + sides[k][1] * sides[l][1]) / (4 * area) * u[t[l]];
    }
  }
  for (std::size_t v = 0; v < u.size(); ++v) {
    const auto [x, y] = mesh.at[v];
    const bool inside = x > 0 && y > 0 && x < 1 && y < 1;
    flow[v] = inside ? -dt * flow[v] / mass[v] : 0;
  }
  return flow;
}

/// Waves of random heights on all meshes, and the step that each makes, in units of step_size.
io::dataset heat(plane_mesh& last) {
  io::dataset d;
  d.name = "heat conduction";
  d.vertices = meshes * of_mesh;
  d.features = 2;
  d.classes = 1;
  d.task = io::task::values;
  std::vector<io::edge> edges;
  std::vector<double> vectors, features, steps;
  std::vector<std::uint8_t> split;
  for (global_index k = 0; k < meshes; ++k) {
    last = random_mesh(std::uint64_t(k));
    std::vector<double> u;
    for (const auto [x, y] : last.at) {
      double sum = 0;
      for (global_index w = 0; w < 9; ++w)
        sum += (base::random_uniform(77, k, w) - 0.5) * std::cos(3.14159 * double(1 + w % 3) * x) *
               std::cos(3.14159 * double(1 + w / 3) * y);
      u.push_back(sum);
    }
    const std::vector<double> step = heat_step(last, u);
    for (std::size_t v = 0; v < u.size(); ++v) {
      const auto [x, y] = last.at[v];
      features.insert(features.end(), {u[v], double(x > 0 && y > 0 && x < 1 && y < 1)});
      steps.push_back(step[v] / step_size);
      split.push_back(std::uint8_t(k + 2 < meshes ? io::split_part::train : io::split_part::test));
    }
    for (const auto& t : last.triangles)
      for (int c = 0; c < 3; ++c)
        for (const auto& [from, to] : {std::pair{t[c], t[(c + 1) % 3]}, std::pair{t[(c + 1) % 3], t[c]}}) {
          const double x = (last.at[to][0] - last.at[from][0]) / h,
                       y = (last.at[to][1] - last.at[from][1]) / h;
          edges.push_back({k * of_mesh + global_index(from), k * of_mesh + global_index(to)});
          vectors.insert(vectors.end(), {x, y, std::hypot(x, y)});
        }
  }
  d.edge_features = {std::ssize(edges), 3, std::move(vectors)};
  d.vertex_features = {d.vertices, d.features, std::move(features)};
  d.edges = std::move(edges);
  d.values = std::move(steps);
  d.split = std::move(split);
  return d;
}

/// Of the meshes for the test.
double error_of(const std::vector<double>& found, const io::dataset& d) {
  double squares = 0;
  for (std::size_t v = (meshes - 2) * of_mesh; v < found.size(); ++v)
    squares += (found[v] - d.values[v]) * (found[v] - d.values[v]);
  return std::sqrt(squares / (2 * of_mesh));
}

int main() {
  plane_mesh last;
  const io::dataset data = heat(last);
  bool right = false;
  threads::run(4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(row_1d, world.size()));
    const nn::training_options options{.model = "meshgraphnet",
                                       .hidden = {16},
                                       .layers = 2,
                                       .epochs = 150,
                                       .learning_rate = 0.005,
                                       .weight_decay = 0,
                                       .raw_features = true,
                                       .seed = 1};
    nn::trainer training(m, data, options, nn::make_model<double>(m, data, options, row_1d));
    const double before = error_of(collect(training.evaluate()), data);
    training.run();
    const std::vector<double> steps = collect(training.evaluate());  // (n, 1)
    const double after = error_of(steps, data);
    if (world.rank() != 0) return;
    std::printf(
        "root mean square error on meshes not trained on: %.3f before, %.3f after; of no step: %.3f\n",
        before, after, error_of(std::vector<double>(steps.size()), data));
    right = after < before / 3;
    if (std::FILE* const file = std::fopen("mesh_network.csv", "w")) {
      std::fprintf(file, "x,y,u,step,predicted\n");
      std::vector<double> row(2);
      for (std::size_t v = 0; v < of_mesh; ++v) {
        const std::size_t of_all = (meshes - 1) * of_mesh + v;
        data.vertex_features.fill_row(global_index(of_all), std::span(row));
        std::fprintf(file, "%g,%g,%g,%g,%g\n", last.at[v][0], last.at[v][1], row[0],
                     step_size * data.values[of_all], step_size * steps[of_all]);
      }
      std::fclose(file);
    }
  });
  return right ? 0 : 1;
}
