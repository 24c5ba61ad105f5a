// call_plan.h: primitives that native kernels call (collage/target/composite_calls.h). A kernel's code holds the
// request for a plan, which is made when the code is loaded, and calls it with addresses:
//
//     execute(plan, result, workspace, operand 0, operand 1, …)
#pragma once

#include <span>

#include "backends/dnnl/query.h"
#include "backends/dnnl/spec.h"

namespace collage::dnnl_toolchain {

/// A call of `primitive` with its constants packed, computed as `found` says. Declines primitives of too many operands
/// and formats that no text describes.
Result<PreparedCall> PrepareCall(const Primitive& primitive, const Implementation& found,
                                 std::span<const Tensor> constants, int num_threads);

/// The plan or function for a request of a `PreparedCall`. Null where the library reads other formats here than the
/// constants were packed for.
void* FindCall(const char* request);

}  // namespace collage::dnnl_toolchain
