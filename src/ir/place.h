// place.h: where an expression comes from and is computed, as errors write it.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// "model.relay:4:12" of text; the node's name where an ONNX model gave it; empty for nowhere.
std::string PlaceOf(const Span& span);

/// Places of the model's nodes inside `function`, in order of computation, each once: names of an ONNX model.
std::vector<std::string> SourceNodes(const Function& function);

/// "cuda:0 for llvm in global", as far as it is constrained.
std::string ToString(const VirtualDevice& device);

}  // namespace collage
