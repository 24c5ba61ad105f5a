// importer.h: what the converters of ONNX operators work with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace collage {

class OnnxGraph;

/// One ONNX node under conversion: its inputs as typed expressions, its attributes, and builders of Relay calls that
/// evaluate at once what is constant.
class NodeContext {
 public:
  NodeContext(OnnxGraph& graph, const onnx::NodeProto& node, std::vector<Expr> inputs, int64_t opset);

  const std::string& name() const { return name_; }
  const std::string& op_type() const;
  /// Version of ai.onnx that the model asks for.
  int64_t opset() const { return opset_; }

  size_t num_inputs() const { return inputs_.size(); }
  bool HasInput(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  /// Throws kInput when the input is absent.
  const Expr& Input(size_t i) const;
  const TensorTypeNode& TypeOf(const Expr& expr) const;
  /// Throws kUnsupported when a size is known at run time only.
  Shape ShapeOf(const Expr& expr) const;
  int Rank(const Expr& expr) const { return TypeOf(expr).rank(); }
  size_t num_outputs() const;
  /// Whether somebody may read output `i`.
  bool HasOutput(size_t i) const;

  bool HasAttr(const char* name) const;
  int64_t Int(const char* name, int64_t fallback) const;
  double Float(const char* name, double fallback) const;
  std::string String(const char* name, const std::string& fallback) const;
  std::vector<int64_t> Ints(const char* name, std::vector<int64_t> fallback) const;
  std::vector<double> Floats(const char* name) const;
  std::vector<std::string> Strings(const char* name) const;
  std::optional<Tensor> TensorAttr(const char* name) const;
  /// The dtype that a number of TensorProto.DataType names; throws kUnsupported for what Relay has no type for.
  DataType DTypeOf(int64_t onnx_type) const;

  /// Converts the graph that an attribute holds, its inputs bound to `inputs`; returns its outputs. Throws kInput when
  /// there is none or the number of inputs differs.
  std::vector<Expr> ConvertSubgraph(const char* name, const std::vector<Expr>& inputs);
  size_t NumSubgraphNodes(const char* name) const;

  bool IsConstant(size_t i) const { return HasInput(i) && inputs_[i]->kind() == ExprKind::kConstant; }
  /// The value of an input that must be known now; throws kUnsupported when it is not constant.
  Tensor Constant(size_t i) const;
  std::vector<int64_t> ConstantInts(size_t i) const { return Constant(i).ToInts(); }

  /// A typed operator call with this node's span, or the constant that it evaluates to.
  Expr Op(std::string_view op, std::vector<Expr> args, Attrs attrs = {});
  Expr Field(const Expr& tuple, int index);
  /// A typed tuple.
  Expr Tuple(std::vector<Expr> fields);
  /// `x` as `dtype`; itself when it has it.
  Expr Cast(const Expr& x, DataType dtype);
  Expr Scalar(double value, DataType dtype) { return MakeScalar(value, dtype); }
  /// A rank-0 constant of `like`'s dtype.
  Expr ScalarLike(double value, const Expr& like) { return MakeScalar(value, TypeOf(like).dtype()); }
  Expr Reshape(const Expr& x, const Shape& shape);

  [[noreturn]] void Unsupported(const std::string& what) const;
  [[noreturn]] void Invalid(const std::string& what) const;

 private:
  /// The attribute, or null when absent; throws kInput when it is not of `type` (AttributeProto.AttributeType).
  const onnx::AttributeProto* Find(const char* name, int type) const;

  OnnxGraph& graph_;
  const onnx::NodeProto& node_;
  std::string name_;
  std::vector<Expr> inputs_;
  int64_t opset_;
};

/// Converts one node to its outputs, in order.
using OnnxConverter = std::function<std::vector<Expr>(NodeContext& node)>;
using OnnxConverters = std::unordered_map<std::string, OnnxConverter>;

// One function per family of operators; each adds its rows.
void AddMathConverters(OnnxConverters& converters);
void AddMatrixConverters(OnnxConverters& converters);
void AddNeuralConverters(OnnxConverters& converters);
void AddTensorConverters(OnnxConverters& converters);
void AddActivationConverters(OnnxConverters& converters);
void AddNormalisationConverters(OnnxConverters& converters);
void AddResizeConverters(OnnxConverters& converters);
void AddIndexConverters(OnnxConverters& converters);
void AddVisionConverters(OnnxConverters& converters);
void AddSignalConverters(OnnxConverters& converters);
void AddAttentionConverters(OnnxConverters& converters);
void AddLossConverters(OnnxConverters& converters);
void AddControlConverters(OnnxConverters& converters);
void AddRecurrentConverters(OnnxConverters& converters);
void AddQuantisedConverters(OnnxConverters& converters);

/// The table of all converters by ONNX operator.
const OnnxConverters& AllOnnxConverters();

/// Why an operator of ONNX cannot be converted at all; null for others.
const char* OnnxRefusal(const std::string& op_type);

}  // namespace collage
