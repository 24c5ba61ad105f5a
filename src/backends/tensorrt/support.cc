// support.cc: which calls may be offloaded: those that ONNX has a form of, whose operators TensorRT's parser reads, on
// types that it computes as they are, within the limits of single operators (limits.cc).
#include "backends/tensorrt/support.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/frontend/onnx_export.h"
#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::tensorrt {
namespace {

Reason No(std::string text) { return Reason{std::move(text), "tensorrt"}; }

/// Types of tensors in an engine. 8 bits are for quantised values, between quantisation and dequantisation only.
bool KnownDType(DataType dtype, bool is_quantised) {
  if (is_quantised && dtype == kInt8) return true;
  return IsFloat(dtype) || dtype == kInt32 || dtype == kInt64 || dtype == kBool;
}

Result<void> CheckType(const Type& type, std::string_view role, bool is_quantised) {
  constexpr size_t kMostRank = 8;
  if (!type) return No(fmt::format("the type of its {} is not known", role));
  for (const Type& part : FlattenTensorTypes(type)) {
    const TensorTypeNode* tensor = AsTensorType(part);
    if (!tensor->is_static()) return No(fmt::format("the shape of its {} is not static", role));
    if (!KnownDType(tensor->dtype(), is_quantised)) {
      return No(fmt::format("its {} is {}, which engines have no tensors of", role, tensor->dtype().ToString()));
    }
    if (tensor->shape().size() > kMostRank) return No(fmt::format("its {} has more than 8 dimensions", role));
    if (std::ranges::any_of(tensor->shape(), [](const Dim& dim) { return dim.size() == 0; })) {
      return No(fmt::format("its {} is empty", role));
    }
  }
  return {};
}

}  // namespace

bool IsFloat(DataType dtype) { return dtype == kFloat32 || dtype == kFloat16 || dtype == kBFloat16; }

DataType FirstDType(const CallNode& call) {
  const Type& type = call.args().empty() ? call.checked_type() : call.args()[0]->checked_type();
  return AsTensorType(FlattenTensorTypes(type).at(0))->dtype();
}

Result<void> Supports(const CallNode& call) {
  const OpDef* op = call.op();
  if (op == nullptr) return No("calls no operator");
  const std::span<const OperatorRow> rows = Operators();
  const auto row = std::ranges::lower_bound(rows, std::string_view(op->name), {}, &OperatorRow::name);
  if (row == rows.end() || row->name != op->name) return No("has no row for '" + op->name + "'");
  if (!row->why_not.empty()) return No(std::string(row->why_not));
  const bool is_quantised = op->name.starts_with("qnn.");
  for (const Expr& arg : call.args()) {
    if (Result<void> ok = CheckType(arg->checked_type(), "argument", is_quantised); !ok) return ok;
  }
  if (Result<void> ok = CheckType(call.checked_type(), "result", is_quantised); !ok) return ok;
  const DataType dtype = FirstDType(call);
  if (row->types == ElementTypes::kFloats && !IsFloat(dtype))
    return No("computes floats only, got " + dtype.ToString());
  if (row->types == ElementTypes::kNumbers && dtype == kBool) return No("computes numbers only, got bool");
  if (Result<void> ok = CheckLimits(call, op->name); !ok) return ok;
  return CanExportOnnx(call);
}

}  // namespace collage::tensorrt
