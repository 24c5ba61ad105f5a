// query.h: what the description asks of the module that holds the library.
#pragma once

#include <cstddef>
#include <string>

#include "backends/dnnl/spec.h"
#include "collage/support/result.h"

namespace collage::dnnl_toolchain {

/// How the library would compute a primitive.
struct Implementation {
  std::string name;  ///< as oneDNN calls it: "brgconv:avx512_core"
  size_t workspace_bytes = 0;
};

/// Signature of `collage_dnnl_query` of libcollage_rt_dnnl.so. Declines what has a reference implementation only.
using QueryFn = Result<Implementation>(const Primitive& primitive, int num_threads);

}  // namespace collage::dnnl_toolchain
