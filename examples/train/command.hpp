// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the command line of `train` asks for.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../ranks/machine_file.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/parts.hpp"
#include "partita/memory/far.hpp"
#include "partita/train/fields.hpp"

namespace nn = partita::nn;
namespace io = partita::io;

/// What --partition asks for, and how good the parts are when the data has been read.
struct ordering {
  std::string name = "none";  ///< none, random, metis or given
  std::string file;           ///< of `given`
  int parts = 1;              ///< as many as ranks
  io::partition_quality quality;
  double seconds = 0;  ///< to find the parts and to sort the vertices
};

/// What --checkpoint asks for.
struct checkpointing {
  std::string folder;  ///< empty: nothing
  int every = 10;
  int keep = 2;
  bool resume = false;
};

struct command {
  std::vector<std::string> words;  ///< as they were given, the program's name first
  std::string data;
  std::string class_weights;  ///< balanced, numbers, or a file of them; empty: ones
  bool has_held_out = false;  ///< shares of links were asked for
  std::string task;           ///< classes, labels, values or links; empty: as the labels are stored
  std::optional<std::size_t> unpack_limit;  ///< bytes of an array of features
  std::string policy = "auto";
  std::optional<int> ranks;
  std::optional<std::string> mesh;  ///< "RxCxD"
  std::optional<int> replication;
  std::optional<int> threads;  ///< of each rank; known when ranks train
  ordering partition;
  /// Of each vertex, in the data, where `partition` has sorted them.
  std::shared_ptr<const std::vector<partita::global_index>> old_number;
  std::string comm = "threads";
  std::optional<double> timeout;                 ///< of a wait, in seconds
  std::optional<described_machine> machine;      ///< that the ranks are emulated on
  std::optional<described_machine> calibration;  ///< of this machine, by which auto chooses
  std::string mpi_collectives = "messages";      ///< messages or native
  std::string device = "cpu";
  bool no_graphs = false;  ///< steps on a CUDA device are not captured
  std::string precision = "f32";
  bool tf32 = false;                              ///< dense products of f32 on a CUDA device
  std::optional<std::size_t> memory;              ///< bytes that buffers of a rank may have
  std::string far;                                ///< folder, or pinned, of other buffers; empty: of none
  std::shared_ptr<partita::far_store> far_store;  ///< of this process, if it is a folder
  std::string json, trace, page;                  ///< files of results
  std::string save, save_logits, save_hidden;     ///< files for what was trained
  std::string init;                               ///< file of parameters to begin with
  bool quiet = false;
  checkpointing checkpoint;
  bool reproducible = false;  ///< the same bits for every arrangement
  nn::training_options training;

  bool in_batches() const { return training.mini_batch.batch > 0; }
  bool on_stages() const { return training.pipeline.stages > 0; }
  bool cuts_chunks() const { return training.pipeline.cut == nn::chunk_cut::partitioned; }
  /// Bytes of an element.
  int element() const { return precision == "f64" ? 8 : 4; }
};

/// A program that takes the options of `train`, and more.
struct command_line {
  std::string program = "train", purpose;
  std::function<void(CLI::App&)> add = {};
};

/// Prints the help or the version and exits where that is asked for. Throws usage_error.
command parse_command(int argc, char** argv, const command_line& of);
