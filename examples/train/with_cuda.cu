#include "../training/cuda.hpp"
#include "../training/cuda_device.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "place.hpp"

outcome train_on_cuda(const partita::communicator& world, const std::optional<arrangement>& asked,
                      const partita::dataset& data, const command& c,
                      const partita::epoch_observer& observe) {
  const partita::queue<partita::cuda> queue = cuda_queue(world, c.comm);
  return train_at(cuda_world(world, queue, c.comm), queue, asked, data, c, observe);
}
