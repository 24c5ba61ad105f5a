// old_forms.h: operators of opsets 1 to 6, where their forms differ from those of opset 7.
#pragma once

#include "frontend/onnx/importer.h"

namespace collage {

/// Makes the operands of a node of ai.onnx those that opset 7 has, if the model is of an older one: what a node
/// broadcasts along attribute `axis` gets dimensions of 1 behind it. Throws kUnsupported for operators whose form was
/// another one then and is not read.
void ReadOldForm(NodeContext& node);

}  // namespace collage
