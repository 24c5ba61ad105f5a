// context_node.h: nodes that hold an executable, as ONNX Runtime writes and reads them (EPContext, its "EP context
// design"): a model of them is a compiled model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/onnxruntime/provider/options.h"
#include "collage/runtime/c_api.h"

namespace collage::onnxruntime {

/// Whether `node` holds an executable of this provider.
bool IsOurContext(const ProviderApi& api, const Node* node);

/// Loads the executable that `node` of `graph` holds or names. Throws what Collage reports.
collage_executable* LoadContext(const ProviderApi& api, const Graph* graph, const Node* node);

/// A new node in the place of `fused`, a node of `graph`, that holds the executable at `path`, or names a copy of it
/// beside the model that the session writes. It is ONNX Runtime's to release. Throws kResource when that cannot be
/// written.
Node* MakeContext(const ProviderApi& api, const Graph* graph, const Node* fused, const std::filesystem::path& path,
                  const ProviderOptions& options);

/// Names of a node's inputs and outputs, in order; empty for those that are left out.
std::vector<std::string> InputNames(const ProviderApi& api, const Node* node);
std::vector<std::string> OutputNames(const ProviderApi& api, const Node* node);

}  // namespace collage::onnxruntime
