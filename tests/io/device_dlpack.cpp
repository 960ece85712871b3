// SPDX-License-Identifier: Apache-2.0
// Blocks on a device as DLPack tensors and back: the order of both sides' streams, and what is refused.
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/self.hpp"
#include "partita/io/dlpack.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"
#include "support/on_device.hpp"

namespace test_device_dlpack {

using namespace test_support;
using device_dense = dense<float, dynamic_layout, cuda_device>;

/// to[t] = from[t] + 1.
struct increment {
  const float* from;
  float* to;
  constexpr void operator()(std::int64_t t) const { to[t] = from[t] + 1; }
};

/// A queue's stream as DLPack numbers it.
std::intptr_t number_of(const device_queue<cuda_device>& q) {
  return reinterpret_cast<std::intptr_t>(q.stream());
}

/// A tensor of 3 x 4 on device 0 of another library, which counts calls of its deleter.
struct foreign {
  std::int64_t shape[2] = {3, 4}, strides[2] = {4, 1};
  int deleted = 0;
  DLManagedTensor tensor{};

  explicit foreign(float* values) {
    tensor.dl_tensor = {values, {kDLCUDA, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensor* self) { ++static_cast<foreign*>(self->manager_ctx)->deleted; };
  }
  foreign(const foreign&) = delete;
};

TEST_CASE(
    "dlpack on a device: what a matrix is made by comes before its consumer's work, and no host waits") {
  const mesh<cuda_device> m(self::world(), {1, 1, 1});
  const device_queue<cuda_device> consumer;
  auto x = generate<float>(m, replicated, {3, 4}, field(2));
  const std::vector<float> expected = collect(x);
  buffer<float, cuda_device> to(consumer, 12);
  consumer.synchronize();
  on_cuda::launch(m.queue(), 12, increment{x.values().data(), x.values().data()});
  const float* const place = x.values().data();
  DLManagedTensor* const tensor = io::to_dlpack(std::move(x), number_of(consumer));
  CHECK(tensor->dl_tensor.device.device_type == kDLCUDA);
  CHECK(tensor->dl_tensor.device.device_id == 0);
  CHECK(tensor->dl_tensor.data == place);
  CHECK(tensor->dl_tensor.strides[0] == 4);
  on_cuda::launch(consumer, 12, increment{place, to.data()});
  tensor->deleter(tensor);                                              // the consumer has not read yet
  const auto other = generate<float>(m, replicated, {3, 4}, field(5));  // may have the same memory
  m.queue().synchronize();
  std::vector<float> found(12);
  copy(consumer, std::as_const(to).span(), std::span(found));
  for (std::size_t k = 0; k < 12; ++k) CHECK(found[k] == expected[k] + 1 + 1);
}

TEST_CASE("dlpack on a device: a matrix views a producer's memory after its work, and deletes it once") {
  for (const bool told : {false, true}) {
    const mesh<cuda_device> m(self::world(), {1, 1, 1});
    const device_queue<cuda_device> producer;
    const on_device<float> zeros(m.queue(), std::vector<float>(12, 0));
    m.queue().synchronize();
    buffer<float, cuda_device> values(producer, 12), to(m.queue(), 12);
    m.queue().synchronize();
    producer.synchronize();
    foreign t(values.data());
    on_cuda::launch(producer, 12, increment{zeros.data(), values.data()});
    if (told) producer.make_wait(m.queue().stream());  // as __dlpack__(stream) does
    {
      const auto adopted = io::from_dlpack<float>(&t.tensor, m.queue(), told ? -1 : number_of(producer));
      const auto x = device_dense::view(m, replicated, {3, 4}, adopted.block, adopted.owner);
      CHECK(x.values().data() == values.data());
      on_cuda::launch(m.queue(), 12, increment{x.values().data(), to.data()});
      CHECK(t.deleted == 0);
    }
    CHECK(t.deleted == 1);
    on_cuda::launch(producer, 12, increment{values.data(), values.data()});  // as the next owner
    producer.synchronize();
    std::vector<float> found(12);
    copy(m.queue(), std::as_const(to).span(), std::span(found));
    CHECK(found == std::vector<float>(12, 2));
  }
}

TEST_CASE("dlpack on a device: other devices, types, strides and streams are refused by name") {
  const device_queue<cuda_device> q;
  const on_device<float> values(q, std::vector<float>(12, 1));
  const auto refused = [&](const std::string& why, std::intptr_t stream, auto change) {
    foreign t(values.data());
    change(t.tensor.dl_tensor);
    expect_error<error>(why, [&] {
      try {
        io::from_dlpack<float>(&t.tensor, q, stream);
      } catch (const error& e) {
        throw error(e.what());  // of whichever type
      }
    });
    CHECK(t.deleted == 0);
  };
  using dl = DLTensor;
  refused("a DLPack tensor on a device of type 1 is not on a CUDA device (type 2)", 1,
          [](dl& t) { t.device.device_type = kDLCPU; });
  refused("a DLPack tensor on device 1 is not on device 0 of the queue", 1,
          [](dl& t) { t.device.device_id = 1; });
  refused("a DLPack tensor of float16 is not one of float32", 1, [](dl& t) { t.dtype.bits = 16; });
  refused("a DLPack tensor of 3 x 4 with strides 4 and 2 is not row-major", 1,
          [](dl& t) { t.strides[1] = 2; });
  refused("no stream has the number 0 in DLPack", 0, [](dl&) {});
  refused("no stream has the number -2 in DLPack", -2, [](dl&) {});
  foreign t(values.data());
  expect_error<error>("on a device of type 2 is not in host memory (type 1)",
                      [&] { io::from_dlpack<float>(&t.tensor); });
  expect_error<error>("on a device of type 2 is not in host memory (type 1)",
                      [&] { io::from_dlpack<float>(&t.tensor, device_queue<host>()); });
}

}  // namespace test_device_dlpack
