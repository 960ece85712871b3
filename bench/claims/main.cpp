// SPDX-License-Identifier: Apache-2.0
// What the papers claim whose methods partita has, checked on this machine: closed forms beside ledgers of
// ranks that are threads, simulated clusters, small runs. docs/claims.md explains each.
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "../support/json.hpp"
#include "../support/options.hpp"
#include "claim.hpp"
#include "leapgnn.hpp"
#include "tables.hpp"

namespace bench::claims {

std::string text(const char* format, ...) {
  char line[512];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  return line;
}

namespace {

std::vector<claim> claims_of(const std::string& only) {
  std::vector<claim> all;
  for (const auto& list : {of_cagnet(), of_gnnpipe(), of_neutrontp(), of_leapgnn()})
    for (const claim& c : list)
      if (only.empty() || c.paper == only) all.push_back(c);
  return all;
}

outcome outcome_of(const claim& c) {
  try {
    return c.run();
  } catch (const std::exception& e) {
    return {verdict::fail, "stopped", e.what()};
  }
}

void print(const claim& c, const outcome& o, double seconds) {
  std::printf("%-9s %-4s %-12s %s\n", std::string(c.paper).c_str(), std::string(c.number).c_str(),
              std::string(name_of(o.verdict)).c_str(), std::string(c.what).c_str());
  std::printf("%28spaper: %s\n%28sours:  %s", "", std::string(c.published).c_str(), "", o.ours.c_str());
  if (seconds >= 1) std::printf(" (%.0f s)", seconds);
  std::printf("\n");
  if (o.verdict == verdict::pass) return;
  std::printf("%28swhy:   %s\n", "", o.reason.c_str());
  if (o.verdict == verdict::fail && !c.shortfall.empty())
    std::printf("%28sknown: %s\n", "", std::string(c.shortfall).c_str());
}

json record(const claim& c, const outcome& o, double seconds) {
  return {{"paper", c.paper},         {"number", c.number},   {"claim", c.what},
          {"published", c.published}, {"ours", o.ours},       {"verdict", name_of(o.verdict)},
          {"reason", o.reason},       {"known", c.shortfall}, {"seconds", seconds}};
}

/// Whether no claim fails that is not known to.
bool run(const std::string& only, const std::string& json_file) {
  const std::vector<claim> all = claims_of(only);
  std::map<verdict, int> count;
  json records = json::array();
  bool expected = true;
  for (const claim& c : all) {
    const auto begin = std::chrono::steady_clock::now();
    const outcome o = outcome_of(c);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    print(c, o, seconds);
    std::fflush(stdout);
    ++count[o.verdict];
    expected = expected && (o.verdict != verdict::fail || !c.shortfall.empty());
    records.push_back(record(c, o, seconds));
  }
  std::printf("\n%d of %zu pass, %d fail, %d need a card\n", count[verdict::pass], all.size(),
              count[verdict::fail], count[verdict::needs_a_card]);
  write_json(json_file, {{"pass", count[verdict::pass]},
                         {"fail", count[verdict::fail]},
                         {"needs_a_card", count[verdict::needs_a_card]},
                         {"claims", records}});
  return expected;
}

}  // namespace

}  // namespace bench::claims

int main(int argc, char** argv) try {
  std::string only, json_file, table, svg_file;
  int vertices = 200'000;
  CLI::App app("The claims of CAGNET, GNNPipe, NeutronTP and LeapGNN on this machine", "claims");
  bench::add_choice(app, "--only", only, {"CAGNET", "GNNPipe", "NeutronTP", "LeapGNN"},
                    "the claims of one paper");
  app.add_option("--json", json_file, "also writes them to this file")->option_text("FILE");
  bench::add_choice(app, "--table", table, {"words", "pipelines", "placements"},
                    "instead, all figures of one kind");
  app.add_option("--svg", svg_file, "instead, draws CAGNET's algorithms by the number of ranks")
      ->option_text("FILE");
  bench::add_number(app, "--vertices", vertices, 64, 1 << 24,
                    "of the planted graphs; claims are for the default");
  bench::parse(app, argc, argv);
  bench::claims::set_vertices_of_leapgnn(vertices);
  if (!svg_file.empty()) return bench::claims::write_crossovers(svg_file), 0;
  if (table == "words") return bench::claims::print_words() ? 0 : 1;
  if (table == "pipelines") bench::claims::print_pipelines();
  if (table == "placements") bench::claims::print_placements(vertices);
  return !table.empty() || bench::claims::run(only, json_file) ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "claims: %s\n", e.what());
  return 2;
}
