// support.h: which calls may go to ONNX Runtime.
#pragma once

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::onnxruntime {

/// Whether `call`, of an operator and typed, can be exported as ONNX, and the CPU provider has kernels for its types;
/// the reason when not. Sizes may be symbolic.
Result<void> Supports(const CallNode& call);

}  // namespace collage::onnxruntime
