/* SPDX-License-Identifier: Apache-2.0 */
/** The rows of vertices that a saved model gives, or how long they take:
 *
 *     serve MODEL GRAPH VERTEX...
 *     serve MODEL GRAPH --measure N [kept|computed] */
#include <partita_serve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int fail(const char* what) {
  fprintf(stderr, "serve: %s\n", what);
  return 1;
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/** Prints the row of each vertex in a line. */
static int print_rows(partita_serve* served, int count, char** vertices, double* row) {
  for (int k = 0; k < count; ++k) {
    char* end;
    const long long vertex = strtoll(vertices[k], &end, 10);
    if (*end != '\0' || end == vertices[k]) return fail("a vertex is a whole number");
    if (partita_serve_vertex(served, vertex, row) != PARTITA_SERVE_OK)
      return fail(partita_serve_last_error());
    printf("%lld:", vertex);
    for (int64_t j = 0; j < partita_serve_outputs(served); ++j) printf(" %.17g", row[j]);
    printf("\n");
  }
  return 0;
}

/** Asks for `count` vertices, which are spread over the graph, one after the other: once, and once more. */
static int measure(partita_serve* served, long count, double* row) {
  double* const times = malloc((size_t)count * sizeof(double));
  if (times == NULL) return fail("there is not enough memory");
  for (int pass = 0; pass < 2; ++pass) {
    uint64_t state = 1;
    double sum = 0;
    for (long k = 0; k < count; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const int64_t vertex = (int64_t)((state >> 33) % (uint64_t)partita_serve_vertices(served));
      const double begin = seconds();
      if (partita_serve_vertex(served, vertex, row) != PARTITA_SERVE_OK) {
        free(times);
        return fail(partita_serve_last_error());
      }
      times[k] = 1e3 * (seconds() - begin);
      sum += times[k];
    }
    qsort(times, (size_t)count, sizeof(double), compare);
    printf("%s: median %.3f ms, mean %.3f ms, 99 %% within %.3f ms, all within %.3f ms\n",
           pass == 0 ? "first" : "again", times[count / 2], sum / (double)count, times[count * 99 / 100],
           times[count - 1]);
  }
  free(times);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 4)
    return fail("usage: serve MODEL GRAPH VERTEX... | serve MODEL GRAPH --measure N [kept|computed]") + 1;
  partita_serve* served;
  const double begin = seconds();
  const char* const last = argv[argc - 1];
  const partita_serve_rows rows = strcmp(last, "kept") == 0       ? PARTITA_SERVE_KEPT
                                  : strcmp(last, "computed") == 0 ? PARTITA_SERVE_COMPUTED
                                                                  : PARTITA_SERVE_AUTOMATIC;
  if (partita_serve_open(argv[1], argv[2], rows, 1, &served) != PARTITA_SERVE_OK)
    return fail(partita_serve_last_error());
  double* const row = malloc((size_t)partita_serve_outputs(served) * sizeof(double));
  int code;
  if (row == NULL) {
    code = fail("there is not enough memory");
  } else if (strcmp(argv[3], "--measure") == 0) {
    const long count = argc > 4 ? strtol(argv[4], NULL, 10) : 0;
    printf("%lld vertices, rows %s, opened in %.2f s\n", (long long)partita_serve_vertices(served),
           partita_serve_keeps_rows(served) ? "kept" : "computed", seconds() - begin);
    code = count < 1 ? fail("--measure needs a number of vertices") : measure(served, count, row);
  } else {
    code = print_rows(served, argc - 3, argv + 3, row);
  }
  free(row);
  partita_serve_close(served);
  return code;
}
