// extern_call.h: a stage that is one call of a library's function (collage/target/composite_calls.h).
#pragma once

#include <string>
#include <vector>

#include "backends/native/compiler/stages/partition_state.h"
#include "collage/target/composite_calls.h"

namespace collage::native {

/// Writes `call` of the library of toolchain `library`, which reads `inputs` and fills `output`; they lie as the call
/// wants them. Throws kInput for arguments that do not fit the function's signature.
void EmitExternCall(PartitionState& state, const std::string& library, const ExternCall& call,
                    const std::vector<Buffer>& inputs, const Buffer& output);

}  // namespace collage::native
