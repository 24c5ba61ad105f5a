// support.cc: the operators that the compiler module translates, with what each cannot do.
#include "backends/openvino/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::openvino {
namespace {

constexpr std::array kOperators = std::to_array<std::string_view>({
    "abs", "acos", "acosh", "add", "all", "any", "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atanh",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast_to", "cast", "ceil", "clip", "concatenate",
    "cos", "cosh", "cumsum", "divide", "equal", "erf", "exp", "expand_dims", "floor", "floor_divide",
    "floor_mod", "gather", "gather_nd", "greater", "greater_equal", "image.resize1d", "image.resize2d",
    "image.resize3d", "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal", "log", "logical_and",
    "logical_not", "logical_or", "logical_xor", "max", "maximum", "mean", "min", "minimum", "mod", "multiply",
    "negative", "nn.adaptive_avg_pool2d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.batch_flatten",
    "nn.batch_matmul", "nn.batch_norm", "nn.bias_add", "nn.conv1d", "nn.conv1d_transpose", "nn.conv2d",
    "nn.conv2d_transpose", "nn.conv3d", "nn.conv3d_transpose", "nn.dense", "nn.depth_to_space",
    "nn.global_avg_pool1d", "nn.global_avg_pool2d", "nn.global_avg_pool3d", "nn.global_max_pool1d",
    "nn.global_max_pool2d", "nn.global_max_pool3d", "nn.group_norm", "nn.gru", "nn.instance_norm", "nn.l2_normalize",
    "nn.layer_norm", "nn.leaky_relu", "nn.log_softmax", "nn.lrn", "nn.lstm", "nn.matmul", "nn.max_pool1d",
    "nn.max_pool2d", "nn.max_pool3d", "nn.pad", "nn.prelu", "nn.relu", "nn.rnn", "nn.softmax", "nn.space_to_depth",
    "not_equal", "one_hot", "power", "prod", "qnn.dequantize", "qnn.quantize", "repeat", "reshape", "reverse",
    "right_shift", "round", "rsqrt", "scatter_elements", "scatter_nd", "sigmoid", "sign", "sin", "sinh", "split",
    "sqrt", "squeeze", "stack", "strided_slice", "subtract", "sum", "take", "tan", "tanh", "tile", "topk", "transpose",
    "trunc", "variance", "where",
});

/// 64-bit integers are computed with 32 bits, which holds every index and size.
bool KnownDType(DataType dtype) {
  return dtype == kFloat32 || dtype == kFloat16 || dtype == kInt32 || dtype == kInt64 || dtype == kInt8 ||
         dtype == kUInt8 || dtype == kBool;
}

Result<void> CheckType(const Type& type, std::string_view role) {
  if (!type) return Reason{fmt::format("the type of its {} is not known", role), "openvino"};
  for (const Type& part : FlattenTensorTypes(type)) {
    const TensorTypeNode* tensor = AsTensorType(part);
    if (!tensor->is_static()) return Reason{fmt::format("the shape of its {} is not static", role), "openvino"};
    if (!KnownDType(tensor->dtype())) {
      return Reason{fmt::format("its {} is {}, which the CPU plugin computes in another precision", role,
                                tensor->dtype().ToString()),
                    "openvino"};
    }
    for (const Dim& dim : tensor->shape()) {
      if (dim.size() == 0) return Reason{fmt::format("its {} is empty", role), "openvino"};
    }
  }
  return {};
}

DataType FirstDType(const CallNode& call) {
  return AsTensorType(FlattenTensorTypes(call.args()[0]->checked_type())[0])->dtype();
}

bool IsFloat(DataType dtype) { return dtype == kFloat32 || dtype == kFloat16; }

bool IsWindow(std::string_view name) { return name.find("_pool") != name.npos || name.find("conv") != name.npos; }

bool IsZeroOrInput(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  for (int64_t i = 0; constant != nullptr && i < constant->value().num_elements(); ++i) {
    if (constant->value().At(i) != 0) return false;
  }
  return true;
}

/// What single operators cannot do, beyond types.
Result<void> CheckOperator(const CallNode& call, std::string_view name) {
  const auto no = [](std::string text) { return Reason{std::move(text), "openvino"}; };
  const Attrs& attrs = call.attrs();
  const DataType dtype = FirstDType(call);
  const bool contraction = IsWindow(name) || name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul";
  if (contraction && !IsFloat(dtype)) return no("computes windows and products of floats only, got " + dtype.ToString());
  if (name.starts_with("nn.avg_pool") && attrs.Bool("ceil_mode") && attrs.Bool("count_include_pad")) {
    return no("divides partial windows by another count when padding counts");
  }
  const bool divides = name == "divide" || name == "mod" || name == "floor_mod" || name == "floor_divide";
  if (divides && !IsFloat(dtype) && As<ConstantNode>(call.args()[1]) == nullptr) {
    return no("an integer division by zero would end the process");
  }
  if ((name == "left_shift" || name == "right_shift") && dtype != kInt32 && dtype != kUInt8) {
    return no("shifts of " + dtype.ToString() + " are computed with other bits");
  }
  if (name == "nn.pad" && As<ConstantNode>(call.args()[1]) == nullptr) return no("its pad value is not constant");
  if ((name == "argmax" || name == "argmin") && (attrs.IsNone("axis") || attrs.Ints("axis").size() != 1 ||
                                                 attrs.Bool("exclude") || attrs.IntOr("select_last_index", 0) != 0)) {
    return no("takes one axis and the first of equal elements only");
  }
  if (name == "qnn.quantize" && (As<ConstantNode>(call.args()[1]) == nullptr || As<ConstantNode>(call.args()[2]) == nullptr)) {
    return no("quantises with constant scales and zero points only");
  }
  if (name.starts_with("image.resize") && (attrs.Bool("antialias") || attrs.Int("cubic_exclude") != 0)) {
    return no("stretches no filters and leaves out no taps");
  }
  if (name == "nn.lstm" || name == "nn.gru" || name == "nn.rnn") {
    // A constant state would be read as its first row for the whole batch; zeros are all alike.
    if (!IsZeroOrInput(call.args()[4]) || (name == "nn.lstm" && !IsZeroOrInput(call.args()[5]))) {
      return no("takes constant initial states of 0 only");
    }
    if (call.args().size() > (name == "nn.lstm" ? 6 : 5)) return no("takes no peepholes and no sequence lengths");
    const bool plain = attrs.IsNone("clip") && attrs.IsNone("activation_alpha") && attrs.IsNone("activation_beta");
    if (!plain) return no("takes no clip and no coefficients of activations");
    if (name == "nn.lstm" && attrs.Bool("input_forget")) return no("couples no gates");
  }
  return {};
}

}  // namespace

Result<void> Supports(const CallNode& call) {
  const OpDef* op = call.op();
  if (op == nullptr) return Reason{"calls no operator", "openvino"};
  if (!std::ranges::binary_search(kOperators, op->name)) {
    return Reason{"has no translation of '" + op->name + "'", "openvino"};
  }
  for (const Expr& arg : call.args()) {
    if (Result<void> ok = CheckType(arg->checked_type(), "argument"); !ok) return ok;
  }
  if (Result<void> ok = CheckType(call.checked_type(), "result"); !ok) return ok;
  return CheckOperator(call, op->name);
}

}  // namespace collage::openvino
