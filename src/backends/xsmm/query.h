// query.h: what the description asks of the module that holds the library.
#pragma once

#include "collage/support/result.h"
#include "target/matrix_product.h"

namespace collage::xsmm_toolchain {

/// Signature of `collage_xsmm_workspace` of libcollage_rt_xsmm.so: the bytes of workspace that the kernel wants, or why
/// the library generates none.
using WorkspaceFn = Result<size_t>(const MatrixProduct& product);

}  // namespace collage::xsmm_toolchain
