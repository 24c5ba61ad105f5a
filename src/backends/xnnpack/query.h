// query.h: what the description asks of the module that holds the library.
#pragma once

#include <span>

#include "backends/xnnpack/spec.h"
#include "collage/support/result.h"

namespace collage::xnnpack_toolchain {

/// Signature of `collage_xnnpack_query` of libcollage_rt_xnnpack.so: whether the library makes such an operator.
using QueryFn = Result<void>(const Operation& operation, std::span<const Tensor> constants);

}  // namespace collage::xnnpack_toolchain
