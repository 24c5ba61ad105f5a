// support.cc: which calls may be offloaded: those of operators with a translation, whose types the CPU plugin computes
// as such, within the limits of single operators (limits.cc).
#include "backends/openvino/support.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::openvino {
namespace {

/// 64-bit integers are computed with 32 bits, which holds every index and size.
bool KnownDType(DataType dtype) {
  return dtype == kFloat32 || dtype == kFloat16 || dtype == kBFloat16 || dtype == kInt32 || dtype == kInt64 ||
         dtype == kInt8 || dtype == kUInt8 || dtype == kBool;
}

Result<void> CheckType(const Type& type, std::string_view role, bool may_be_symbolic) {
  if (!type) return Reason{fmt::format("the type of its {} is not known", role), "openvino"};
  for (const Type& part : FlattenTensorTypes(type)) {
    const TensorTypeNode* tensor = AsTensorType(part);
    if (!may_be_symbolic && !tensor->is_static())
      return Reason{fmt::format("the shape of its {} is not static", role), "openvino"};
    if (!KnownDType(tensor->dtype())) {
      return Reason{fmt::format("its {} is {}, which the CPU plugin computes in another precision", role,
                                tensor->dtype().ToString()),
                    "openvino"};
    }
    for (const Dim& dim : tensor->shape()) {
      if (!dim.is_any() && dim.size() == 0) return Reason{fmt::format("its {} is empty", role), "openvino"};
    }
  }
  return {};
}

Result<void> Check(const CallNode& call, bool may_be_symbolic) {
  const OpDef* op = call.op();
  if (op == nullptr) return Reason{"calls no operator", "openvino"};
  const std::span<const OperatorRow> rows = Operators();
  const auto row = std::ranges::lower_bound(rows, std::string_view(op->name), {}, &OperatorRow::name);
  if (row == rows.end() || row->name != op->name) {
    return Reason{"has no translation of '" + op->name + "'", "openvino"};
  }
  // Operators that are told sizes are translated only within functions of symbolic sizes.
  if (!row->why_not.empty() && !may_be_symbolic) return Reason{std::string(row->why_not), "openvino"};
  for (const Expr& arg : call.args()) {
    if (Result<void> ok = CheckType(arg->checked_type(), "argument", may_be_symbolic); !ok) return ok;
  }
  if (Result<void> ok = CheckType(call.checked_type(), "result", may_be_symbolic); !ok) return ok;
  const DataType dtype = FirstDType(call);
  if (row->types == ElementTypes::kFloats && !IsFloat(dtype))
    return Reason{"computes floats only, got " + dtype.ToString(), "openvino"};
  if (row->types == ElementTypes::kNumbers && dtype.is_bool())
    return Reason{"computes numbers only, got bool", "openvino"};
  return CheckLimits(call, op->name);
}

/// Operators whose translation needs no more than ranks, and what CheckSymbolicLimits says. Others count elements, or
/// make tensors of sizes, when they are translated.
constexpr std::string_view kSymbolic[] = {
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cast",
    "ceil",
    "clip",
    "concatenate",
    "copy",
    "cos",
    "cosh",
    "cumsum",
    "divide",
    "dyn.broadcast_to",
    "dyn.full",
    "dyn.ones",
    "dyn.reshape",
    "dyn.strided_slice",
    "dyn.tile",
    "dyn.zeros",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "floor",
    "floor_divide",
    "floor_mod",
    "gather",
    "gather_nd",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "layout_transform",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "nn.avg_pool1d",
    "nn.avg_pool2d",
    "nn.avg_pool3d",
    "nn.batch_flatten",
    "nn.batch_matmul",
    "nn.batch_norm",
    "nn.bias_add",
    "nn.conv1d",
    "nn.conv1d_transpose",
    "nn.conv2d",
    "nn.conv2d_transpose",
    "nn.conv3d",
    "nn.conv3d_transpose",
    "nn.dense",
    "nn.depth_to_space",
    "nn.global_avg_pool1d",
    "nn.global_avg_pool2d",
    "nn.global_avg_pool3d",
    "nn.global_max_pool1d",
    "nn.global_max_pool2d",
    "nn.global_max_pool3d",
    "nn.group_norm",
    "nn.instance_norm",
    "nn.l2_normalize",
    "nn.layer_norm",
    "nn.leaky_relu",
    "nn.log_softmax",
    "nn.matmul",
    "nn.max_pool1d",
    "nn.max_pool2d",
    "nn.max_pool3d",
    "nn.pad",
    "nn.prelu",
    "nn.relu",
    "nn.softmax",
    "nn.space_to_depth",
    "not_equal",
    "one_hot",
    "power",
    "prod",
    "qnn.dequantize",
    "qnn.quantize",
    "reshape",
    "right_shift",
    "round",
    "rsqrt",
    "shape_of",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "strided_slice",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "tile",
    "transpose",
    "trunc",
    "variance",
    "where",
};
static_assert(std::ranges::is_sorted(kSymbolic));

/// Whether the sizes that a translation needs as numbers are known.
Result<void> CheckSymbolicLimits(const CallNode& call, std::string_view name) {
  const auto no = [](std::string text) { return Reason{std::move(text), "openvino"}; };
  if (name == "nn.pad" && call.attrs().String("pad_mode") == "reflect") return no("reflects data of known sizes only");
  if (name == "variance" && call.attrs().Bool("unbiased")) return no("divides by a number of elements that it knows");
  if (name == "split") {
    const std::vector<Type> results = FlattenTensorTypes(call.checked_type());
    const int rank = AsTensorType(results.at(0))->rank();
    const auto axis = static_cast<size_t>((call.attrs().Int("axis") + rank) % rank);
    const bool is_known =
        std::ranges::none_of(results, [&](const Type& part) { return AsTensorType(part)->shape()[axis].is_any(); });
    if (!is_known) return no("splits dimensions of known sizes only");
  }
  return {};
}

}  // namespace

Result<void> Supports(const CallNode& call) { return Check(call, /*may_be_symbolic=*/false); }

Result<void> SupportsSymbolic(const CallNode& call) {
  if (call.op() != nullptr) {
    const std::string_view name = call.op()->name;
    if (!std::ranges::binary_search(kSymbolic, name)) {
      return Reason{fmt::format("translates '{}' with known sizes only", name), "openvino"};
    }
    if (Result<void> ok = CheckSymbolicLimits(call, name); !ok) return ok;
  }
  return Check(call, /*may_be_symbolic=*/true);
}

}  // namespace collage::openvino
