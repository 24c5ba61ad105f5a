// graph.h: the conversion of an ONNX model: names of values, nested graphs, local functions.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/frontend/onnx.h"
#include "collage/ir/named_dimensions.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/size_table.h"
#include "frontend/onnx/tensor_reader.h"
#include "onnx/onnx-ml.pb.h"

namespace collage {

/// A value of the model.
struct OnnxValue {
  Expr expr;                           ///< null where there is none
  const NarrowType* narrow = nullptr;  ///< the narrow type whose elements it holds; null for others
};

/// Converts one model, node by node. Values are found by name in the innermost graph that has them; bodies of local
/// functions see their own values only.
class OnnxGraph {
 public:
  /// `least_size`: of dynamic dimensions for which the options have no range.
  OnnxGraph(const std::filesystem::path& path, const ImportOptions& options, int64_t least_size = 0);

  IRModule Import();
  /// Whether an input that was imported has a dynamic dimension.
  bool HasDynamicSizes() const;
  /// Names of inputs that are no initializers.
  std::vector<std::string> InputNames();
  /// As RefusedOnnxNodes, for one least size.
  std::vector<RefusedOnnxNode> RefusedNodes();

  const TensorReader& reader() const { return reader_; }
  SizeTable& sizes() { return sizes_; }
  int64_t NextRandomStream() { return num_random_streams_++; }
  /// Returns the hint to bind dynamic inputs: "give the shapes of the model's inputs, as in --shape x=1x3".
  std::string ShapeHint() const;
  /// The attribute `name` of `node`; within a local function, references are followed to the call's attributes.
  const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, const std::string& name) const;
  /// Converts a graph that an attribute holds; returns its outputs.
  std::vector<Expr> ConvertSubgraph(const onnx::GraphProto& graph, const std::vector<Expr>& inputs);
  /// Returns the hint to give a value to input `i` of `node`; empty where that is no input of the model.
  std::string ConstantHint(const onnx::NodeProto& node, size_t i) const;
  /// "'shape', a model input": what input `i` of `node` is, for messages.
  std::string Describe(const onnx::NodeProto& node, size_t i) const;

 private:
  using Values = std::unordered_map<std::string, OnnxValue>;
  using FunctionKey = std::pair<std::string, std::string>;  ///< domain, name
  /// A call of a local function: its attributes, and where its own values begin.
  struct FunctionCall {
    const onnx::FunctionProto* function;
    const onnx::NodeProto* node;
    size_t first_scope;
    int64_t outer_opset;
  };

  void Parse();
  void CheckOperators() const;
  void AddInputs();
  /// Adds the tensors of an input: itself, or the elements of a sequence. Sequences and optional values are noted down.
  void ListTensors(const onnx::ValueInfoProto& input, std::vector<const onnx::ValueInfoProto*>& tensors);
  /// Throws kInput for lengths of inputs that are no sequences, and below 0.
  void CheckLengths() const;
  /// Throws kInput for shapes and constants of inputs that are not among `names`.
  void CheckGivenNames(const std::set<std::string>& names) const;
  /// The number of elements that options give the sequence `name`, or nothing.
  std::optional<size_t> GivenLength(const std::string& name) const;
  bool IsGiven(const std::string& name) const;
  /// Returns a parameter with the shape that options or the model give, and symbols for its dynamic dimensions.
  Var InputParam(const onnx::ValueInfoProto& input);
  /// The sizes of an input that the file or options give, `given` among them; `?` for others.
  std::vector<Dim> KnownDims(const onnx::ValueInfoProto& input, const Shape& given) const;
  std::optional<int64_t> GivenDim(const onnx::TensorShapeProto::Dimension& dim) const;
  /// The sizes that options give a dimension by its name or its place.
  std::optional<SizeRange> GivenRange(const onnx::ValueInfoProto& input, int axis) const;
  /// Throws kInput for sizes of a dimension that the model has not, and empty ranges.
  void CheckDims(const std::vector<const onnx::ValueInfoProto*>& inputs) const;
  /// Throws kInput where `given` is of another rank than the model states, or contradicts sizes that options give.
  void CheckGivenShape(const onnx::ValueInfoProto& input, const Shape& given) const;
  /// "x=1x3": sizes of `input` that are not given are 1.
  std::string ShapeExample(const onnx::ValueInfoProto& input) const;
  static std::string NameOf(const onnx::TensorShapeProto::Dimension& dim);
  std::optional<SizeSum> SumOf(const std::string& name) const;
  SymbolicSize SizeOf(const SizeSum& sum);
  void BindSymbols(const std::vector<const onnx::ValueInfoProto*>& inputs);
  IRModule Finish();

  bool HasRows(const onnx::NodeProto& node) const;
  void TakeForInput(const std::string& name, const onnx::ValueInfoProto* stated);
  void AddInitializers(const onnx::GraphProto& graph);
  OnnxValue Lookup(const std::string& name) const;
  void Convert(const onnx::NodeProto& node);
  std::vector<OnnxValue> ConvertCall(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                     const std::vector<OnnxValue>& inputs);
  /// Converts a node that calls no local function.
  std::vector<OnnxValue> ConvertOperator(NodeContext& context, const OnnxRow& row, bool is_standard) const;
  const onnx::FunctionProto* LocalFunction(const onnx::NodeProto& node) const;
  static const OnnxRow* RowOf(const onnx::NodeProto& node);

  std::filesystem::path path_;
  ImportOptions options_;
  int64_t least_size_;
  TensorReader reader_;
  SizeTable sizes_;
  std::map<std::string, int64_t> bound_;  ///< names of dimensions that given shapes and sizes bind
  std::set<std::string> input_names_;     ///< names of the inputs' symbolic sizes
  onnx::ModelProto model_;
  int64_t opset_ = 0;
  int64_t num_random_streams_ = 0;
  int64_t num_converted_ = 0;  ///< nodes so far, those of unrolled loops each time
  std::map<FunctionKey, const onnx::FunctionProto*> functions_;
  std::vector<Values> scopes_;
  std::vector<FunctionCall> calls_;
  std::vector<Var> params_;
  std::deque<onnx::ValueInfoProto> elements_;          ///< elements of sequences among the inputs
  std::vector<std::pair<std::string, size_t>> lists_;  ///< inputs that are sequences, and their lengths
  NamedDimensions::Names dimension_names_;             ///< names that the model gives dynamic dimensions
  NamedDimensions::Ranges dimension_ranges_;
};

}  // namespace collage
