// SPDX-License-Identifier: Apache-2.0
/// The C interface of nn::point_predictor.

#define PARTITA_SERVE_BUILDS
#include "partita_serve.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "../examples/ranks/compiled.hpp"
#include "../examples/ranks/precision.hpp"
#include "partita/train/model_data.hpp"
#include "partita/train/point_predictor.hpp"

/// A predictor in either precision.
struct partita_serve {
  virtual ~partita_serve() = default;
  virtual partita::global_index vertices() const = 0;
  virtual partita::global_index width() const = 0;
  virtual bool keeps_rows() const = 0;
  virtual bool scores_links() const = 0;
  virtual void rows(std::span<const std::int64_t> vertices, double* to) const = 0;
  virtual void scores(std::span<const partita::io::edge> pairs, double* to) const = 0;
};

namespace {

using namespace partita;

template <class T>
class serving final : public partita_serve {
 public:
  serving(io::dataset data, const nn::saved_model& model, const io::safetensors_file& file,
          nn::served_rows how, int threads)
      : predictor_(
            mesh_of(threads), [] { return mesh_of(1); }, std::move(data), model.options, file, how) {}

  global_index vertices() const override { return predictor_.vertices(); }
  global_index width() const override { return predictor_.width(); }
  bool keeps_rows() const override { return predictor_.keeps_rows(); }
  bool scores_links() const override { return predictor_.scores_links(); }
  void rows(std::span<const std::int64_t> vertices, double* to) const override {
    std::ranges::copy(predictor_.rows(vertices), to);
  }
  void scores(std::span<const io::edge> pairs, double* to) const override {
    std::ranges::copy(predictor_.scores(pairs), to);
  }

 private:
  static mesh<host> mesh_of(int threads) {
    return {self::world(), mesh_shape{}, device_queue<host>(threads)};
  }

  nn::point_predictor<T, host> predictor_;
};

/// What the caller gave is not what a function takes.
class argument_error : public error {
  using error::error;
};

/// Without a destructor, which a thread could only register with memory that there may not be.
thread_local std::array<char, 1024> last_error{};

partita_serve_status failed(partita_serve_status how, const char* sentence) noexcept {
  std::snprintf(last_error.data(), last_error.size(), "%s", sentence);
  return how;
}

/// Whether `run` ends, or what it throws; `shapes`: whose mistake a shape_error is.
template <class Run>
partita_serve_status guarded(partita_serve_status shapes, const Run& run) noexcept {
  try {
    run();
    return PARTITA_SERVE_OK;
  } catch (const argument_error& e) {
    return failed(PARTITA_SERVE_BAD_ARGUMENT, e.what());
  } catch (const input_error& e) {
    return failed(PARTITA_SERVE_BAD_INPUT, e.what());
  } catch (const shape_error& e) {
    return failed(shapes, e.what());
  } catch (const std::bad_alloc&) {
    return failed(PARTITA_SERVE_FAILED, "there is not enough memory");
  } catch (const std::exception& e) {
    return failed(PARTITA_SERVE_FAILED, e.what());
  } catch (...) {
    return failed(PARTITA_SERVE_FAILED, "an unknown error");
  }
}

/// Throws argument_error, which names the argument, for a null pointer.
void require(const void* pointer, const char* name) {
  if (pointer == nullptr) base::throw_error<argument_error>({name, " is a null pointer"});
}

nn::served_rows rows_named(partita_serve_rows rows) {
  switch (rows) {
    case PARTITA_SERVE_AUTOMATIC:
      return nn::served_rows::automatic;
    case PARTITA_SERVE_KEPT:
      return nn::served_rows::kept;
    case PARTITA_SERVE_COMPUTED:
      return nn::served_rows::computed;
  }
  base::throw_error<argument_error>({"rows is ", static_cast<int>(rows), ", and must be 0, 1 or 2"});
}

std::unique_ptr<partita_serve> opened_with(const std::string& model_file, const std::string& graph,
                                           nn::served_rows how, int threads) {
  const io::safetensors_file file = io::load_safetensors(model_file);
  const nn::saved_model model = nn::saved_model_of(file);
  io::dataset data = nn::load_data_for(model, file, graph);
  return in_precision(model.precision, [&](auto zero) -> std::unique_ptr<partita_serve> {
    return std::make_unique<serving<decltype(zero)>>(std::move(data), model, file, how, threads);
  });
}

}  // namespace

const char* partita_serve_version(void) { return PARTITA_SERVE_VERSION; }

partita_serve_status partita_serve_open(const char* model, const char* graph, partita_serve_rows rows,
                                        int threads, partita_serve** opened) {
  return guarded(PARTITA_SERVE_BAD_INPUT, [&] {
    require(opened, "opened");
    *opened = nullptr;
    require(model, "model");
    require(graph, "graph");
    const nn::served_rows how = rows_named(rows);
    if (threads < 1) base::throw_error<argument_error>({"threads is ", threads, ", and must be at least 1"});
    *opened = opened_with(model, graph, how, threads).release();
  });
}

void partita_serve_close(partita_serve* handle) { delete handle; }

int64_t partita_serve_vertices(const partita_serve* handle) {
  return handle == nullptr ? 0 : handle->vertices();
}

int64_t partita_serve_outputs(const partita_serve* handle) { return handle == nullptr ? 0 : handle->width(); }

int partita_serve_keeps_rows(const partita_serve* handle) {
  return handle != nullptr && handle->keeps_rows() ? 1 : 0;
}

partita_serve_status partita_serve_vertex(partita_serve* handle, int64_t vertex, double* outputs) {
  return partita_serve_batch(handle, 1, &vertex, outputs);
}

partita_serve_status partita_serve_batch(partita_serve* handle, size_t count, const int64_t* vertices,
                                         double* outputs) {
  return guarded(PARTITA_SERVE_BAD_ARGUMENT, [&] {
    require(handle, "handle");
    if (count == 0) return;
    require(vertices, "vertices");
    require(outputs, "outputs");
    handle->rows({vertices, count}, outputs);
  });
}

partita_serve_status partita_serve_pair(partita_serve* handle, int64_t source, int64_t target,
                                        double* score) {
  const int64_t pair[] = {source, target};
  return partita_serve_pairs(handle, 1, pair, score);
}

partita_serve_status partita_serve_pairs(partita_serve* handle, size_t count, const int64_t* pairs,
                                         double* scores) {
  return guarded(PARTITA_SERVE_BAD_ARGUMENT, [&] {
    require(handle, "handle");
    if (!handle->scores_links())
      throw argument_error("scores of pairs are those of a model of links, and this is not one");
    if (count == 0) return;
    require(pairs, "pairs");
    require(scores, "scores");
    std::vector<io::edge> edges;
    for (size_t i = 0; i < count; ++i) edges.push_back({pairs[2 * i], pairs[2 * i + 1]});
    handle->scores(edges, scores);
  });
}

const char* partita_serve_last_error(void) { return last_error.data(); }
