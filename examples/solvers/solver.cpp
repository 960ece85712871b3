// SPDX-License-Identifier: Apache-2.0
#include "solver.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../ranks/arrangement.hpp"
#include "../ranks/command_line.hpp"
#include "../ranks/cores.hpp"
#include "../ranks/ending.hpp"
#include "../ranks/program.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/whole_file.hpp"

namespace {

using nlohmann::ordered_json;
using partita::global_index;

/// With so many digits.
std::string text_of(double number, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, number);
  return text.data();
}

command parse_command(int argc, char** argv, const description& d) {
  command c = d.defaults;
  CLI::App app(d.what, d.name);
  app.get_help_ptr()->description("print this and exit");
  app.add_option("--matrix", c.matrix,
                 "an edge list (.txt, .txt.gz: source, target),\na Matrix Market file (.mtx, .mtx.gz) or a "
                 "SciPy matrix (.npz)")
      ->required()
      ->option_text("FILE");
  add_unpack_limit(app, c.limit);
  add_arrangement(app, c.policy, c.ranks, c.mesh);
  words(app.add_option("--comm", c.comm, "how ranks communicate; mpi needs mpirun"), {"threads", "mpi"})
      ->capture_default_str();
  add_timeout(app, c.timeout);
  app.add_option("--out", c.out, "write " + d.out)->option_text("FILE.npy");
  app.add_option("--json", c.json, "write the results")->option_text("FILE");
  if (!d.k.empty()) app.add_option("--k", c.k, d.k)->check(count)->option_text("K")->capture_default_str();
  if (!d.labels.empty()) app.add_option("--labels", c.labels, d.labels)->option_text("FILE.npy");
  app.add_option("--tolerance", c.tolerance, d.tolerance)
      ->check(positive)
      ->option_text("T")
      ->capture_default_str();
  app.add_option("--iterations", c.iterations, "fail after this number of iterations")
      ->check(count)
      ->option_text("N")
      ->capture_default_str();
  show_defaults(app);
  parse(app, argc, argv);
  return c;
}

/// Throws error unless the files asked for can be written, before the work; creates none.
void require_writable(const command& c) {
  for (const std::string& path : {c.out, c.json}) {
    if (path.empty()) continue;
    std::error_code none;
    const bool is_there = std::filesystem::exists(path, none);
    if (is_there && !std::filesystem::is_regular_file(path, none))
      throw partita::error(path + ": is not a regular file");
    const bool is_new = !std::filesystem::exists(std::filesystem::symlink_status(path, none));
    if (!std::ofstream(path, std::ios::app)) throw partita::error("cannot write " + path);
    if (is_new) std::filesystem::remove(path, none);
  }
}

/// What one run did, on rank 0.
struct outcome {
  solution found;
  arrangement how;
  int ranks = 0;
  int threads = 0;
  double seconds = 0;
  global_index words = 0;
};

outcome solve_on(const partita::communicator& world, const arrangement& how, const matrix_file& file,
                 const command& c, const std::function<solution(const problem&)>& solve) {
  outcome o{{}, how, world.size(), threads_per_rank(world, {})};
  const problem p{
      c, file, partita::find_policy(how.policy),
      partita::mesh<partita::host>(world, how.mesh, partita::device_queue<partita::host>(o.threads))};
  const global_index before = p.mesh.ledger().total().words;
  const auto begin = std::chrono::steady_clock::now();
  o.found = solve(p);
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  o.words = world.all_reduce(p.mesh.ledger().total().words - before, partita::reduction::max);
  return o;
}

std::string in_words(const solution::value& value) {
  constexpr std::size_t shown = 10;
  const auto text = [](auto number) {
    if constexpr (std::is_same_v<decltype(number), double>)
      return text_of(number, 10);
    else
      return std::to_string(number);
  };
  const auto list = [&](const auto& numbers) {
    std::string all;
    for (std::size_t i = 0; i < std::min(shown, numbers.size()); ++i)
      all += (i ? " " : "") + text(numbers[i]);
    return all + (numbers.size() > shown ? " ..." : "");
  };
  return std::visit(
      [&](const auto& v) {
        if constexpr (requires { v.size(); })
          return list(v);
        else
          return text(v);
      },
      value);
}

/// Whole or not at all.
void write_array(const std::string& path, const std::vector<global_index>& shape,
                 const std::vector<double>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const std::string header = partita::io::npy_header_text<double>(shape, bytes.size(), path);
  const std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(header)), bytes};
  partita::io::write_whole_file(path, parts);
}

void tell(const description& d, const command& c, const matrix_file& file, const outcome& o) {
  std::printf("%s: %s, %s with %zu entries; %s on %s\n", d.name.c_str(), file.path.c_str(),
              to_string(file.shape).c_str(), file.entries.size(), o.how.policy.c_str(),
              to_string(o.how.mesh).c_str());
  for (const auto& [name, value] : o.found.results)
    std::printf("%-16s %s\n", name.c_str(), in_words(value).c_str());
  std::printf("%-16s %.3f\n", "seconds", o.seconds);
  if (!c.out.empty()) write_array(c.out, o.found.shape, o.found.values);
  if (c.json.empty()) return;
  ordered_json j{{"program", d.name},
                 {"matrix", file.path},
                 {"shape", {file.shape.rows, file.shape.cols}},
                 {"entries", file.entries.size()},
                 {"policy", o.how.policy},
                 {"mesh", {o.how.mesh.row, o.how.mesh.col, o.how.mesh.depth}},
                 {"ranks", o.ranks},
                 {"threads", o.threads},
                 {"comm", c.comm},
                 {"tolerance", c.tolerance},
                 {"seconds", o.seconds},
                 {"words_received", {{"max_rank", o.words}}}};
  for (const auto& [name, value] : o.found.results)
    std::visit([&, &key = name](const auto& v) { j[key] = v; }, value);
  const std::string text = j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
  partita::io::write_whole_file(c.json, [&](const auto& write) { write(std::as_bytes(std::span(text))); });
}

}  // namespace

std::span<const partita::triplet<double>> problem::share() const {
  const partita::interval mine = partita::comm::share_of(std::ssize(file.entries), mesh.rank(), mesh.size());
  return std::span(file.entries)
      .subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size()));
}

std::vector<double> first_columns(const std::vector<double>& values, global_index width, global_index k) {
  std::vector<double> columns;
  for (auto row = values.begin(); row != values.end(); row += width)
    columns.insert(columns.end(), row, row + k);
  return columns;
}

void together(const partita::communicator& world, const std::function<void()>& f) {
  std::string complaint;
  try {
    f();
  } catch (const std::exception& e) {
    complaint = sentence_of(e);
  }
  const global_index here = complaint.empty() ? world.size() : world.rank();
  const auto first = static_cast<int>(-world.all_reduce(-here, partita::reduction::max));
  if (first == world.size()) return;
  std::vector<std::uint8_t> text(complaint.begin(), complaint.end());
  std::vector<global_index> length{std::ssize(text)};
  world.broadcast(length, first);
  text.resize(static_cast<std::size_t>(length.front()));
  world.broadcast(text, first);
  throw no_solution(std::string(text.begin(), text.end()));
}

bool goes_on(const command& asked, double residual, global_index iterations) {
  if (!std::isfinite(residual))
    throw no_solution("after " + std::to_string(iterations) + " iterations the residual is " +
                      text_of(residual, 3) + ": numbers have left the range of double precision");
  if (residual <= asked.tolerance) return false;
  if (iterations < asked.iterations) return true;
  throw no_solution("no convergence to " + text_of(asked.tolerance, 3) + " in " +
                    std::to_string(asked.iterations) + " iterations: the residual is " +
                    text_of(residual, 3));
}

double largest_of(std::span<const double> numbers) {
  double largest = 0;
  for (const double number : numbers) {
    if (std::isnan(number)) return number;
    largest = std::max(largest, number);
  }
  return largest;
}

void require_degrees(const matrix_file& file, std::span<const double> degrees) {
  for (std::size_t v = 0; v < degrees.size(); ++v)
    if (const double d = degrees[v]; d != 0 && !std::isnormal(d))
      throw no_solution(file.path + ": the weights at vertex " +
                        std::to_string(file.id(static_cast<global_index>(v))) + " add up to " +
                        text_of(d, 3) + ", by which they cannot be divided in double precision");
}

int run_solver(int argc, char** argv, const description& d,
               const std::function<matrix_file(const std::string&, unpack_limit)>& read,
               const std::function<solution(const problem&)>& solve) {
  return run_program(d.name, [&] {
    const command c = parse_command(argc, argv, d);
    const rank_options how{.program = d.name, .comm = c.comm, .ranks = c.ranks, .timeout = c.timeout};
    return run_ranks(how, argc, argv, [&](int ranks, const partita::communicator& world) -> rank_body {
      const arrangement arranged = *arrangement_of(c.policy, c.mesh, {}, ranks);
      together(world, [&] {
        if (world.rank() == 0) require_writable(c);
      });
      const auto file = std::make_shared<matrix_file>();
      together(world, [&] { *file = read(c.matrix, c.limit); });
      return [&d, &c, &solve, arranged, file](const partita::communicator& all) {
        const outcome o = solve_on(all, arranged, *file, c, solve);
        if (all.rank() == 0) tell(d, c, *file, o);
        return 0;
      };
    });
  });
}
