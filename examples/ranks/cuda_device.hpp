// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which CUDA device a rank of a program uses, and how its ranks talk.

#include <chrono>
#include <optional>

#include "partita/comm/mesh.hpp"
#include "partita/memory/cuda.hpp"
#include "partita/memory/far_forecast.hpp"

/// The queue of this rank, with the vendor's libraries that this program was built with: ranks that are
/// threads share the first device, otherwise those of one machine take its devices in turn. `tf32`: how dense
/// products multiply float. Every rank must call. Throws device_error when there is none, and error for TF32
/// when this program was built without cuBLASLt.
partita::device_queue<partita::cuda_device> cuda_queue(const partita::communicator& world,
                                                       const std::string& comm, bool tf32 = false);

/// The same ranks over NCCL, with the limit of a wait if there is one, when `comm` is nccl. Every rank must
/// call. Throws error when this program was built without it.
partita::communicator cuda_world(const partita::communicator& world,
                                 const partita::device_queue<partita::cuda_device>& queue,
                                 const std::string& comm,
                                 std::optional<std::chrono::milliseconds> time_limit = {});

/// Gives a queue far memory: page-locked memory of the host instead of options.store. Returns what it moves
/// in a second.
partita::memory::far_rates use_pinned(const partita::device_queue<partita::cuda_device>& queue,
                                      partita::far_options options);

/// The mesh of `world` on that queue, with tiles of at most so many entries in a part. Every rank must call.
partita::mesh<partita::cuda_device> cuda_mesh(const partita::communicator& world, partita::mesh_shape shape,
                                              const partita::device_queue<partita::cuda_device>& queue,
                                              std::size_t tile_entries = partita::base::max_tile_entries);
