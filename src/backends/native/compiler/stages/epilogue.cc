// epilogue.cc: which operators are computed with an anchor, and how far its loops may be flattened.
#include "backends/native/compiler/stages/epilogue.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "backends/native/operators.h"
#include "collage/ir/visitor.h"

namespace collage::native {

bool IsEpilogue(const Expr& root, const Expr& anchor) {
  const Shape shape = ShapeOf(root);
  if (ShapeOf(anchor) != shape) return false;
  std::unordered_set<const ExprNode*> above;  // of the anchor
  PostOrder(root, [&](const Expr& expr) {
    const std::vector<Expr> children = Children(expr);
    const bool is_above = expr == anchor || std::any_of(children.begin(), children.end(),
                                                        [&](const Expr& child) { return above.contains(child.get()); });
    if (is_above) above.insert(expr.get());
  });
  // Below the anchor nothing contains it; on the way to it, only what keeps every element in its place.
  for (const ExprNode* node : above) {
    if (node == anchor.get()) continue;
    if (node->kind() != ExprKind::kCall) return false;
    const auto& call = static_cast<const CallNode&>(*node);
    if (call.op() == nullptr || !KeepsPlaces(*call.op())) return false;
    if (AsTensorType(call.checked_type()) == nullptr || AsTensorType(call.checked_type())->static_shape() != shape)
      return false;
  }
  return true;
}

void StoreResult(PartitionState& state, const StageOutput& output, const Indices& indices, const Value& value) {
  state.expressions.SetRegister(output.result, value);
  state.emitter.Store(output.buffer, indices, state.expressions.At(output.epilogue, indices));
  state.expressions.ClearRegisters();
}

namespace {

/// The operands of `expr` whose elements its own are made of, place by place along `axes` of a result that has
/// `missing` more dimensions in front; nothing where it reads other places along them.
std::optional<std::vector<Expr>> OperandsInPlace(const Expr& expr, const std::vector<int>& axes, size_t missing) {
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr || call->op()->pattern > OpPatternKind::kBroadcast) return std::nullopt;
  const std::string& name = call->op()->name;
  const bool is_scaled = name == "qnn.quantize" || name == "qnn.dequantize";
  if (is_scaled && NumElements(ShapeOf(call->args()[1])) == 1 && NumElements(ShapeOf(call->args()[2])) == 1) {
    return std::vector<Expr>{call->args()[0]};
  }
  if (name.starts_with("qnn.") || call->op()->is_reshape || name == "tile" || name == "repeat") return std::nullopt;
  if (name != "nn.bias_add" && name != "nn.prelu") return std::vector<Expr>(call->args().begin(), call->args().end());
  // Their vectors are along an axis that its own position does not tell.
  const auto axis = static_cast<int>(AxisAttr(*call, "axis", ShapeOf(expr).size()) + missing);
  if (std::ranges::find(axes, axis) != axes.end()) return std::nullopt;
  return std::vector<Expr>{call->args()[0]};
}

enum class Extent : uint8_t { kAll, kNone, kSome };

/// Which of the `axes` of `buffer`, those of one element aside, a value of `shape` has at their full size.
Extent ExtentAlong(const Shape& shape, const Buffer& buffer, const std::vector<int>& axes, size_t missing) {
  bool has_all = true;
  bool has_none = true;
  for (int axis : axes) {
    const auto a = static_cast<size_t>(axis);
    if (buffer.shape[a] == 1) continue;
    const bool has = a >= missing && shape[a - missing] == buffer.shape[a];
    has_all = has_all && has;
    // A symbolic size may be more than one.
    has_none = has_none && !has && (a < missing || !IsSymbolic(shape[a - missing]));
  }
  return has_none ? Extent::kNone : has_all ? Extent::kAll : Extent::kSome;
}

}  // namespace

// Each value that takes part has all of the axes as the result has, in memory order without gaps, or none.
bool CanMerge(PartitionState& state, const StageOutput& output, const std::vector<int>& axes, int64_t stride) {
  const Buffer& buffer = output.buffer;
  std::vector<int64_t> wanted(buffer.shape.size(), 0);
  for (size_t i = axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (buffer.shape[axis] != 1 && buffer.strides[axis] != stride) return false;
    wanted[axis] = stride;
    stride = state.emitter.Times(stride, buffer.shape[axis]);
  }
  std::vector<Expr> work{output.epilogue};
  while (!work.empty()) {
    const Expr current = work.back();
    work.pop_back();
    const Shape shape = ShapeOf(current);
    const bool is_register = current == output.result;
    if (is_register || std::ranges::all_of(shape, [](int64_t size) { return size == 1; })) continue;
    if (shape.size() > buffer.shape.size()) return false;
    const size_t missing = buffer.shape.size() - shape.size();
    const Extent extent = ExtentAlong(shape, buffer, axes, missing);
    if (extent == Extent::kNone) continue;
    if (extent == Extent::kSome) return false;
    const Buffer* own = state.expressions.FindBuffer(current);
    if (own != nullptr || current->kind() == ExprKind::kConstant) {
      const std::vector<int64_t> strides = own != nullptr ? own->strides : LayoutStrides(shape, Layout::kPlain);
      for (int axis : axes) {
        const auto a = static_cast<size_t>(axis);
        if (buffer.shape[a] != 1 && strides[a - missing] != wanted[a]) return false;
      }
      continue;
    }
    const std::optional<std::vector<Expr>> operands = OperandsInPlace(current, axes, missing);
    if (!operands) return false;
    work.insert(work.end(), operands->begin(), operands->end());
  }
  return true;
}

}  // namespace collage::native
