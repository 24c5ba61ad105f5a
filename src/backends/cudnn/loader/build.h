// build.h: a graph as descriptors of cuDNN.
#pragma once

#include <memory>
#include <vector>

#include "backends/cudnn/graph.h"
#include "backends/cudnn/loader/descriptor.h"

namespace collage::cudnn {

/// The operation graph of a Graph. The id of a value is its number.
class BuiltGraph {
 public:
  /// Throws as Library::Check does, kUnsupported where the library has no such operation.
  explicit BuiltGraph(const Graph& graph);
  const Descriptor& descriptor() const { return graph_; }

 private:
  Descriptor& Make(DescriptorKind kind);
  void MakeTensor(const Value& value, int64_t id);
  const Descriptor& MakeOperation(const Operation& operation);
  const Descriptor& MakeConvolution(const Operation& operation);
  const Descriptor& MakePointwise(const Operation& operation);
  const Descriptor& MakeProduct(const Operation& operation);
  const Descriptor& MakePool(const Operation& operation);
  const Descriptor& MakeLayerNorm(const Operation& operation);
  const Descriptor& MakeAttention(const Operation& operation);
  const Descriptor& Tensor(int number) const { return *tensors_.at(static_cast<size_t>(number)); }

  std::vector<std::unique_ptr<Descriptor>> made_;  ///< all that others name
  std::vector<const Descriptor*> tensors_;         ///< by number of value
  Descriptor graph_{DescriptorKind::kOperationGraph};
};

}  // namespace collage::cudnn
