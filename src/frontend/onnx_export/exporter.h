// exporter.h: what the rows of the table of operators work with: one Relay call that becomes nodes of ONNX.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace collage {

class OnnxGraphWriter;

/// Names of tensors in the graph that is written; tuples flattened.
using OnnxNames = std::vector<std::string>;

/// One call of an operator under conversion.
class OnnxExportCall {
 public:
  OnnxExportCall(OnnxGraphWriter& writer, const CallNode& call, std::vector<OnnxNames> args)
      : writer_(writer), call_(call), args_(std::move(args)) {}

  const std::string& op() const { return call_.op()->name; }
  const Attrs& attrs() const { return call_.attrs(); }

  // ---- arguments ----
  size_t num_args() const { return args_.size(); }
  /// The name of argument `i`, a tensor.
  const std::string& Arg(size_t i) const { return args_.at(i).at(0); }
  /// The names of argument `i`, a tuple.
  const OnnxNames& Fields(size_t i) const { return args_.at(i); }
  const Expr& ArgExpr(size_t i) const { return call_.args().at(i); }
  const TensorTypeNode& TypeOf(size_t i) const;
  DataType DTypeOf(size_t i) const { return TypeOf(i).dtype(); }
  int Rank(size_t i) const { return TypeOf(i).rank(); }
  /// Throws kUnsupported when a size is known at run time only.
  Shape ShapeOf(size_t i) const;

  // ---- the result ----
  /// Tensor `i` of the flattened result.
  const TensorTypeNode& ResultType(size_t i = 0) const;
  /// Its sizes as ONNX's Reshape takes them: at most one unknown one is -1. Throws kUnsupported for more.
  std::vector<int64_t> ResultSizes() const;

  // ---- attributes ----
  /// `axis` (an attribute, an integer) counted from the front.
  int64_t Axis(const char* name, int rank) const;
  /// Throws kUnsupported unless the attribute has this value (or is empty).
  void Require(const char* attr, const std::string& value) const;

  // ---- building ----
  /// Adds a node and returns the name of its result. Attributes are integers (also bools), floats, strings, or lists of
  /// them; those that are None are left out. An empty input name is an absent input.
  std::string Node(const std::string& op_type, const OnnxNames& inputs, const Attrs& attributes = {}) const;
  OnnxNames NodeWithResults(const std::string& op_type, const OnnxNames& inputs, const Attrs& attributes,
                            size_t count) const;
  /// Initializers.
  std::string Constant(const Tensor& value) const;
  std::string Ints(const std::vector<int64_t>& values) const;
  std::string Int(int64_t value) const;  ///< rank 0, int64
  std::string Scalar(double value, DataType dtype) const;

  std::string Cast(const std::string& x, DataType from, DataType to) const;
  std::string Reshape(const std::string& x, const std::vector<int64_t>& sizes) const;
  std::string Transpose(const std::string& x, const std::vector<int64_t>& axes) const;
  std::string Unsqueeze(const std::string& x, const std::vector<int64_t>& axes) const;
  /// Argument `i`, a vector [C], as [C, 1, …], so that it broadcasts along `axis` of data of `rank`.
  std::string AlongAxis(size_t i, int64_t axis, int rank) const;
  /// Argument `i` transposed, or what it was transposed from, when the two transpositions undo each other.
  std::string TransposedArg(size_t i, const std::vector<int64_t>& axes) const;

  /// The model must say that it uses this opset or a newer one.
  void NeedsOpset(int64_t opset) const;
  [[noreturn]] void Unsupported(const std::string& what) const;

 private:
  OnnxGraphWriter& writer_;
  const CallNode& call_;
  std::vector<OnnxNames> args_;
};

/// Converts a call to the names of its flattened result.
using OnnxExportRow = std::function<OnnxNames(OnnxExportCall& call)>;
using OnnxExportRows = std::map<std::string, OnnxExportRow, std::less<>>;

// One function per family of operators; each adds its rows.
void AddElementwiseRows(OnnxExportRows& rows);
void AddContractionRows(OnnxExportRows& rows);
void AddNeuralRows(OnnxExportRows& rows);
void AddNormalisationRows(OnnxExportRows& rows);
void AddShapeRows(OnnxExportRows& rows);
void AddDynamicRows(OnnxExportRows& rows);
void AddIndexRows(OnnxExportRows& rows);
void AddReductionRows(OnnxExportRows& rows);
void AddQuantisedRows(OnnxExportRows& rows);
void AddRecurrentRows(OnnxExportRows& rows);
void AddVisionRows(OnnxExportRows& rows);
void AddTreeRows(OnnxExportRows& rows);

/// The table of all rows by Relay operator.
const OnnxExportRows& AllOnnxExportRows();

/// TensorProto.DataType of a dtype; throws kUnsupported for what ONNX has no name for.
int64_t OnnxTypeOf(DataType dtype);

}  // namespace collage
