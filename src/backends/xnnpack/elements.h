// elements.h: which types of elements an operation may have.
#pragma once

#include "backends/xnnpack/spec.h"

namespace collage::xnnpack_toolchain {

/// Throws Refusal unless all operands are of one kind, floats or 8-bit integers of one signedness that are quantised
/// again
/// (`result` is what the match gives), and XNNPACK has `operation` for that kind.
void CheckElements(const Operation& operation, Element result);

}  // namespace collage::xnnpack_toolchain
