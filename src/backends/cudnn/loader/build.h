// build.h: a graph as descriptors of cuDNN.
#pragma once

#include <memory>
#include <vector>

#include "backends/cudnn/graph.h"
#include "backends/cudnn/loader/descriptor.h"

namespace collage::cudnn {

/// The operation graph of a Graph. The id of a value is its number; values within an operation of several of the
/// library's have further ones.
class BuiltGraph {
 public:
  /// Throws as Library::Check does, kUnsupported where the library has no such operation.
  explicit BuiltGraph(const Graph& graph);
  const Descriptor& descriptor() const { return graph_; }

 private:
  Descriptor& Make(DescriptorKind kind);
  Descriptor& MakeTensor(const Value& value, int64_t id);
  /// A value in float32 that the library's operations hand on.
  const Descriptor& MakeInside(const Shape& dims, DataType dtype = kFloat32);
  // Each adds an operation.
  void Add(const Operation& operation);
  void AddConvolution(const Operation& operation);
  void AddPointwise(const Operation& operation);
  void AddPointwise(const Descriptor& function, const Descriptor& x, const Descriptor* b, const Descriptor& y);
  void AddPointwise(int mode, const Descriptor& x, const Descriptor* b, const Descriptor& y);
  void AddProduct(const Descriptor& a, const Descriptor& b, const Descriptor& y);
  void AddReduction(int mode, const Descriptor& x, const Descriptor& y);
  void AddPool(const Operation& operation);
  void AddNorm(const Operation& operation);
  void AddAttention(const Operation& operation);
  void AddMaskedAttention(const Operation& operation);
  const Value& ValueOf(int number) const { return values_.at(static_cast<size_t>(number)); }
  const Descriptor& Tensor(int number) const { return *tensors_.at(static_cast<size_t>(number)); }

  const std::vector<Value>& values_;               ///< used while this is made
  std::vector<std::unique_ptr<Descriptor>> made_;  ///< all that others name
  std::vector<const Descriptor*> tensors_;         ///< by number of value
  std::vector<DescriptorPointer> operations_;
  int64_t next_id_ = 0;
  Descriptor graph_{DescriptorKind::kOperationGraph};
};

}  // namespace collage::cudnn
