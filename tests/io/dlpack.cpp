// SPDX-License-Identifier: Apache-2.0
// Blocks as DLPack tensors and back: shared memory, deleters called once, and what is refused.
#include "partita/io/dlpack.hpp"

#include "partita/algebra/spmm.hpp"
#include "support/matrices.hpp"

namespace test_dlpack {

using namespace test_support;

/// A tensor of another library over a list of its own, which counts calls of its deleter.
struct foreign {
  std::vector<float> values;
  std::int64_t shape[2], strides[2];
  int deleted = 0;
  DLManagedTensor tensor{};

  foreign(std::int64_t rows, std::int64_t cols)
      : values(static_cast<std::size_t>(rows * cols)), shape{rows, cols}, strides{cols, 1} {
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k);
    tensor.dl_tensor = {values.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensor* self) { ++static_cast<foreign*>(self->manager_ctx)->deleted; };
  }
  foreign(const foreign&) = delete;
};

TEST_CASE("dlpack: a matrix views a tensor and calls its deleter once, when it goes") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    for (const bool compact : {false, true}) {
      foreign t(3, 4);
      if (compact) t.tensor.dl_tensor.strides = nullptr;
      {
        const auto adopted = io::from_dlpack<float>(&t.tensor);
        host_dense<float> x = host_dense<float>::view(m, replicated, {3, 4}, adopted.block, adopted.owner);
        CHECK(x.values().data() == t.values.data());
        CHECK(x.local()(2, 1) == 9);
        const host_dense<float, replicated> moved(std::move(x));
        x = host_dense<float>(m, replicated, {1, 1});
        CHECK(t.deleted == 0);
      }
      CHECK(t.deleted == 1);
    }
  });
}

TEST_CASE("dlpack: blocks of every rank go out and come back, in every layout") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      for_each_layout([&](layout l) {
        auto x = generate<double>(m, l, {11, 7}, field(2));
        const double* const place = x.values().data();
        const interval rows = x.row_range(), cols = x.col_range();
        DLManagedTensor* const tensor = io::to_dlpack(std::move(x));
        CHECK(tensor->dl_tensor.shape[0] == rows.size());
        CHECK(tensor->dl_tensor.shape[1] == cols.size());
        CHECK(tensor->dl_tensor.data == place);
        const auto adopted = io::from_dlpack<double>(tensor);
        const auto y = host_dense<>::view(m, l, {11, 7}, adopted.block, adopted.owner);
        check_equals(y, field(2), 0, "adopted");
      });
    });
}

TEST_CASE("dlpack: a view as a tensor shares memory that somebody else keeps, gaps and all") {
  std::vector<float> values(15, 1);
  const auto owner = std::make_shared<int>(0);
  DLManagedTensor* const tensor = io::to_dlpack(matrix_view<float>{values.data(), 3, 2, 5}, owner);
  CHECK(owner.use_count() == 2);
  CHECK(tensor->dl_tensor.strides[0] == 5);
  CHECK(tensor->dl_tensor.strides[1] == 1);
  CHECK(tensor->dl_tensor.dtype.bits == 32);
  CHECK(tensor->dl_tensor.byte_offset == 0);
  {
    const auto back = io::from_dlpack<float>(tensor);
    CHECK(back.block.stride(0) == 5);
    back.block(2, 1) = 7;
  }
  CHECK(values[11] == 7);
  CHECK(owner.use_count() == 1);
}

TEST_CASE("dlpack: a tensor may begin behind its pointer, have no rows, or nobody who deletes it") {
  foreign t(3, 4);
  t.tensor.dl_tensor.byte_offset = 4 * sizeof(float);
  t.shape[0] = 2;
  CHECK(io::from_dlpack<float>(&t.tensor).block(0, 0) == 4);
  CHECK(t.deleted == 1);
  t.tensor.deleter = nullptr;
  t.shape[0] = 0;
  t.tensor.dl_tensor.data = nullptr;
  CHECK(io::from_dlpack<float>(&t.tensor).block.extent(0) == 0);
}

TEST_CASE("dlpack: what is no block of the matrix is refused and stays the caller's") {
  const auto refused = [](const std::string& why, const std::function<void(foreign&)>& change) {
    foreign t(3, 4);
    change(t);
    expect_error<error>(why, [&] {
      try {
        io::from_dlpack<float>(&t.tensor);
      } catch (const error& e) {
        throw error(e.what());  // of whichever type
      }
    });
    CHECK(t.deleted == 0);
  };
  using dl = DLTensor;
  const auto with = [](auto set) { return [=](foreign& t) { set(t.tensor.dl_tensor); }; };
  refused("on a device of type 2 is not in host memory (type 1)",
          with([](dl& t) { t.device.device_type = kDLCUDA; }));
  refused("a DLPack tensor of float64 is not one of float32", with([](dl& t) { t.dtype.bits = 64; }));
  refused("a DLPack tensor of int32 is not one of float32", with([](dl& t) { t.dtype.code = kDLInt; }));
  refused("a DLPack tensor of float32 x 2 is not", with([](dl& t) { t.dtype.lanes = 2; }));
  refused("a DLPack tensor of code 4 of bits 16 is not", with([](dl& t) { t.dtype = {kDLBfloat, 16, 1}; }));
  refused("a DLPack tensor of 1 dimensions is not a matrix", with([](dl& t) { t.ndim = 1; }));
  refused("a DLPack tensor of 3 x 4 with strides 1 and 3 is not row-major", [](foreign& t) {
    t.strides[0] = 1;
    t.strides[1] = 3;
  });
  refused("a DLPack tensor of 3 x 4 with strides 0 and 1 is not row-major",
          [](foreign& t) { t.strides[0] = 0; });
  refused("with byte offset 2 is not aligned", with([](dl& t) { t.byte_offset = 2; }));
  refused("the number of rows of a DLPack tensor is 3000000000", [](foreign& t) { t.shape[0] = 3000000000; });
  expect_error<error>("a null pointer is not a DLPack tensor", [] { io::from_dlpack<float>(nullptr); });
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    foreign t(3, 4);
    {
      const auto adopted = io::from_dlpack<float>(&t.tensor);
      expect_error<shape_error>("a matrix of 4 x 3 has a block of 4 x 3 here, not of 3 x 4", [&] {
        host_dense<float>::view(m, replicated, {4, 3}, adopted.block, adopted.owner);
      });
    }
    CHECK(t.deleted == 1);
  });
}

}  // namespace test_dlpack
