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

}  // namespace

Result<void> Supports(const CallNode& call) {
  const OpDef* op = call.op();
  if (op == nullptr) return Reason{"calls no operator", "openvino"};
  const std::span<const OperatorRow> rows = Operators();
  const auto row = std::ranges::lower_bound(rows, std::string_view(op->name), {}, &OperatorRow::name);
  if (row == rows.end() || row->name != op->name) {
    return Reason{"has no translation of '" + op->name + "'", "openvino"};
  }
  if (!row->why_not.empty()) return Reason{std::string(row->why_not), "openvino"};
  for (const Expr& arg : call.args()) {
    if (Result<void> ok = CheckType(arg->checked_type(), "argument"); !ok) return ok;
  }
  if (Result<void> ok = CheckType(call.checked_type(), "result"); !ok) return ok;
  const DataType dtype = FirstDType(call);
  if (row->types == ElementTypes::kFloats && !IsFloat(dtype))
    return Reason{"computes floats only, got " + dtype.ToString(), "openvino"};
  if (row->types == ElementTypes::kNumbers && dtype.is_bool())
    return Reason{"computes numbers only, got bool", "openvino"};
  return CheckLimits(call, op->name);
}

}  // namespace collage::openvino
