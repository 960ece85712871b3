// SPDX-License-Identifier: Apache-2.0
#include "../ranks/compiled.hpp"
#include "place.hpp"

split_counts predict_on_cpu(const partita::communicator& world, const arrangement& how,
                            const prediction_task& task, const predict_command& c) {
  // The library's own products: a BLAS gives the last rows other bits than those before, and so a vertex that
  // nn::point_predictor answers for other bits than here.
  const partita::device_queue<partita::host> queue(*c.threads);
  return predict_at(partita::mesh<partita::host>(world, how.mesh, queue), task, c);
}
