// provider.h: Collage as an execution provider of ONNX Runtime, by its interface for those from outside (OrtEp, since
// version 1.23).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/onnxruntime/provider/options.h"

namespace collage::onnxruntime {

/// The provider of one session: it takes the nodes that can be compiled, in as few groups as possible, and compiles
/// each before it says so. Others remain with ONNX Runtime.
class Provider : public EpTable {
 public:
  /// `api` and `logger` must outlive it.
  Provider(const ProviderApi& api, const ApiTable& ep_api, ProviderOptions options, const Logger* logger);

 private:
  /// The end of a group of nodes: one of the two.
  struct Outcome {
    std::filesystem::path executable;
    std::optional<Error> error = {};
  };

  void FindGroups(const Graph* graph, EpGraphSupportInfo* support);
  /// Compiles a group, and takes it unless that is refused.
  void TakeGroup(const ReadGraph& read, const std::vector<int>& group, EpGraphSupportInfo* support);
  void Fuse(EpGraphSupportInfo* support, const std::vector<const Node*>& nodes);
  void CompileGroups(const Graph** graphs, const Node** fused, size_t count, NodeComputeTable** computes,
                     Node** contexts);
  void Log(int severity, const std::string& message) const { api_.Log(logger_, severity, message); }

  const ProviderApi& api_;
  const ApiTable& ep_api_;
  ProviderOptions options_;
  const Logger* logger_;
  std::map<std::string, Outcome> outcomes_;  ///< by the values that nodes of groups make
};

/// The functions that ONNX Runtime asks of a library that it registers: CreateEpFactories and ReleaseEpFactory.
Status* CreateFactories(const ApiBase* base, EpFactoryTable** factories, size_t most, size_t* count);
void ReleaseFactory(EpFactoryTable* factory);

}  // namespace collage::onnxruntime
