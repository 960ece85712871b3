// SPDX-License-Identifier: Apache-2.0
/// Converts graphs and sparse matrices from one format to another.

#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "../ranks/arrangement.hpp"
#include "../ranks/command_line.hpp"
#include "../ranks/ending.hpp"
#include "../ranks/parts.hpp"
#include "graph.hpp"
#include "partita/base/error.hpp"
#include "partita/comm/cores.hpp"
#include "partita/version.hpp"

namespace {

struct command {
  std::string in, out;
  std::optional<std::string> memory;
  std::optional<std::size_t> unpack_limit;
  changes wanted;
  vertex_tables tables;
  int parts = 16, threads = 0;
  std::string partitioner;
  int ranks = 4;
};

command parse_command(int argc, char** argv) {
  command c;
  CLI::App app(
      "Converts a graph or a sparse matrix; file extensions select the formats:\n"
      "  .mtx       Matrix Market; symmetric ones are written in full\n"
      "  .txt       edge list of SNAP, with weights in a third column; .txt.gz: packed;\n"
      "             .csv is read likewise\n"
      "  .graph     METIS; loses weights and sizes of vertices; needs an undirected graph\n"
      "             without loops, repeated edges and weights but positive whole ones\n"
      "  .npz       scipy.sparse.save_npz; csr, csc and coo are read, csr is written\n"
      "  .npy       edges (int64 [E, 2]); loses weights\n"
      "  .part      blocks of rows with checksums\n"
      "  a folder   a data directory of train: edges.npy, edge_weight.npy; features, labels\n"
      "             and split of CSV tables, another folder or an OGB folder, which are lost\n"
      "             elsewhere\n"
      "An OGB folder, which has raw/, is read only; of several types of vertices, it becomes a\n"
      "folder of several types. Edge lists lose vertices without edges, .npy\n"
      "and a folder without labels those after the last edge's. Where ids in an edge list have\n"
      "gaps, they are kept in NAME.ids.npy beside the output, or in its folder. What an output\n"
      "had before and does not have now (ids, weights, features, labels, split) is removed.\n"
      "The first line bounds the entries, from counts of lines and sizes of files (--undirected\n"
      "may double them), and the memory that they take; the last says how many were written.",
      "convert");
  app.get_help_ptr()->description("print this and exit");
  namespace version = partita::version;
  app.set_version_flag("--version",
                       "convert " + std::to_string(version::major) + "." + std::to_string(version::minor) +
                           "." + std::to_string(version::patch),
                       "print the version and exit");
  app.add_option("IN", c.in, "the input")->required()->option_text(" ");
  app.add_option("OUT", c.out, "the output")->required()->option_text(" ");
  app.add_option("--memory", c.memory,
                 "fail if more memory is needed, such as 512M or 2G\n(K, M, G or T, of 1024; no unit: bytes)")
      ->option_text("SIZE");
  add_unpack_limit(app, c.unpack_limit);
  app.add_flag("--undirected", c.wanted.undirected,
               "add the reverse of every edge except loops\n(OGB folders have undirected edges once)");
  app.add_flag("--simple", c.wanted.simple,
               "drop loops, and merge repeated edges, adding their\nweights (if all are 1 "
               "they stay 1);\nafter --undirected");
  app.add_flag("--ignore-weights", c.wanted.unweighted,
               "read no weights, and of an edge list two columns only");
  app.add_flag("--edge-features", c.wanted.edge_features,
               "the columns of a .csv or .txt after source and target are\nfeatures of edges, "
               "edge_features.npy of a folder");
  app.add_flag(
      "--edge-types", c.wanted.edge_types,
      "the column of a .csv or .txt after source and target is the\ntype of an edge, edge_type.npy of a "
      "folder; --edge-features\nare the columns after it");
  app.add_flag("--largest-component", c.wanted.largest_component,
               "keep only the largest connected component");
  app.add_option("--features", c.tables.features,
                 "CSV of the folder's features, one row per vertex in the\norder of ids from 0, or with ids "
                 "in the first column")
      ->option_text("FILE");
  app.add_option(
         "--labels", c.tables.labels,
         "CSV of the labels: a column of classes, -1 or nothing for\nnone; or several columns of 0 and 1")
      ->option_text("FILE");
  app.add_option("--split", c.tables.split,
                 "CSV of the split: 1 training, 2 validation, 3 test, 0\nnone (default: 60, 20 and 20 % of "
                 "labelled vertices)")
      ->option_text("FILE");
  app.add_option("--parts", c.parts, "blocks of a .part")
      ->check(count)
      ->option_text("N")
      ->capture_default_str();
  words(app.add_option(
            "--partition", c.partitioner,
            "also partition the graph, write the parts to OUT.part.N, one\nline per vertex, for train "
            "--partition given, and print\nhow much they cut and exchange"),
        partitioners());
  app.add_option("--ranks", c.ranks, "number of parts")
      ->check(count)
      ->option_text("N")
      ->capture_default_str();
  app.add_option("--threads", c.threads, "threads that parse text (default: cores)")
      ->check(count)
      ->option_text("N");
  show_defaults(app);
  parse(app, argc, argv);
  if (c.threads == 0) c.threads = partita::comm::count(partita::comm::usable_cores());
  return c;
}

void check_tables(const command& c, format from, format to) {
  if (to != format::folder)
    throw usage_error("--features, --labels and --split are for a folder, which " + c.out + " is not");
  if (!c.tables.split.empty() && c.tables.labels.empty()) throw usage_error("--split goes with --labels");
  if (from == format::ogb || from == format::ogb_types || has_vertex_files(c.in))
    throw partita::input_error(c.in + ": has features, labels or a split of its own");
}

/// Of several types of vertices, files become files.
void check_types(const command& c, format to) {
  std::error_code status;
  if (to != format::folder || std::filesystem::exists(c.out, status))
    throw partita::input_error(c.in + ": has several types of vertices, which need a new folder, and " +
                               c.out + (to == format::folder ? " is there" : " is none"));
  if (const changes& w = c.wanted; w.undirected || w.simple || w.unweighted || w.largest_component)
    throw partita::input_error(c.in +
                               ": has several types of vertices, whose edges are kept as they are; train "
                               "--inverse-relations adds inverse ones");
}

/// A matrix and METIS's graph say how many vertices there are; edges do not.
isolated_vertices isolated(const command& c, format from) {
  if (c.wanted.largest_component) return isolated_vertices::left_out;
  const bool is_open =
      from == format::edges || from == format::packed_edges || from == format::npy || from == format::folder;
  return is_open ? isolated_vertices::added : isolated_vertices::refused;
}

void convert(const command& c) {
  const double most = c.memory ? bytes_of("--memory", *c.memory) : 0;
  const format from = format_of(c.in, true), to = format_of(c.out, false);
  if (c.tables.any()) check_tables(c, from, to);
  if (from == format::ogb_types) check_types(c, to);
  if (c.wanted.edge_features && (from != format::edges || to != format::folder))
    throw usage_error("--edge-features is for a .csv or .txt of edges that becomes a folder");
  if (c.wanted.edge_types && (from != format::edges || to != format::folder))
    throw usage_error("--edge-types is for a .csv or .txt of edges that becomes a folder");
  need n = memory_needed(c.in, from, to, c.wanted, c.threads, c.unpack_limit);
  n.bytes += table_bytes(c.tables);
  if (!c.partitioner.empty()) n.bytes += 96.0 * static_cast<double>(n.entries);
  if (most > 0 && n.bytes > most)
    throw partita::error(c.in + ": takes up to " + in_words(n.bytes) + " of memory, more than --memory " +
                         *c.memory);
  std::printf("%s: up to %lld entries, which take up to %s of memory\n", c.in.c_str(),
              static_cast<long long>(n.entries), in_words(n.bytes).c_str());
  std::fflush(stdout);
  const auto say = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  if (from == format::ogb_types) return convert_types(c.in, c.out, c.threads, c.unpack_limit, say);
  graph g = read_graph(c.in, from, c.wanted, c.threads, c.unpack_limit);
  if (c.tables.any()) add_vertices(g, c.tables, isolated(c, from), c.in, c.out, c.threads, say);
  if (!c.partitioner.empty())
    write_parts((c.out.ends_with('/') ? c.out.substr(0, c.out.size() - 1) : c.out) + ".part." +
                    std::to_string(c.ranks),
                g, c.partitioner, c.ranks, say);
  const std::size_t entries = g.edges.size();
  const partita::matrix_shape shape = write_graph(c.out, to, std::move(g), c.in, c.parts, say);
  std::printf("%s: %s with %zu entries\n", c.out.c_str(), to_string(shape).c_str(), entries);
}

}  // namespace

int main(int argc, char** argv) try {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like others
  convert(parse_command(argc, argv));
  return checked_output("convert", 0);
} catch (const usage_error& e) {
  std::fprintf(stderr, "convert: %s; convert --help lists every option\n", e.what());
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "convert: %s\n", sentence_of(e).c_str());
  return 1;
}
