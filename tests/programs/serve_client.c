/* SPDX-License-Identifier: Apache-2.0 */
/** Compares what libpartita_serve answers with what predict wrote, bit by bit:
 *
 *     serve_client MODEL GRAPH computed|kept ROWS [PAIRS SCORES]
 *
 * ROWS and SCORES have doubles, PAIRS sources and targets, 8 bytes each. Vertices are asked for alone,
 * together, backwards and twice, and by four threads at once. Ends with 1 where an answer is another, and
 * where a mistake is not refused. */
#include <partita_serve.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                          \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "serve_client: line %d: not %s (%s)\n", __LINE__, #condition, \
              partita_serve_last_error());                                          \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

static void* read_file(const char* name, size_t* numbers) {
  FILE* const file = fopen(name, "rb");
  REQUIRE(file != NULL);
  REQUIRE(fseek(file, 0, SEEK_END) == 0);
  const long bytes = ftell(file);
  rewind(file);
  void* const content = malloc((size_t)bytes + 1);
  REQUIRE(content != NULL && fread(content, 1, (size_t)bytes, file) == (size_t)bytes);
  fclose(file);
  *numbers = (size_t)bytes / 8;
  return content;
}

struct question {
  partita_serve* served;
  const double* rows;
};

/** Every vertex alone, then all of them together, and backwards, each twice. */
static void* ask(void* given) {
  const struct question* const q = given;
  const size_t n = (size_t)partita_serve_vertices(q->served), c = (size_t)partita_serve_outputs(q->served);
  double* const found = malloc(2 * n * c * sizeof(double));
  int64_t* const vertices = malloc(2 * n * sizeof(int64_t));
  REQUIRE(found != NULL && vertices != NULL);
  for (size_t v = 0; v < n; ++v) {
    REQUIRE(partita_serve_vertex(q->served, (int64_t)v, found) == PARTITA_SERVE_OK);
    REQUIRE(memcmp(found, q->rows + v * c, c * sizeof(double)) == 0);
    vertices[v] = (int64_t)v;
  }
  REQUIRE(partita_serve_batch(q->served, n, vertices, found) == PARTITA_SERVE_OK);
  REQUIRE(memcmp(found, q->rows, n * c * sizeof(double)) == 0);
  for (size_t k = 0; k < 2 * n; ++k) vertices[k] = (int64_t)(n - 1 - k / 2);
  REQUIRE(partita_serve_batch(q->served, 2 * n, vertices, found) == PARTITA_SERVE_OK);
  for (size_t k = 0; k < 2 * n; ++k)
    REQUIRE(memcmp(found + k * c, q->rows + (size_t)vertices[k] * c, c * sizeof(double)) == 0);
  free(vertices);
  free(found);
  return NULL;
}

static void ask_for_pairs(partita_serve* served, const char* pair_file, const char* score_file) {
  size_t ends, count;
  int64_t* const pairs = read_file(pair_file, &ends);
  double* const scores = read_file(score_file, &count);
  REQUIRE(ends == 2 * count && count > 0);
  double* const found = malloc(count * sizeof(double));
  REQUIRE(found != NULL);
  REQUIRE(partita_serve_pairs(served, count, pairs, found) == PARTITA_SERVE_OK);
  REQUIRE(memcmp(found, scores, count * sizeof(double)) == 0);
  for (size_t k = 0; k < count; ++k) {
    REQUIRE(partita_serve_pair(served, pairs[2 * k], pairs[2 * k + 1], found) == PARTITA_SERVE_OK);
    REQUIRE(memcmp(found, scores + k, sizeof(double)) == 0);
  }
  free(found);
  free(scores);
  free(pairs);
}

/** Mistakes are refused, with a sentence that names them, and what is asked next is answered. */
static void make_mistakes(partita_serve* served, const char* model, const char* graph, const double* rows,
                          int has_links) {
  const int64_t n = partita_serve_vertices(served);
  const size_t bytes = (size_t)partita_serve_outputs(served) * sizeof(double);
  double* const found = malloc(2 * bytes);
  REQUIRE(found != NULL);
  const int64_t wrong[] = {0, n};
  char named[32];
  snprintf(named, sizeof named, "%lld", (long long)n);
  REQUIRE(partita_serve_batch(served, 2, wrong, found) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(strstr(partita_serve_last_error(), named) != NULL);
  REQUIRE(partita_serve_vertex(served, -1, found) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(strstr(partita_serve_last_error(), "-1") != NULL);
  REQUIRE(partita_serve_vertex(NULL, 0, found) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(strstr(partita_serve_last_error(), "handle") != NULL);
  REQUIRE(partita_serve_vertex(served, 0, NULL) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(partita_serve_pair(served, 0, has_links ? n : 0, found) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(strstr(partita_serve_last_error(), has_links ? named : "links") != NULL);
  REQUIRE(partita_serve_batch(served, 0, NULL, NULL) == PARTITA_SERVE_OK);
  partita_serve* other = served;
  REQUIRE(partita_serve_open("no such file", graph, PARTITA_SERVE_AUTOMATIC, 1, &other) ==
          PARTITA_SERVE_BAD_INPUT);
  REQUIRE(other == NULL && strstr(partita_serve_last_error(), "no such file") != NULL);
  REQUIRE(partita_serve_open(model, "no such folder", PARTITA_SERVE_AUTOMATIC, 1, &other) ==
          PARTITA_SERVE_BAD_INPUT);
  REQUIRE(strstr(partita_serve_last_error(), "no such folder") != NULL);
  REQUIRE(partita_serve_open(model, graph, (partita_serve_rows)3, 1, &other) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(partita_serve_open(model, graph, PARTITA_SERVE_AUTOMATIC, 0, &other) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(partita_serve_open(NULL, graph, PARTITA_SERVE_AUTOMATIC, 1, &other) == PARTITA_SERVE_BAD_ARGUMENT);
  REQUIRE(partita_serve_open(model, graph, PARTITA_SERVE_AUTOMATIC, 1, NULL) == PARTITA_SERVE_BAD_ARGUMENT);
  partita_serve_close(NULL);
  REQUIRE(partita_serve_vertex(served, 0, found) == PARTITA_SERVE_OK && memcmp(found, rows, bytes) == 0);
  free(found);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 5 || argc == 7);
  REQUIRE(strlen(partita_serve_version()) > 0 && strlen(partita_serve_last_error()) == 0);
  size_t numbers;
  double* const rows = read_file(argv[4], &numbers);
  const partita_serve_rows ways[] = {PARTITA_SERVE_AUTOMATIC, PARTITA_SERVE_KEPT, PARTITA_SERVE_COMPUTED};
  for (int way = 0; way < 3; ++way) {
    const int kept = ways[way] == PARTITA_SERVE_KEPT;
    partita_serve* served;
    REQUIRE(partita_serve_open(argv[1], argv[2], ways[way], 1 + kept, &served) == PARTITA_SERVE_OK);
    REQUIRE(partita_serve_keeps_rows(served) == (kept || strcmp(argv[3], "kept") == 0));
    REQUIRE((size_t)(partita_serve_vertices(served) * partita_serve_outputs(served)) == numbers &&
            numbers > 0);
    const struct question q = {served, rows};
    pthread_t threads[4];
    for (int k = 0; k < 4; ++k) REQUIRE(pthread_create(&threads[k], NULL, ask, (void*)&q) == 0);
    for (int k = 0; k < 4; ++k) REQUIRE(pthread_join(threads[k], NULL) == 0);
    if (argc == 7) ask_for_pairs(served, argv[5], argv[6]);
    make_mistakes(served, argv[1], argv[2], rows, argc == 7);
    partita_serve_close(served);
  }
  free(rows);
  return 0;
}
