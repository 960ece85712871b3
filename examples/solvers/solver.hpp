// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the solvers share: a command line, ranks that are threads or processes, and the files they write.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../ranks/program.hpp"
#include "matrix_file.hpp"
#include "partita/comm/mesh.hpp"
#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"

/// What a command line asks for.
struct command {
  std::string matrix{};
  unpack_limit limit{};  ///< of the matrix
  std::string policy = "grid_2d";
  std::optional<int> ranks{};
  std::optional<std::string> mesh{};  ///< "RxCxD"
  std::string comm = "threads";
  std::optional<double> timeout{};  ///< of a wait, in seconds
  std::string out{}, json{};
  partita::global_index k = 0;
  double tolerance = 0;
  int iterations = 0;
  std::string labels{};
};

/// A solver's own part of the command line.
struct description {
  std::string name;
  std::string what;       ///< it does, for --help
  std::string k{};        ///< what --k counts; no such option if empty
  std::string tolerance;  ///< what --tolerance bounds
  std::string labels{};   ///< what --labels has; no such option if empty
  std::string out;        ///< what --out receives
  command defaults;
};

/// What a solver works on, on every rank.
struct problem {
  const command& asked;
  const matrix_file& file;
  const partita::policy& policy;
  partita::mesh<partita::host> mesh;

  /// This rank's share of the entries.
  std::span<const partita::triplet<double>> share() const;
};

/// What every rank finds out alike, such as that an iteration does not converge: exit code 1.
struct no_solution : common_error {
  using common_error::common_error;
};

/// Calls f on every rank. If it throws on any, every rank throws no_solution with what the first of them
/// says.
void together(const partita::communicator& world, const std::function<void()>& f);

/// Whether an iteration goes on: the residual is above the tolerance. Throws no_solution when the limit of
/// iterations is reached, or the residual is not a finite number.
bool goes_on(const command& asked, double residual, partita::global_index iterations);

/// The largest of these numbers, or NaN if one is; 0 of none.
double largest_of(std::span<const double> numbers);

/// Throws no_solution naming the file and a vertex unless each degree, a sum of weights, is 0 or a normal
/// number, by which one can divide.
void require_degrees(const matrix_file& file, std::span<const double> degrees);

/// The results of a solver, the same on every rank.
struct solution {
  using value =
      std::variant<partita::global_index, double, std::vector<partita::global_index>, std::vector<double>>;
  std::vector<std::pair<std::string, value>> results;  ///< in the order of the JSON
  std::vector<partita::global_index> shape;            ///< of `values`
  std::vector<double> values;                          ///< row-major, for --out
};

/// The first k columns of row-major values (n x width).
std::vector<double> first_columns(const std::vector<double>& values, partita::global_index width,
                                  partita::global_index k);

/// The main function of a solver: reads the command line and the file, solves on every rank, prints the
/// results and writes the files asked for. Returns 0; 1 when the work fails, with one line on stderr; 2 when
/// the command line is wrong.
int run_solver(int argc, char** argv, const description& d,
               const std::function<matrix_file(const std::string&, unpack_limit)>& read,
               const std::function<solution(const problem&)>& solve);
