// c_api_tensor.h: tensors of C callers as ours and back.
#pragma once

#include <string>

#include "collage/runtime/c_api.h"
#include "collage/runtime/executable.h"

namespace collage {

collage_dtype ToC(DataType dtype);

/// A view of `tensor`, whose memory stays its owner's, for the port `port`. `what` is what errors call it: "input 'x'".
/// Throws kInput for what is not dense, not in the processor's memory, not aligned, or of a dtype that there is not;
/// whether dtype and shape are the port's is not looked at.
Tensor ViewOf(const collage_tensor* tensor, const std::string& what);

/// A view of `size_bytes` at `data` as the whole of `port`. Throws kInput when they are not what it takes, or not
/// aligned.
Tensor ViewOf(void* data, size_t size_bytes, const PortInfo& port, const std::string& what);

/// Throws kInput unless `size_bytes` at `data` are the whole of `port`.
void CheckBuffer(const void* data, size_t size_bytes, const PortInfo& port, const std::string& what);

}  // namespace collage
