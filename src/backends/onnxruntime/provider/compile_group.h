// compile_group.h: the model of a group of nodes → an executable.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "backends/onnxruntime/provider/options.h"

namespace collage::onnxruntime {

/// Returns the executable of `model`, a part of `whole`, whose weights it reads: the one in the cache, or a new one,
/// which `collage compile` makes in a process of its own. `log` gets a line before it begins. Throws what that command
/// reports, as kUnsupported where a model is refused, kInput for options; kUnavailable where the command is missing.
std::filesystem::path CompileGroup(const onnx::ModelProto& model, const ReadGraph& whole,
                                   const ProviderOptions& options,
                                   const std::function<void(const std::string& line)>& log);

}  // namespace collage::onnxruntime
