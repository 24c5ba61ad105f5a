// open_case.h: a model with symbolic sizes and the sizes to run it at: as text, as bytes, and made smaller while it
// fails.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "unit/frontend/open_model_check.h"

namespace collage {

/// A model, and sizes to run it at.
struct OpenCase {
  onnx::ModelProto model;
  std::vector<InputShapes> sizes;
};

void WriteModel(const std::filesystem::path& path, const onnx::ModelProto& model);

/// Removes nodes whose results nobody reads, and the initializers that only they read.
void Prune(onnx::GraphProto& graph);

/// Both in one model file, whose metadata hold the sizes.
std::string Serialize(const OpenCase& test);
/// The case that Serialize wrote.
OpenCase DeserializeOpenCase(const std::string& bytes);

/// The model node by node, `y = Conv(x, w) {strides=[2]}`, and the sizes.
std::string ToString(const OpenCase& test);

/// The smallest case found that `fails`, starting from one that does: of one assignment of sizes, with fewer results,
/// nodes and attributes. Asks `fails` at most some hundred times.
OpenCase Shrink(OpenCase test, const std::function<bool(const OpenCase&)>& fails);

}  // namespace collage
