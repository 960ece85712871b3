// SPDX-License-Identifier: Apache-2.0
#include "../ranks/compiled.hpp"
#include "../ranks/dense_products.hpp"
#include "place.hpp"

split_counts predict_on_cpu(const partita::communicator& world, const arrangement& how,
                            const prediction_task& task, const predict_command& c) {
  const partita::device_queue<partita::host> queue(*c.threads, dense_products());
  return predict_at(partita::mesh<partita::host>(world, how.mesh, queue), task, c);
}
