// widen.h: stages of 16-bit floats of dynamic shapes, computed in float32.
#pragma once

#include <functional>

#include "collage/ir/module.h"

namespace collage {

/// Returns `module`, typed, in which products, convolutions, norms and others to which operators are fused
/// (OpPatternKind::kOutEWiseFusable) compute float16 and bfloat16 values of dynamic shapes in float32: operands are
/// cast before, and the result behind, where `takes` accepts the call in float32 and not as it is. Constants are cast
/// now.
IRModule WidenDynamic(const IRModule& module, const std::function<bool(const CallNode& call)>& takes);

}  // namespace collage
