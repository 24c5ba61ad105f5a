// importer.h: what the converters of ONNX operators work with.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "frontend/onnx/signature.h"
#include "frontend/onnx/size_table.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace collage {

class OnnxGraph;
struct NarrowType;

/// One ONNX node under conversion: its inputs as typed expressions, its attributes, and builders of Relay calls that
/// evaluate at once what is constant.
class NodeContext {
 public:
  /// `narrow` has the narrow types of inputs, null for others; it may be shorter than `inputs`.
  NodeContext(OnnxGraph& graph, const onnx::NodeProto& node, std::vector<Expr> inputs, int64_t opset,
              std::vector<const NarrowType*> narrow = {});

  const std::string& name() const { return name_; }
  const std::string& op_type() const;
  /// Version of ai.onnx that the model asks for.
  int64_t opset() const { return opset_; }

  void ReplaceInput(size_t i, Expr value) { inputs_[i] = std::move(value); }
  size_t num_inputs() const { return inputs_.size(); }
  bool HasInput(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  /// Throws kInput when the input is absent.
  const Expr& Input(size_t i) const;
  /// All inputs; null where one is absent.
  const std::vector<Expr>& inputs() const { return inputs_; }
  /// Null when the input is absent.
  Expr InputOrNull(size_t i) const { return HasInput(i) ? inputs_[i] : nullptr; }
  /// The narrow type whose elements input `i` holds; null for others.
  const NarrowType* NarrowOf(size_t i) const { return i < narrow_.size() ? narrow_[i] : nullptr; }
  /// Says that output `i` holds elements of `type`, unless it is null.
  void SetNarrow(size_t i, const NarrowType* type);
  /// The narrow types of the first outputs, null for others.
  const std::vector<const NarrowType*>& narrow_outputs() const { return narrow_outputs_; }
  const TensorTypeNode& TypeOf(const Expr& expr) const;
  /// Gives the dimensions of what was not made by Op, Field or Tuple symbols.
  void NameSizes(const Expr& expr) const;
  /// The dimensions of a tensor, for all sizes that the model leaves open.
  Sizes SizesOf(const Expr& expr) const;
  /// The dimensions as numbers; throws kUnsupported when a size is known at run time only.
  Shape ShapeOf(const Expr& expr) const;
  bool IsStatic(const Expr& expr) const { return TypeOf(expr).is_static(); }
  /// The number that `size` is; throws kUnsupported, "needs to know `what`", where a run decides.
  int64_t Known(const SymbolicSize& size, std::string_view what) const;
  /// The size of what is stretched to fit both; nothing where either may be the one that is 1.
  static std::optional<SymbolicSize> Broadcast(const SymbolicSize& a, const SymbolicSize& b);
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
  /// A vector of strings, as their numbers.
  Tensor StringTensor(const std::vector<std::string>& texts) const;
  /// Throws kUnsupported for a tensor of a narrow type, unless there is a `narrow`, which then says which.
  std::optional<Tensor> TensorAttr(const char* name, const NarrowType** narrow = nullptr) const;
  /// The dtype that a number of TensorProto.DataType names; throws kUnsupported for what Relay has no type for.
  DataType DTypeOf(int64_t onnx_type) const;

  /// Converts the graph that an attribute holds, its inputs bound to `inputs`; returns its outputs. Throws kInput when
  /// there is none or the number of inputs differs.
  std::vector<Expr> ConvertSubgraph(const char* name, const std::vector<Expr>& inputs);
  size_t NumSubgraphNodes(const char* name) const;
  /// The outputs of operator `op` of ONNX on `inputs`, null where one is absent, under this node's attributes; of opset
  /// `opset`, or this node's.
  std::vector<Expr> ConvertAs(const std::string& op, std::vector<Expr> inputs, std::optional<int64_t> opset = {});

  // Attributes and constants in the range that they must have; kInput says what was found and what was wanted.

  /// The integer attribute `name`, from `least` to `most`.
  int64_t IntWithin(const char* name, int64_t fallback, int64_t least, int64_t most) const;
  /// From 1 to 2^31 - 1.
  int64_t PositiveInt(const char* name, int64_t fallback) const;
  /// `count` integers from 1 to 2^31 - 1; ones when absent.
  std::vector<int64_t> PositiveInts(const char* name, size_t count) const;
  /// `count` integers of 31 bits and a sign; zeros when absent.
  std::vector<int64_t> Pads(const char* name, size_t count) const;
  std::string OneOf(const char* name, const char* fallback, std::initializer_list<std::string_view> known) const;
  /// The one element of an input that must be known now.
  int64_t ConstantInt(size_t i) const;
  double ConstantNumber(size_t i) const;

  bool IsConstant(size_t i) const { return HasInput(i) && inputs_[i]->kind() == ExprKind::kConstant; }
  /// The value of an input that must be known now; throws kUnsupported when it is not constant.
  Tensor Constant(size_t i) const;
  std::vector<int64_t> ConstantInts(size_t i) const { return Constant(i).ToInts(); }
  /// The elements of an integer input that is constant or computed of sizes; nothing for others, and where it is not
  /// known how sizes decide.
  std::optional<Sizes> KnownInts(size_t i) const;
  /// Whether input `i` depends on sizes alone, so that it may say how something is shaped.
  bool IsComputedFromSizes(size_t i) const;
  /// As KnownInts. Throws kUnsupported where there is nothing.
  Sizes SizeInts(size_t i) const;

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
  /// `x` under another shape. `inferred` is the dimension that takes what the others leave; -1 for none.
  Expr Reshape(const Expr& x, const Sizes& shape, int inferred = -1);
  /// `x` with dimensions of size 1 repeated; `shape` must be what comes out for all sizes.
  Expr BroadcastTo(const Expr& x, const Sizes& shape);
  /// A tensor of equal elements, `value` a scalar.
  Expr Full(const Expr& value, const Sizes& shape);
  /// A vector of int64 that holds `sizes`.
  Expr Compute(const Sizes& sizes);
  /// A scalar of int64.
  Expr ComputeScalar(const SymbolicSize& size);
  /// The number of a stream of random numbers that no other call has.
  int64_t NextRandomStream();
  /// Returns `x` with known sizes that its type does not have. Empty sizes are unknown.
  Expr WithSizes(const Expr& x, const PartialSizes& sizes);
  /// As WithSizes: `sizes`, but for `size` along `axis`.
  Expr WithSizeAlong(const Expr& x, const Sizes& sizes, int64_t axis, std::optional<SymbolicSize> size);

  /// Throws kUnsupported: the size of something decides what a run only can.
  [[noreturn]] void NeedsSize(const std::string& what) const;
  [[noreturn]] void Unsupported(const std::string& what) const;
  [[noreturn]] void Invalid(const std::string& what) const;

 private:
  /// The attribute, or null when absent; throws kInput when it is not of `type` (AttributeProto.AttributeType).
  const onnx::AttributeProto* Find(const char* name, int type) const;
  std::vector<int64_t> IntsWithin(const char* name, size_t count, int64_t fallback, int64_t least) const;

  OnnxGraph& graph_;
  const onnx::NodeProto& node_;
  std::string name_;
  std::vector<Expr> inputs_;
  int64_t opset_;
  std::vector<const NarrowType*> narrow_;
  std::vector<const NarrowType*> narrow_outputs_;
};

// One function per family of operators (converters/); each adds its rows.
void AddMathConverters(OnnxConverters& converters);
void AddMatrixConverters(OnnxConverters& converters);
void AddNeuralConverters(OnnxConverters& converters);
void AddTensorConverters(OnnxConverters& converters);
void AddSlicingConverters(OnnxConverters& converters);
void AddActivationConverters(OnnxConverters& converters);
void AddNormalisationConverters(OnnxConverters& converters);
void AddResizeConverters(OnnxConverters& converters);
void AddIndexConverters(OnnxConverters& converters);
void AddVisionConverters(OnnxConverters& converters);
void AddSignalConverters(OnnxConverters& converters);
void AddAttentionConverters(OnnxConverters& converters);
void AddLossConverters(OnnxConverters& converters);
void AddSequenceConverters(OnnxConverters& converters);
void AddControlConverters(OnnxConverters& converters);
void AddRecurrentConverters(OnnxConverters& converters);
void AddQuantisedConverters(OnnxConverters& converters);
void AddRandomConverters(OnnxConverters& converters);
void AddTrainingConverters(OnnxConverters& converters);
void AddNgramConverters(OnnxConverters& converters);

/// Constants larger than this are not made while importing: a broadcast or a fill may stay symbolic at no cost.
inline constexpr int64_t kLargestFoldedBytes = int64_t{64} << 20;

/// The table of all converters by ONNX operator.
const OnnxConverters& AllOnnxConverters();

/// Why an operator of ONNX cannot be converted at all; null for others.
const char* OnnxRefusal(const std::string& op_type);

}  // namespace collage
