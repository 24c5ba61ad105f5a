// query.h: what the description asks of the module that holds the library.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/dnnl/spec.h"
#include "collage/runtime/tensor.h"
#include "collage/support/result.h"

namespace collage::dnnl_toolchain {

/// How the library would compute a primitive.
struct Implementation {
  std::string name;  ///< as oneDNN calls it: "brgconv:avx512_core"
  size_t workspace_bytes = 0;
};

/// Signature of `collage_dnnl_query` of libcollage_rt_dnnl.so. Declines what has a reference implementation only.
using QueryFn = Result<Implementation>(const Primitive& primitive, int num_threads);

/// How native kernels call a primitive: `function` with the addresses of a plan, the result, the workspace, and the
/// operands. Function and plan are requests that `collage_find_micro_kernel` of libcollage_rt_dnnl.so answers.
struct PreparedCall {
  struct CallOperand {
    int input = -1;                       ///< number of the partition's parameter
    std::optional<Tensor> constant = {};  ///< packed as the primitive reads it
  };
  std::string function;
  std::string plan;
  std::vector<CallOperand> operands;
  size_t workspace_bytes = 0;
};

/// Signature of `collage_dnnl_prepare_call` of libcollage_rt_dnnl.so. Declines what QueryFn declines.
using PrepareCallFn = Result<PreparedCall>(const Primitive& primitive, std::span<const Tensor> constants,
                                           int num_threads);

}  // namespace collage::dnnl_toolchain
