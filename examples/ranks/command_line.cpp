// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "arrangement.hpp"
#include "ending.hpp"

CLI::Option* words(CLI::Option* option, const std::vector<std::string>& allowed) {
  const auto refuse = [allowed](const std::string& text) {
    if (std::ranges::find(allowed, text) != allowed.end()) return std::string();
    return text + " is not one of " + CLI::detail::join(allowed, ", ");
  };
  return option->check(CLI::Validator(refuse, ""))->option_text(CLI::detail::join(allowed, "|"));
}

CLI::Option* add_timeout(CLI::App& app, std::optional<double>& seconds) {
  return app
      .add_option("--timeout", seconds,
                  "fail, naming the absent ranks, after a rank has waited for this long\n"
                  "(default: never; mpi and nccl: 600)")
      ->check(number_that("a time from 0.001 to 1000000 s", [](double v) { return v >= 0.001 && v <= 1e6; }))
      ->option_text("SECONDS");
}

CLI::Option* add_task(CLI::App& app, std::string& task) {
  return words(app.add_option("--task", task,
                              "what labels.npy holds (default: classes for whole numbers, labels for a 0/1\n"
                              "matrix of them, values for floating-point numbers), or links, the edges"),
               {"classes", "labels", "values", "links"});
}

std::optional<partita::io::task> task_named(const std::string& name) {
  using partita::io::task;
  if (name.empty() || name == "links") return {};
  return name == "classes" ? task::classes : name == "labels" ? task::labels : task::values;
}

CLI::Option* add_unpack_limit(CLI::App& app, std::optional<std::size_t>& limit) {
  const auto take = [&limit](const std::string& size) {
    limit = static_cast<std::size_t>(bytes_of("--unpack-limit", size));
  };
  return app
      .add_option_function<std::string>(
          "--unpack-limit", take,
          "reject a packed file, or an array of an .npz, that unpacks to more\n(default: a quarter of the "
          "free memory)")
      ->option_text("SIZE");
}

void add_arrangement(CLI::App& app, std::string& policy, std::optional<int>& ranks,
                     std::optional<std::string>& mesh) {
  words(
      app.add_option("--policy", policy, "how matrices are cut:\n" + CLI::detail::join(policy_names(), ", ")),
      policy_names())
      ->option_text("NAME")
      ->capture_default_str();
  app.add_option("--ranks", ranks, "ranks (default 1; under mpirun: those of the job)")
      ->check(count)
      ->option_text("N");
  app.add_option("--mesh", mesh, "ranks along row, col and depth (default: nearest to a square or a cube)")
      ->option_text("RxCxD");
}

double bytes_of(const std::string& option, const std::string& text) {
  char* end = nullptr;
  double bytes = std::strtod(text.c_str(), &end);
  std::string unit = end;
  for (char& letter : unit) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  const std::size_t power = unit.empty() ? 0 : std::string("KMGT").find(unit.front()) + 1;
  const std::string rest = unit.empty() ? "" : unit.substr(1);
  const bool is_unit = unit.empty() || (power > 0 && (rest.empty() || rest == "B" || rest == "IB"));
  for (std::size_t k = 0; is_unit && k < power; ++k) bytes *= 1024;
  if (!(bytes >= 1 && bytes < 0x1p63) || !is_unit)
    throw usage_error(option + " \"" + text +
                      "\" is not a size such as 512M or 2G, with K, M, G, T (of 1024) or no unit for bytes");
  return bytes;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const partita::policy& p : partita::named_policies) names.emplace_back(p.name);
  return names;
}

void show_defaults(CLI::App& app) {
  for (CLI::Option* const option : app.get_options())
    if (!option->get_default_str().empty())
      option->description(option->get_description() + " (default " + option->get_default_str() + ")");
  app.get_formatter()->column_width(38);
}

void parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    std::exit(checked_output(app.get_name().c_str(), 0));
  } catch (const CLI::CallForVersion& version) {
    std::puts(version.what());
    std::exit(checked_output(app.get_name().c_str(), 0));
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string text = e.what();
    const bool missing = text.ends_with("missing");
    throw usage_error(text.substr(0, text.find(':')) +
                      (missing ? " needs a value" : " is given more than once"));
  } catch (const CLI::ExtrasError&) {
    throw usage_error("there is no option " + app.remaining().front());
  } catch (const CLI::ParseError& e) {
    throw usage_error(e.what());
  }
}
