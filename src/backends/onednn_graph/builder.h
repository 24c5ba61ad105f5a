// builder.h: a Relay function becomes a graph of oneDNN's, call by call.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/onednn_graph/spec.h"
#include "collage/ir/expr.h"
#include "collage/target/toolchain.h"

namespace collage::onednn_graph {

/// Thrown while a call is read: why the library has nothing for it.
struct Refusal {
  std::string text;
};

/// The elements of a tensor of the graph under a shape that need not be the tensor's own. Relay reshapes between
/// products of batches and what is around them; the library knows products of any rank, and its patterns have no
/// reshapes, so that these are kept back until somebody needs the other shape.
struct Value {
  int tensor = -1;
  Shape shape;
};

class Builder {
 public:
  /// `function` must outlive it. Calls may read values that are in no function: they become inputs then.
  explicit Builder(const Function* function);

  // ---- what calls read

  /// Field `index` of the flattened value of `expr`.
  const Value& ValueOf(const Expr& expr, size_t index = 0);
  const GraphTensor& TensorOf(const Value& value) const { return spec_.tensors[static_cast<size_t>(value.tensor)]; }
  /// A tensor of just this shape with the elements of `value`: what is given is given under another shape, too; else
  /// the result of a reshape, which the library fuses, or which is a view. Scalars have the shape [1].
  int Shaped(const Value& value, const Shape& shape);
  /// Returns the value under `shape` without a reshape; -1 if that is impossible.
  int View(const Value& value, const Shape& shape);
  int Shaped(const Expr& expr) { return Shaped(ValueOf(expr), ValueOf(expr).shape); }
  /// The only use of `expr` in the function if that reshapes it; else null.
  const CallNode* OnlyReshapeOf(const Expr& expr) const;

  // ---- what calls make

  int NewTensor(const Shape& shape, DataType dtype);
  /// `inputs` to a new tensor of `shape`, computed for `call`.
  int Add(const Call& call, std::string kind, nlohmann::json attrs, std::vector<int> inputs, const Shape& shape,
          DataType dtype);
  /// The (only) value of `expr`.
  void Set(const Expr& expr, Value value) { values_[expr.get()] = {std::move(value)}; }
  void Set(const Expr& expr, std::vector<Value> values) { values_[expr.get()] = std::move(values); }
  /// Gives a product or convolution without bias, read by nobody but `call`, the bias that `call` adds to it: a vector
  /// along `axis` of the graph's tensor. False where that is not what it is.
  bool AddBias(const Call& call, const Expr& product, const Expr& bias, size_t axis);

  // ---- the whole

  /// Reads all calls that `function` computes. If the library has no operation for one of them, throws its Refusal, or
  /// with `wildcards` leaves a gap through which nothing is fused.
  void ReadFunction(const BoundaryLayouts& layouts, bool wildcards);

  GraphSpec& spec() { return spec_; }
  std::vector<Tensor>& constants() { return constants_; }
  /// By operation: the calls that it computes.
  const std::vector<std::vector<Call>>& calls() const { return calls_; }

 private:
  void ReadInputs(const BoundaryLayouts& layouts);
  void ReadCall(const Call& call, bool wildcards);
  void AddWildcard(const Call& call);
  void NameResults(const BoundaryLayouts& layouts, bool wildcards);
  int Result(const Value& value, Layout layout);
  int Reshaped(const Value& value, const Shape& shape);
  /// Whether `tensor` is a transposition of a product, which the library computes together with a reshape behind it.
  bool IsTransposedProduct(int tensor) const;

  const Function* function_;
  std::unordered_map<const ExprNode*, std::vector<Expr>> users_;
  std::unordered_map<const ExprNode*, std::vector<Value>> values_;
  std::unordered_map<int, int> producers_;  ///< tensor → operation
  std::vector<std::vector<Call>> calls_;
  GraphSpec spec_;
  std::vector<Tensor> constants_;
};

/// A scalar counts as a vector of one.
Shape AtLeastVector(Shape shape);
/// The shape of `expr`, one tensor of static shape; else a Refusal.
Shape ShapeOf(const Expr& expr);
DataType DTypeOf(const Expr& expr);

}  // namespace collage::onednn_graph
