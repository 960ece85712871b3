/* SPDX-License-Identifier: Apache-2.0 */
/** Outputs of a saved model for single vertices and pairs of a graph. C11; also C++.
 *
 * No function throws or ends the program. Those that can fail return PARTITA_SERVE_OK or what went wrong, and
 * partita_serve_last_error() has a sentence about it. Several threads may ask one handle at once. */
#ifndef PARTITA_SERVE_H
#define PARTITA_SERVE_H

#include <stddef.h>
#include <stdint.h>

#if defined(PARTITA_SERVE_BUILDS)
#define PARTITA_SERVE_API __attribute__((visibility("default")))
#else
#define PARTITA_SERVE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** A model and a graph. */
typedef struct partita_serve partita_serve;

typedef enum partita_serve_status {
  PARTITA_SERVE_OK = 0,
  PARTITA_SERVE_BAD_INPUT = 1, /**< a file is missing or damaged, or the model does not fit the graph */
  PARTITA_SERVE_BAD_ARGUMENT =
      2,                   /**< a vertex that the graph does not have, a null pointer, a wrong number */
  PARTITA_SERVE_FAILED = 3 /**< anything else, such as too little memory */
} partita_serve_status;

typedef enum partita_serve_rows {
  PARTITA_SERVE_AUTOMATIC = 0, /**< computed when asked for, if the model and the graph are such; else kept */
  PARTITA_SERVE_KEPT = 1,      /**< of all vertices, from one pass over the graph in partita_serve_open */
  PARTITA_SERVE_COMPUTED = 2   /**< computed if the model is such, whatever the graph */
} partita_serve_rows;

/** The version of the library, such as "0.2.0". */
PARTITA_SERVE_API const char* partita_serve_version(void);

/** Opens the model in the file `model` (train --save) and the graph in the folder `graph` (as predict
 * --data), whose .npy files are mapped and must not be cut short while they are open. *opened is the handle,
 * or null after a failure. `threads`: those that work in this call, at least 1. */
PARTITA_SERVE_API partita_serve_status partita_serve_open(const char* model, const char* graph,
                                                          partita_serve_rows rows, int threads,
                                                          partita_serve** opened);

/** Closes a handle that no other thread uses any more; a null pointer is allowed. */
PARTITA_SERVE_API void partita_serve_close(partita_serve* handle);

/** Vertices of the graph: they are 0 to that number - 1. */
PARTITA_SERVE_API int64_t partita_serve_vertices(const partita_serve* handle);

/** Outputs of a vertex: its classes, labels or values, or what a model of links compares. */
PARTITA_SERVE_API int64_t partita_serve_outputs(const partita_serve* handle);

/** Whether the rows of all vertices are kept: 1, or computed when they are asked for: 0. */
PARTITA_SERVE_API int partita_serve_keeps_rows(const partita_serve* handle);

/** outputs[0 .. outputs of a vertex) = the row of `vertex` that predict writes, bit by bit; of a model in f32
 * each is a float. */
PARTITA_SERVE_API partita_serve_status partita_serve_vertex(partita_serve* handle, int64_t vertex,
                                                            double* outputs);

/** The same of `count` vertices, row after row (count x outputs of a vertex), in their order; some may be the
 * same. */
PARTITA_SERVE_API partita_serve_status partita_serve_batch(partita_serve* handle, size_t count,
                                                           const int64_t* vertices, double* outputs);

/** *score = what predict --links writes for the pair (source, target), bit by bit, for a model of links. */
PARTITA_SERVE_API partita_serve_status partita_serve_pair(partita_serve* handle, int64_t source,
                                                          int64_t target, double* score);

/** The same of `count` pairs: source and target of each, pair after pair (count x 2), scores (count). */
PARTITA_SERVE_API partita_serve_status partita_serve_pairs(partita_serve* handle, size_t count,
                                                           const int64_t* pairs, double* scores);

/** What was wrong in the last call of this thread that failed, in a sentence; empty if none has. Valid until
 * the next call of this thread. */
PARTITA_SERVE_API const char* partita_serve_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
