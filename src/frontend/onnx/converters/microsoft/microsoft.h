// microsoft.h: operators of com.microsoft, which ONNX Runtime's, Olive's and GenAI's tools write. Their rows are called
// "com.microsoft.NAME".
#pragma once

#include "frontend/onnx/importer.h"

namespace collage {

/// The converter of operator `op` of ONNX, on the same inputs.
OnnxConverter AsInOnnx(const std::string& op);

// One function per file.
void AddMicrosoftAttention(OnnxConverters& converters);
void AddMicrosoftFused(OnnxConverters& converters);
void AddMicrosoftNormalisation(OnnxConverters& converters);
void AddMicrosoftQuantised(OnnxConverters& converters);
void AddMicrosoftBlockQuantised(OnnxConverters& converters);

}  // namespace collage
