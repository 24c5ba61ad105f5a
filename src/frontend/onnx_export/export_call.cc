// export_call.cc: what rows of the table build nodes with.
#include <fmt/format.h>

#include "collage/support/error.h"
#include "frontend/onnx_export/graph_writer.h"
#include "ir/place.h"

namespace collage {

const TensorTypeNode& OnnxExportCall::TypeOf(size_t i) const {
  const TensorTypeNode* type = AsTensorType(call_.args().at(i)->checked_type());
  if (type == nullptr) Unsupported(fmt::format("an argument {} that is no tensor", i));
  return *type;
}

Shape OnnxExportCall::ShapeOf(size_t i) const {
  const TensorTypeNode& type = TypeOf(i);
  if (!type.is_static()) Unsupported(fmt::format("an argument {} whose sizes are known at run time only", i));
  return type.static_shape();
}

const TensorTypeNode& OnnxExportCall::ResultType(size_t i) const {
  return *AsTensorType(FlattenTensorTypes(call_.checked_type()).at(i));
}

std::vector<int64_t> OnnxExportCall::ResultSizes() const {
  std::vector<int64_t> sizes;
  bool has_unknown = false;
  for (const Dim& dim : ResultType().shape()) {
    if (dim.is_any() && has_unknown) Unsupported("more than one size that is known at run time only");
    has_unknown = has_unknown || dim.is_any();
    sizes.push_back(dim.is_any() ? -1 : dim.size());
  }
  return sizes;
}

int64_t OnnxExportCall::Axis(const char* name, int rank) const {
  const int64_t axis = attrs().Int(name);
  return axis < 0 ? axis + rank : axis;
}

void OnnxExportCall::Require(const char* attr, const std::string& value) const {
  const std::string& found = attrs().String(attr);
  if (!found.empty() && found != value) Unsupported(fmt::format("{} = '{}'", attr, found));
}

std::string OnnxExportCall::Node(const std::string& op_type, const OnnxNames& inputs, const Attrs& attributes) const {
  return NodeWithResults(op_type, inputs, attributes, 1)[0];
}

OnnxNames OnnxExportCall::NodeWithResults(const std::string& op_type, const OnnxNames& inputs, const Attrs& attributes,
                                          size_t count) const {
  return writer_.AddNode(op_type, inputs, attributes, count, call_.span());
}

std::string OnnxExportCall::Constant(const Tensor& value) const { return writer_.AddConstant(value); }

std::string OnnxExportCall::Ints(const std::vector<int64_t>& values) const {
  return Constant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values));
}

std::string OnnxExportCall::Int(int64_t value) const {
  return Constant(Tensor::Of<int64_t>({}, kInt64, std::vector<int64_t>{value}));
}

std::string OnnxExportCall::Scalar(double value, DataType dtype) const {
  Tensor tensor = Tensor::Empty({}, dtype);
  tensor.Set(0, value);
  return Constant(tensor);
}

std::string OnnxExportCall::Cast(const std::string& x, DataType from, DataType to) const {
  return from == to ? x : Node("Cast", {x}, {{"to", OnnxTypeOf(to)}});
}

std::string OnnxExportCall::Reshape(const std::string& x, const std::vector<int64_t>& sizes) const {
  const bool has_zero = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  return Node("Reshape", {x, Ints(sizes)}, {{"allowzero", has_zero ? AttrValue(1) : AttrValue()}});
}

std::string OnnxExportCall::Transpose(const std::string& x, const std::vector<int64_t>& axes) const {
  return std::is_sorted(axes.begin(), axes.end()) ? x : Node("Transpose", {x}, {{"perm", axes}});
}

std::string OnnxExportCall::Unsqueeze(const std::string& x, const std::vector<int64_t>& axes) const {
  return axes.empty() ? x : Node("Unsqueeze", {x, Ints(axes)});
}

std::string OnnxExportCall::AlongAxis(size_t i, int64_t axis, int rank) const {
  if (const auto* constant = As<ConstantNode>(ArgExpr(i)); constant != nullptr && axis < rank - 1) {
    Shape shape(static_cast<size_t>(rank - axis), 1);
    shape[0] = constant->value().num_elements();
    return Constant(constant->value().Reshaped(shape));
  }
  std::vector<int64_t> added;
  for (int64_t d = 1; d < rank - axis; ++d) added.push_back(d);
  return Unsqueeze(Arg(i), added);
}

std::string OnnxExportCall::TransposedArg(size_t i, const std::vector<int64_t>& axes) const {
  const auto* inner = As<CallNode>(ArgExpr(i));
  if (inner != nullptr && inner->op() != nullptr && inner->op()->name == "transpose" &&
      !inner->attrs().IsNone("axes")) {
    const std::vector<int64_t> undone = inner->attrs().Ints("axes");
    const auto rank = static_cast<int64_t>(axes.size());
    bool undoes = undone.size() == axes.size();
    for (size_t d = 0; undoes && d < axes.size(); ++d) {
      const int64_t from = undone[static_cast<size_t>(axes[d])];
      undoes = (from < 0 ? from + rank : from) == static_cast<int64_t>(d);
    }
    if (undoes) return writer_.NameOf(inner->args()[0]);
  }
  return Transpose(Arg(i), axes);
}

void OnnxExportCall::NeedsOpset(int64_t opset) const { writer_.NeedsOpset(opset); }

void OnnxExportCall::Unsupported(const std::string& what) const {
  throw Error(ErrorCategory::kUnsupported, fmt::format("ONNX has no words for {} of operator '{}'", what, op()),
              PlaceOf(call_.span()));
}

}  // namespace collage
