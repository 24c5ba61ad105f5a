// model_file.h: ONNX models as files.
#pragma once

#include <filesystem>

#include "onnx/onnx-ml.pb.h"

namespace collage {

/// Reads the protobuf message in `path`, without weights that are in files beside it. Throws kInput for what is no ONNX
/// model, and for one without nodes, kUnsupported for files beyond 2 GB.
void ReadModelFile(const std::filesystem::path& path, onnx::ModelProto& model);

}  // namespace collage
