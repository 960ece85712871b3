// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CUDA graphs: the work of a stream, recorded, and enqueued again by one call.

#include <memory>
#include <type_traits>

#include "partita/memory/cuda_stream.hpp"

namespace partita::on_cuda {

/// What was enqueued on a stream while it was made. Move-only.
class cuda_graph {
 public:
  /// Calls work(), and records what it enqueues on `stream`, which is not the default stream and does none of
  /// it. Throws what work throws, and device_error where it does what cannot be recorded, such as waiting.
  template <class F>
  cuda_graph(cudaStream_t stream, const F& work) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t recorded = nullptr;
    try {
      work();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream, &recorded));
      static_cast<void>(cudaGetLastError());
      if (recorded != nullptr) cudaGraphDestroy(recorded);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream, &recorded), "cudaStreamEndCapture");
    cudaGraphExec_t made = nullptr;
    const cudaError_t code = cudaGraphInstantiate(&made, recorded, 0);
    cudaGraphDestroy(recorded);
    check_cuda(code, "cudaGraphInstantiate");
    graph_.reset(made);
  }

  /// Enqueues all of it.
  void launch(cudaStream_t stream) const {
    check_cuda(cudaGraphLaunch(graph_.get(), stream), "cudaGraphLaunch");
  }

 private:
  struct destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };

  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, destroy> graph_;
};

}  // namespace partita::on_cuda
