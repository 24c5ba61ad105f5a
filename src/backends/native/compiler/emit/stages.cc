// stages.cc: what stages share: what follows an anchor, numbers of buffers, work in shares.
#include "backends/native/compiler/emit/stages.h"

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

std::string NumberBuffers(const PartitionState& state, int outputs) {
  const std::string text = state.emitter.Module();
  const int constants = static_cast<int>(state.constants.size());
  std::string result;
  constexpr std::string_view kSlot = "getelementptr %ctx[";
  size_t from = 0;
  for (size_t at = text.find(kSlot); at != std::string::npos; at = text.find(kSlot, from)) {
    const size_t begin = at + kSlot.size();
    const size_t end = text.find(']', begin);
    int number = std::stoi(text.substr(begin, end - begin));
    if (number >= kWorkspace) {
      number = state.num_inputs + constants + outputs;
    } else if (number >= kFirstOutput) {
      number = number - kFirstOutput + state.num_inputs + constants;
    } else if (number >= kFirstConstant) {
      number = number - kFirstConstant + state.num_inputs;
    }
    result += text.substr(from, begin - from) + std::to_string(number);
    from = end;
  }
  return result + text.substr(from);
}

void EmitShares(
    PartitionState& state, int64_t slots, int64_t units,
    const std::function<void(const std::string& slot, const std::string& unit, const std::string& first)>& body) {
  Emitter& e = state.emitter;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& slot) {
      const auto share = [&](const std::string& of) { return e.IntOp("divui", e.MulInt(of, units), e.Int(slots)); };
      const std::string first = share(slot);
      e.For(first, share(e.Plus(slot, 1)), 1, [&](const std::string& unit) { body(slot, unit, first); });
    });
  });
  e.Call(name, slots, slots > 1);
}

}  // namespace collage::native
