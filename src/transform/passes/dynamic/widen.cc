// widen.cc: sums in float32 are at least as exact as those in the narrow type.
#include "transform/passes/dynamic/widen.h"

#include <algorithm>
#include <vector>

#include "collage/ir/op.h"
#include "transform/passes/dynamic/replaced_calls.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

bool IsNarrow(const TensorTypeNode* tensor) {
  return tensor != nullptr && tensor->dtype().is_floating() && tensor->dtype().bits == 16;
}

/// Whether `call` is a stage of narrow tensors, one of them dynamic.
bool IsNarrowStage(const CallNode& call) {
  if (call.op() == nullptr || call.op()->pattern != OpPatternKind::kOutEWiseFusable) return false;
  const TensorTypeNode* result = AsTensorType(call.checked_type());
  if (!IsNarrow(result)) return false;
  bool is_dynamic = !result->is_static();
  for (const Expr& arg : call.args()) {
    const TensorTypeNode* tensor = AsTensorType(arg->checked_type());
    if (tensor == nullptr) return false;
    is_dynamic = is_dynamic || !tensor->is_static();
  }
  return is_dynamic;
}

Expr Wide(const Expr& value, const CallNode& origin) {
  if (!IsNarrow(AsTensorType(value->checked_type()))) return value;
  const ConstantNode* constant = As<ConstantNode>(value);
  if (constant != nullptr) return MakeConstant(constant->value().Cast(kFloat32));
  return TypedCall("cast", {value}, origin, {{"dtype", kFloat32}});
}

}  // namespace

IRModule WidenDynamic(const IRModule& module, const std::function<bool(const CallNode& call)>& takes) {
  return WithReplacedCalls(module, [&](const CallNode& original, const CallNode& call) -> Expr {
    if (!IsNarrowStage(original) || takes(original)) return nullptr;
    std::vector<Expr> args;
    for (const Expr& arg : call.args()) args.push_back(Wide(arg, call));
    Attrs attrs = call.attrs();
    if (call.op()->FindAttr("out_dtype") != nullptr) attrs.Set("out_dtype", kFloat32);
    const Expr wide = TypedCall(call.op()->name, args, call, attrs);
    if (!takes(static_cast<const CallNode&>(*wide))) return nullptr;
    return TypedCall("cast", {wide}, call, {{"dtype", AsTensorType(original.checked_type())->dtype()}});
  });
}

}  // namespace collage
